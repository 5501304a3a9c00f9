"""Exact paired tests over items: quality against the baseline, outputs against chance.

Quality is scored per item and start. Two comparisons are made. The first counts, over the items
on which all baseline starts agree, what the method lost and won. Choosing those items by the
baseline's luck favours the baseline: an item that fails now and then is counted only when it
happened to pass every time. So the claim BROKEN also needs the second, which treats both sides
alike: the method against the first baselines and against the last ones, over all items.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from msgspec import Struct
from scipy import special

from bundle.core.verdict_records import QualityState

SIGNIFICANT = 0.05
"""One-sided level of the quality test."""

NET_LOSS_ALLOWED = 0.05
"""Share of the items that may be lost, net, with quality still shown."""

MOST_EXCLUDED = 0.10
"""Share of items without a clear score beyond which quality counts as not measured."""

ITEMS_WANTED = 120
"""Checkable items below which a real loss is likely to be missed; the result says so."""


class ItemScores(Struct, frozen=True, kw_only=True):
    """Passes of one item, one per start: first baselines, last baselines, the method.

    ``same_output`` says that the method wrote the baseline's tokens: it cannot have lost.
    """

    item: str
    first: tuple[bool, ...]
    last: tuple[bool, ...]
    method: tuple[bool, ...]
    same_output: bool = False


class Quality(Struct, frozen=True, kw_only=True):
    """The quality of a method against its baseline, with the counts behind the state.

    ``items`` is how many were compared after ``excluded`` ones dropped out; ``p`` is the test over
    those, ``p_symmetric`` the larger of the two that treat both sides alike.
    """

    state: QualityState
    items: int
    excluded: int
    losses: int
    wins: int
    p: float
    p_symmetric: float
    reasons: tuple[str, ...]


def mcnemar(losses: int, wins: int) -> float:
    """One-sided exact McNemar test: P(X >= losses) for X ~ Binomial(losses + wins, 1/2)."""
    return sign_test(losses, wins)


def sign_test(more: int, fewer: int) -> float:
    """One-sided exact sign test that ``more`` exceeds ``fewer`` by chance; 1 without any."""
    if more < 0 or fewer < 0:
        raise ValueError(f"expected counts, found {more} and {fewer}")
    return float(special.bdtrc(more - 1, more + fewer, 0.5)) if more else 1.0


def majority(scores: Sequence[bool]) -> bool | None:
    """One score per item over its starts; None for a tie or without any start."""
    passed = sum(scores)
    return None if 2 * passed == len(scores) else 2 * passed > len(scores)


def compare(
    items: Sequence[ItemScores],
    *,
    broken_replies: int = 0,
    doubts: Sequence[str] = (),
) -> Quality:
    """Judge quality from the scores of every checkable item.

    Args:
        items: scores by item and start.
        broken_replies: empty or one-token replies of the method where the baseline has none.
        doubts: reasons from elsewhere (wide gaps or an excess of divergences at first
            differences) that keep quality from being shown.
    """
    used = [(i, _agreed(i), majority(i.method)) for i in items]
    clear = [(i, b, m) for i, b, m in used if b is not None and m is not None]
    losses = sum(b and not m and not i.same_output for i, b, m in clear)
    wins = sum(m and not b and not i.same_output for i, b, m in clear)
    p = mcnemar(losses, wins)
    symmetric = max(_p_against((i.first, i) for i in items), _p_against((i.last, i) for i in items))
    state, reasons = _state(len(items), len(clear), losses, wins, p, symmetric)
    if broken_replies:
        note = f"{broken_replies} empty or one-token replies where the baseline has none"
        state, reasons = "BROKEN", [note, *reasons]
    elif doubts:
        reasons += doubts
        state = "NOT SHOWN" if state == "SHOWN" else state
    return Quality(
        state=state,
        items=len(clear),
        excluded=len(items) - len(clear),
        losses=losses,
        wins=wins,
        p=p,
        p_symmetric=symmetric,
        reasons=tuple(reasons),
    )


def blocked_share(items: int, loss: float) -> float:
    """Probability that a true loss of a share of the items, with none won, is not shown (exact)."""
    blocked = next(
        lost for lost in count() if mcnemar(lost, 0) <= SIGNIFICANT or _too_many(lost, items)
    )
    return float(special.bdtrc(blocked - 1, items, loss))


def _too_many(net: int, items: int) -> bool:
    """Whether a net loss is more than quality may lose and still be shown."""
    return net > NET_LOSS_ALLOWED * items


def _agreed(item: ItemScores) -> bool | None:
    """The score that every baseline start gave, or None where they differ or are missing."""
    scores = {*item.first, *item.last}
    return scores.pop() if len(scores) == 1 else None


def _p_against(pairs: Iterable[tuple[Sequence[bool], ItemScores]]) -> float:
    """McNemar of the method against one baseline's scores, each by its majority."""
    losses = wins = 0
    for theirs, i in pairs:
        base, method = majority(theirs), majority(i.method)
        if base is None or method is None or i.same_output:
            continue
        losses += base and not method
        wins += method and not base
    return mcnemar(losses, wins)


def _state(
    given: int, clear: int, losses: int, wins: int, p: float, symmetric: float
) -> tuple[QualityState, list[str]]:
    """BROKEN, SHOWN, NOT SHOWN or NOT MEASURED, with the numbers it rests on."""
    if not given:
        return "NOT MEASURED", ["no item was scored"]
    if given - clear > MOST_EXCLUDED * given:
        note = f"{given - clear} of {given} items have no clear score: the starts disagree"
        return "NOT MEASURED", [note]
    net = losses - wins
    counts = [f"{losses} of {clear} items lost, {wins} won (exact p = {p:.3g})"]
    if clear < ITEMS_WANTED:
        counts.append(
            f"{clear} items only: a loss of 10 points is blocked in about "
            f"{100 * blocked_share(clear, 0.10):.0f} % of cases"
        )
    if p <= SIGNIFICANT:
        if symmetric <= SIGNIFICANT:
            return "BROKEN", counts
        counts.append(
            f"not against each baseline alone (p = {symmetric:.3g}): the baseline itself wavers"
        )
        return "NOT SHOWN", counts
    if _too_many(net, clear):
        return "NOT SHOWN", [*counts, f"net loss of {net}, allowed {NET_LOSS_ALLOWED:.0%}"]
    return "SHOWN", counts
