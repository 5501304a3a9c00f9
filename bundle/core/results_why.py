"""Why a method pays or not: the part of the results that explains its speed."""

from __future__ import annotations

from msgspec import Struct


class Loss(Struct, frozen=True, kw_only=True):
    """One step down from full acceptance to what was measured.

    ``factor`` divides the speed-up, below 1 it is a gain; ``share`` is the part of all losses on
    the log scale, 0 for a gain.
    """

    name: str
    factor: float
    share: float


class BreakEven(Struct, frozen=True, kw_only=True):
    """Why a method pays or not at one cell. Step times in milliseconds.

    Three speed-ups, each a multiple of the baseline: ``full`` (k + 1) if every draft were accepted
    and free, ``effective`` (tokens per decode round) if the drafts that there were had been free,
    ``measured``. ``losses`` lead from the first to the last.
    ``break_even`` is the method's step time over the baseline's: the method pays above that many
    effective tokens per round. ``predicted`` uses the effective tokens of ``predicted_from``.
    """

    group: str
    task: str
    load: str
    effective: float | None
    step_ms: float | None
    baseline_step_ms: float | None
    break_even: float | None
    predicted: float | None
    predicted_from: str | None
    measured: float | None
    full: int
    losses: tuple[Loss, ...] = ()


class SplitRow(Struct, frozen=True, kw_only=True):
    """One effect in two parts, by a matched baseline on the method's own engine path.

    ``path_*`` is the matched baseline against the stock one, ``spec_*`` the method against the
    matched one; the two ratios multiply to the whole. Bounds are two-sided 95 %.
    """

    group: str
    task: str
    load: str
    metric: str
    matched: str
    path_ratio: float
    path_lower: float | None
    path_upper: float | None
    spec_ratio: float
    spec_lower: float | None
    spec_upper: float | None
