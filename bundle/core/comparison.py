"""A rerun against its parent, claim by claim, in the words of ACM's artifact badging.

Bands come from the parent alone and were fixed before the rerun. Speed is compared only on the
same class of machine and the same engine; acceptance and outputs also elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from bundle.core.bundlefile import BundleFile, Claim
from bundle.core.claims import OUTPUTS_P, REPEAT
from bundle.core.exact import fewest_equal
from bundle.core.set_up import facts_apart

Word = Literal["IDENTICAL", "REPRODUCED", "NOT REPRODUCED", "NOT COMPARABLE", "INCONCLUSIVE"]
NOT_MEASURED = "the rerun did not measure it"
RAW_OUTPUTS = "token ids"
"""The last part of a claim's name that the rerun makes of the outputs themselves."""

Outputs = Mapping[tuple[str, str], tuple[int, ...]]


class Compared(Struct, frozen=True, kw_only=True):
    """One claim. ``noise_units`` is the distance in standard deviations between starts."""

    claim: str
    word: Word
    parent: float | None
    own: float | None
    lower: float | None
    upper: float | None
    noise_units: float | None
    reason: str

    @property
    def group(self) -> str:
        """The group that the claim is on, by the second part of its name."""
        return self.claim.split("/")[1]


class Difference(Struct, frozen=True, kw_only=True):
    """Something that was not the same on the two sides."""

    what: str
    parent: str
    own: str


class Comparison(Struct, frozen=True, kw_only=True):
    """What differed, then every claim: ``results/comparison.json`` of a rerun."""

    parent: str
    differences: tuple[Difference, ...]
    claims: tuple[Compared, ...]


def differences(parent: Mapping[str, str], own: Mapping[str, str]) -> tuple[Difference, ...]:
    """Facts of both sides that are not equal; see :func:`bundle.core.set_up.facts_apart`."""
    return tuple(
        Difference(what=one.what, parent=one.a, own=one.b) for one in facts_apart(parent, own)
    )


def compare_claims(
    parent: BundleFile, own: BundleFile, *, speed_comparable: bool
) -> Iterator[Compared]:
    """Hold every claim of the parent against the rerun's own."""
    mine = {claim.id: claim for claim in own.claims}
    for claim in parent.claims:
        yield _compare(claim, mine.get(claim.id), speed_comparable=speed_comparable)


def _compare(claim: Claim, own: Claim | None, *, speed_comparable: bool) -> Compared:
    word, reason = _word(claim, own, speed_comparable=speed_comparable)
    return Compared(
        claim=claim.id,
        word=word,
        parent=claim.value,
        own=own.value if own else None,
        lower=claim.lower,
        upper=claim.upper,
        noise_units=_noise_units(claim, own),
        reason=reason,
    )


def _word(claim: Claim, own: Claim | None, *, speed_comparable: bool) -> tuple[Word, str]:
    if own is None:
        return "INCONCLUSIVE", NOT_MEASURED
    if claim.kind == "ratio" and not speed_comparable:
        return "NOT COMPARABLE", "another class of machine or another engine"
    if claim.lower is None or claim.upper is None:
        return "INCONCLUSIVE", "the parent has no interval, so no band"
    if claim.kind == "ratio" and (reason := _too_noisy(own, claim)):
        return "INCONCLUSIVE", reason
    if claim.lower <= own.value <= claim.upper:
        return "REPRODUCED", "inside the band"
    return "NOT REPRODUCED", "outside the band"


def _too_noisy(own: Claim, band: Claim) -> str | None:
    """Why a rerun's ratio cannot be held against a band, or None."""
    if own.lower is None or own.upper is None:
        return "the rerun has no interval: too few blocks"
    # A band is wider than the interval it was made from.
    half = math.log(own.upper / own.lower) / REPEAT
    if half > math.log((band.upper or 0) / (band.lower or 1)):
        return "the rerun's noise is wider than the band"
    return None


def _noise_units(claim: Claim, own: Claim | None) -> float | None:
    if own is None or not claim.noise_sd:
        return None
    return math.log(own.value / claim.value) / claim.noise_sd


