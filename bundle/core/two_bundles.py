"""Two bundles of one recipe side by side: what differed in the set-up, then every claim.

Neither side is the original, so there are no bands here: a difference is held against the noise
of both sides, and where one of them has none it is stated and not judged. Intervals of a ratio of
two independent estimates are joined by their half widths (Zou and Donner 2008, MOVER).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from bundle.core.bundlefile import Claim
from bundle.core.claims import OUTPUTS_P, REPEAT
from bundle.core.comparison import Outputs
from bundle.core.exact import hypergeometric_tail
from bundle.core.least_squares import t_quantile
from bundle.core.set_up import SetUp, facts_apart

Word = Literal["EQUAL", "WITHIN NOISE", "HIGHER IN B", "LOWER IN B", "DIFFERENT", "NOT JUDGED"]


class Side(Struct, frozen=True, kw_only=True):
    """One bundle. ``facts`` is its set-up by name, ``lengths`` the mean acceptance length of each
    start by claim, ``outputs`` the output token ids by group and item, ``aa`` how many outputs of
    its baselines were equal among themselves, of how many."""

    name: str
    facts: Mapping[str, str]
    claims: tuple[Claim, ...]
    lengths: Mapping[str, tuple[float, ...]] = {}
    outputs: Outputs = {}
    aa: tuple[int, int] | None = None


class Row(Struct, frozen=True, kw_only=True):
    """One claim. ``change`` is b / a for ratios and acceptance, a share for outputs.

    ``lower`` and ``upper`` bound ``change`` at 95 %; None where no noise was measured.
    ``noise_units`` is the change in standard deviations between starts.
    """

    claim: str
    word: Word
    a: float | None
    b: float | None
    change: float | None
    lower: float | None
    upper: float | None
    noise_units: float | None
    reason: str


class TwoBundles(Struct, frozen=True, kw_only=True):
    """The whole comparison: set-up first, then the claims."""

    a: str
    b: str
    set_up: tuple[SetUp, ...]
    claims: tuple[Row, ...]


def compare(a: Side, b: Side) -> TwoBundles:
    """Set-up first, then every claim that either side makes."""
    of_a, of_b = ({c.id: c for c in side.claims} for side in (a, b))
    return TwoBundles(
        a=a.name,
        b=b.name,
        set_up=facts_apart(a.facts, b.facts),
        claims=(*_claims(of_a, of_b, a, b), *_outputs(a, b)),
    )


def _claims(
    of_a: Mapping[str, Claim], of_b: Mapping[str, Claim], a: Side, b: Side
) -> Iterator[Row]:
    for name in dict.fromkeys([*of_a, *of_b]):
        one, other = of_a.get(name), of_b.get(name)
        if one is None or other is None:
            side = "B" if one is None else "A"
            yield _row(name, one, other, "NOT JUDGED", f"only {side} measured it")
        elif one.kind == "ratio":
            yield _ratio(one, other)
        elif one.kind == "acceptance":
            yield _length(one, other, a.lengths.get(name, ()), b.lengths.get(name, ()))
        else:
            yield _share(one, other)


def _row(
    name: str,
    a: Claim | None,
    b: Claim | None,
    word: Word,
    reason: str,
    bounds: tuple[float, float] | None = None,
    units: float | None = None,
) -> Row:
    both = a is not None and b is not None and a.value > 0
    return Row(
        claim=name,
        word=word,
        a=None if a is None else a.value,
        b=None if b is None else b.value,
        change=b.value / a.value if both and a is not None and b is not None else None,
        lower=None if bounds is None else math.exp(bounds[0]),
        upper=None if bounds is None else math.exp(bounds[1]),
        noise_units=units,
        reason=reason,
    )


def _ratio(a: Claim, b: Claim) -> Row:
    """Two ratios against their own baselines, each with its own interval."""
    halves = _half(a), _half(b)
    if halves[0] is None or halves[1] is None:
        side = "A" if halves[0] is None else "B"
        return _row(a.id, a, b, "NOT JUDGED", f"{side} has no interval: too few blocks")
    moved = math.log(b.value / a.value)
    half = math.hypot(halves[0], halves[1])
    bounds = moved - half, moved + half
    word = _word(moved, bounds)
    return _row(a.id, a, b, word, _because(word), bounds, _units(moved, a, b))


def _half(claim: Claim) -> float | None:
    """Half width of the claim's own interval on the log scale; its band is wider by a factor."""
    if claim.lower is None or claim.upper is None:
        return None
    return math.log(claim.upper / claim.lower) / 2 / REPEAT


