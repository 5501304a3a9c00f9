"""Exact tests on small counts."""

from __future__ import annotations

import math
from itertools import count


def hypergeometric_tail(bad: int, items: int, others_bad: int, others: int) -> float:
    """Fisher's exact one-sided p: as many or more of the bad fall on the first group by chance."""
    total, drawn = items + others, bad + others_bad
    ways = math.comb(total, drawn)
    found = sum(
        math.comb(items, k) * math.comb(others, drawn - k)
        for k in range(bad, min(drawn, items) + 1)
    )
    return found / ways


def fewest_equal(items: int, equal: int, compared: int, *, p: float) -> int:
    """The fewest equal pairs of ``items`` that another sample still explains.

    Args:
        items: pairs in question.
        equal: equal pairs among those of the other sample.
        compared: pairs of the other sample.
        p: the chance at or below which it no longer explains them.
    """
    return next(
        fewest
        for fewest in count()
        if hypergeometric_tail(items - fewest, items, compared - equal, compared) > p
    )
