"""What the judge says of lm-evaluation-harness: one record per method, one row per number."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

LmEvalState = Literal["SHOWN", "NOT SHOWN", "BROKEN", "NOT MEASURED"]


class LmEvalRow(Struct, frozen=True, kw_only=True):
    """One metric of one task, method beside baseline (the mean over the baseline's starts).

    ``stderr`` is the method's, over ``items``. Where its items could be paired with the baseline's,
    ``compared`` of them were after ``excluded`` ones dropped out on which the baseline disagrees
    with itself; otherwise these are None and ``reason`` says why. ``p_value`` is one-sided, for a
    loss.
    """

    task: str
    metric: str
    filter: str
    items: int
    value: float | None
    stderr: float | None
    baseline: float | None
    compared: int | None = None
    excluded: int | None = None
    won: int | None = None
    lost: int | None = None
    p_value: float | None = None
    reason: str = ""


class LmEvalGroup(Struct, frozen=True, kw_only=True):
    """One method against the baseline over all tasks.

    ``state`` is over the items of every task together, by the first metric of each that passes or
    fails an item. ``version`` is the harness's, as it says itself.
    """

    group: str
    state: LmEvalState
    reason: str
    version: str = ""
    rows: tuple[LmEvalRow, ...] = ()