def _units(moved: float, a: Claim, b: Claim) -> float | None:
    if not a.noise_sd or not b.noise_sd:
        return None
    return moved / math.sqrt((a.noise_sd**2 + b.noise_sd**2) / 2)


def _word(moved: float, bounds: tuple[float, float]) -> Word:
    if moved == 0 and bounds[0] == bounds[1]:
        return "EQUAL"
    if bounds[0] <= 0 <= bounds[1]:
        return "WITHIN NOISE"
    return "HIGHER IN B" if moved > 0 else "LOWER IN B"


def _because(word: Word) -> str:
    if word == "WITHIN NOISE":
        return "the interval of the change holds 1"
    return "the interval of the change leaves 1 out"


def _length(a: Claim, b: Claim, of_a: Sequence[float], of_b: Sequence[float]) -> Row:
    """Acceptance lengths, by the spread between starts pooled over both sides."""
    df = len(of_a) + len(of_b) - 2
    if not of_a or not of_b or df < 1:
        if a.value == b.value:
            return _row(a.id, a, b, "EQUAL", "the same tokens were accepted in as many rounds")
        return _row(a.id, a, b, "NOT JUDGED", "one start a side: no noise was measured")
    logs = [[math.log(x) for x in side] for side in (of_a, of_b)]
    means = [math.fsum(x) / len(x) for x in logs]
    rest = math.fsum((x - m) ** 2 for side, m in zip(logs, means, strict=True) for x in side)
    sd = math.sqrt(rest / df)
    half = t_quantile(0.975, df) * sd * math.sqrt(1 / len(of_a) + 1 / len(of_b))
    moved = means[1] - means[0]
    bounds = moved - half, moved + half
    word = _word(moved, bounds)
    reason = "every start of both sides is alike" if word == "EQUAL" else _because(word)
    return _row(a.id, a, b, word, reason, bounds, moved / sd if sd else None)


def _share(a: Claim, b: Claim) -> Row:
    """A share of outputs equal to the baseline's: what speaks is the token ids, judged apart."""
    if a.value == b.value:
        return _row(a.id, a, b, "EQUAL", "the same share on both sides")
    return _row(a.id, a, b, "NOT JUDGED", "no noise of this share was measured")


def _outputs(a: Side, b: Side) -> Iterator[Row]:
    """Output token ids of A against those of B, group by group."""
    for group in dict.fromkeys(name for name, _ in a.outputs):
        items = [i for name, i in a.outputs if name == group and (group, i) in b.outputs]
        if not items:
            continue
        equal = sum(a.outputs[group, i] == b.outputs[group, i] for i in items)
        word, reason = _same_texts(equal, len(items), _added(a.aa, b.aa))
        yield Row(
            claim=f"outputs/{group}/token ids",
            word=word,
            a=None,
            b=None,
            change=equal / len(items),
            lower=None,
            upper=None,
            noise_units=None,
            reason=f"{equal} of {len(items)} outputs have equal token ids; {reason}",
        )


def _added(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int]:
    """Equal and compared outputs among the baselines of each side, both sides together."""
    known = [pair for pair in (a, b) if pair is not None]
    return sum(equal for equal, _ in known), sum(compared for _, compared in known)


def _same_texts(equal: int, items: int, aa: tuple[int, int]) -> tuple[Word, str]:
    if equal == items:
        return "EQUAL", "all of them"
    if not aa[1]:
        return "NOT JUDGED", "two starts of one configuration were never compared"
    chance = hypergeometric_tail(items - equal, items, aa[1] - aa[0], aa[1])
    shown = f"between baselines of one bundle {aa[0]} of {aa[1]} are, p = {chance:.2g}"
    return ("DIFFERENT" if chance <= OUTPUTS_P else "WITHIN NOISE"), shown


def summary(rows: Sequence[Row]) -> str:
    """How many claims got each word, and how many would by chance alone."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.word] = counts.get(row.word, 0) + 1
    judged = sum(row.lower is not None for row in rows)
    words = ", ".join(f"{count} {word}" for word, count in counts.items()) or "no claims"
    return f"{words}; of {judged} intervals at 95 % about {judged * 0.05:.1f} miss by chance alone"
