"""How many further blocks would decide a cell, at the noise measured: a planning figure.

Rule: the smallest total B' up to the limit with
|est_k - m| >= (t(q, df') + t(0.80, df')) * se_k * sqrt(B / B'), where df' is the freedom of the
complete design with B' blocks. When every estimate lies above the margin a SHIP is planned:
q = 1 - alpha / 2 and the slowest metric counts. Otherwise an ABANDON is: q = 1 - alpha / 2 / K for
K metrics, and the fastest metric below the margin counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from bundle.core.layout import Effect
from bundle.core.least_squares import t_quantile

MOST_BLOCKS = 20
"""No plan goes beyond this many blocks in all."""

_POWER = 0.80


class Plan(Struct, frozen=True, kw_only=True):
    """Blocks still to run (``further``) for ``towards`` SHIP or ABANDON; None with a reason."""

    further: int | None
    towards: str | None
    note: str


def design_freedom(blocks: int, methods: int) -> int:
    """Residual degrees of freedom of a complete design without failed starts."""
    return (2 if methods == 1 else methods) * (blocks - 1)


def further_blocks(
    effects: Sequence[Effect],
    *,
    margin_log: float,
    blocks: int,
    methods: int,
    alpha: float = 0.05,
    most: int = MOST_BLOCKS,
) -> Plan:
    """Plan the blocks that would decide, with 80 % probability, what ``effects`` leave open.

    Args:
        effects: one per deciding metric, at the target load.
        margin_log: log(1 + margin).
        blocks: blocks measured so far (B).
        methods: methods in the complete design.
        alpha: two-sided error of the verdict that follows.
        most: the largest total considered.
    """
    if not effects:
        return Plan(further=None, towards=None, note="nothing was measured to plan from")
    if blocks < 2:
        note = "one more block gives the first interval; without one no noise is known to plan from"
        return Plan(further=1, towards=None, note=note)
    gaps = [(e.log_effect - margin_log, e.se) for e in effects if e.se is not None]
    if len(gaps) < len(effects):
        return Plan(further=None, towards=None, note="no noise was measured to plan from")
    shipping = all(gap > 0 for gap, _ in gaps)
    towards = "SHIP" if shipping else "ABANDON"
    q = 1 - alpha / 2 if shipping else 1 - alpha / 2 / len(effects)
    counted = [(abs(gap), se) for gap, se in gaps if shipping or gap < 0]
    totals = [_total(gap, se, blocks, methods, q, most) for gap, se in counted]
    found = [t for t in totals if t is not None]
    if not found or (shipping and len(found) < len(totals)):
        note = f"too close to the margin to decide within {most} blocks at the noise measured"
        return Plan(further=None, towards=None, note=note)
    total = max(found) if shipping else min(found)
    note = (
        f"planning figure: at the noise measured {total} blocks in all "
        f"would give {towards} with a probability of about 80 %, if the estimates hold"
    )
    return Plan(further=total - blocks, towards=towards, note=note)


def _total(gap: float, se: float, blocks: int, methods: int, q: float, most: int) -> int | None:
    """Smallest total of blocks, above the present one, at which one metric would decide."""
    for total in range(blocks + 1, most + 1):
        df = design_freedom(total, methods)
        needed = t_quantile(q, df) + t_quantile(_POWER, df)
        if gap >= needed * se * math.sqrt(blocks / total):
            return total
    return None