def compare_outputs(
    parent: Outputs, own: Outputs, agreement: tuple[int, int] | None = None
) -> Iterator[Compared]:
    """Token ids of every reply, group by group.

    Two starts of one configuration need not agree on every greedy output, so the band reaches from
    all of them down to the smallest share that the parent's own baselines still explain.

    Args:
        parent: output token ids by (group, item) of the parent's first start of the group.
        own: the same of the rerun.
        agreement: how many outputs were equal between baselines of the parent, of how many; None
            where two were never compared.
    """
    for group in dict.fromkeys(name for name, _ in parent):
        items = [item for name, item in parent if name == group and (group, item) in own]
        equal = sum(parent[group, item] == own[group, item] for item in items)
        share = equal / len(items) if items else None
        lower = _lowest(len(items), agreement)
        yield Compared(
            claim=f"outputs/{group}/{RAW_OUTPUTS}",
            word=_outputs_word(share, lower),
            parent=None,
            own=share,
            lower=lower,
            upper=None if lower is None else 1.0,
            noise_units=None,
            reason=_outputs_reason(equal, len(items), agreement),
        )


def _lowest(items: int, agreement: tuple[int, int] | None) -> float | None:
    if not items or agreement is None or not agreement[1]:
        return None
    return fewest_equal(items, *agreement, p=OUTPUTS_P) / items


def _outputs_word(share: float | None, lower: float | None) -> Word:
    if share is None:
        return "INCONCLUSIVE"
    if share == 1:
        return "IDENTICAL"
    if lower is None:
        return "INCONCLUSIVE"
    return "REPRODUCED" if share >= lower else "NOT REPRODUCED"


def _outputs_reason(equal: int, items: int, agreement: tuple[int, int] | None) -> str:
    if not items:
        return NOT_MEASURED
    text = f"{equal} of {items} outputs have equal token ids"
    if equal == items:
        return text
    if agreement is None or not agreement[1]:
        return f"{text}; the parent never compared two starts of one configuration"
    return f"{text}, {agreement[0]} of {agreement[1]} between baselines of the parent"


def contradictions(comparison: Comparison, own: BundleFile) -> Iterator[str]:
    """What a comparison says that does not follow from its own claims and bands.

    The parent's numbers are taken as they stand: its bundle holds them.
    """
    mine = {claim.id: claim for claim in own.claims}
    if comparison.parent != own.parent:
        yield f"the parent is {comparison.parent}, bundle.json says {own.parent}"
    for row in comparison.claims:
        claim = mine.get(row.claim)
        if row.claim.endswith(f"/{RAW_OUTPUTS}"):
            if row.word != _outputs_word(row.own, row.lower):
                yield f"{row.claim} is {row.word} with {row.own} of the outputs equal"
        elif row.own != (claim.value if claim else None):
            yield f"{row.claim} says {row.own}, the rerun's claim is not that"
        elif row.parent is not None and row.word != _word_of(row, claim):
            yield f"{row.claim} is {row.word}, its numbers say {_word_of(row, claim)}"


def _word_of(row: Compared, own: Claim | None) -> Word:
    kind: Literal["ratio", "outputs"] = "ratio" if row.claim.startswith("ratio/") else "outputs"
    parent = Claim(
        id=row.claim,
        kind=kind,
        group="",
        task="",
        load="",
        metric="",
        value=row.parent or 0.0,
        lower=row.lower,
        upper=row.upper,
        noise_sd=None,
    )
    return _word(parent, own, speed_comparable=row.word != "NOT COMPARABLE")[0]


def left_out(rows: Sequence[Compared]) -> dict[str, int]:
    """Groups of which the rerun measured nothing, with how many claims of theirs stay open."""
    groups = [row.group for row in rows]
    measured = {row.group for row in rows if row.own is not None}
    return {name: groups.count(name) for name in dict.fromkeys(groups) if name not in measured}


def summary(rows: Sequence[Compared]) -> dict[str, int]:
    """How many claims got each word, in order of first appearance."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.word] = counts.get(row.word, 0) + 1
    return counts
