"""Least squares over server starts: one effect with its interval for every arm of a cell.

The unit is the server start. A block starts the baseline, every group once and the baseline
again, so a block carries its own level and its own drift, and an arm's effect is what remains:

    y = b(block) + g(block) * (u - 1/2) + t(arm),    u = position / (methods + 1)

with y a log performance (larger is better) and t = 0 for the reference arm. With one method the
slope is common to all blocks, because a slope per block would use up half of the freedom and
cannot touch the method, which always stands in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from scipy import special

from bundle.core.least_squares import Array, Layout, build, estimate, t_quantile
from bundle.errors import InputError

BASELINE = "baseline"
"""The arm name that both baselines of a block carry."""


class Sample(Struct, frozen=True, kw_only=True):
    """One server start of one cell and metric.

    ``position`` counts from 0 (the first baseline) to methods + 1 (the last one); ``y`` is the
    natural logarithm of a performance, larger is better.
    """

    block: int
    position: int
    arm: str
    y: float


class Effect(Struct, frozen=True, kw_only=True):
    """The effect of one arm against the reference, in natural logarithms.

    ``df`` is the effective number of degrees of freedom (nu). ``lower`` and ``upper`` are
    two-sided bounds. Where no interval exists all four are None and ``reason`` says why.
    """

    arm: str
    log_effect: float
    se: float | None
    df: float | None
    lower: float | None
    upper: float | None
    starts: int
    reason: str | None = None

    @property
    def ratio(self) -> float:
        """Performance of the arm over the reference's."""
        return math.exp(self.log_effect)

    @property
    def lower_ratio(self) -> float | None:
        """Lower bound of :attr:`ratio`."""
        return None if self.lower is None else math.exp(self.lower)

    @property
    def upper_ratio(self) -> float | None:
        """Upper bound of :attr:`ratio`."""
        return None if self.upper is None else math.exp(self.upper)

    def bounds(self, alpha: float) -> tuple[float, float] | None:
        """Two-sided bounds that miss the truth with probability ``alpha``, log scale."""
        if self.se is None or self.df is None:
            return None
        half = t_quantile(1 - alpha / 2, self.df) * self.se
        return self.log_effect - half, self.log_effect + half

    def p_not_above(self, log_value: float) -> float | None:
        """One-sided p against the effect being at most ``log_value``: P(T_nu > its distance)."""
        if self.se is None or self.df is None:
            return None
        return float(special.stdtr(self.df, (log_value - self.log_effect) / self.se))


class Fit(Struct, frozen=True, kw_only=True):
    """All effects of one cell and metric, with the noise they were judged against.

    ``noise_sd`` is the pooled standard deviation of a start (log scale) and None without residual
    freedom. ``aa_mean`` and ``aa_sd`` describe last minus first baseline over the blocks.
    """

    effects: dict[str, Effect]
    noise_sd: float | None
    df: int
    blocks: int
    methods: int
    aa_mean: float | None
    aa_sd: float | None
    problems: tuple[str, ...]


def fit(
    samples: Sequence[Sample], *, methods: int, reference: str = BASELINE, alpha: float = 0.05
) -> Fit:
    """Fit one cell and metric; failed starts are simply absent from ``samples``.

    Args:
        samples: one per server start that succeeded.
        methods: the number of methods in the complete design, failed ones included.
        reference: the arm that the effects are measured against.
        alpha: two-sided error of the bounds.

    Raises:
        InputError: a value that is not finite, a position outside the block, a slot used twice.
    """
    _check(samples, methods)
    if not samples:
        return _empty(methods, "no start succeeded: nothing was measured")
    layout = build(
        [(s.block, s.position, s.arm) for s in samples], methods=methods, reference=reference
    )
    y = np.array([[s.y for s in samples]])
    blocks = len({s.block for s in samples})
    rss = float(((y @ layout.residual) ** 2).sum())
    noise = math.sqrt(rss / layout.df) if layout.df > 0 else None
    reason = _no_interval(blocks, layout.df, noise, float(np.abs(y).max()))
    if reason is None:
        effects = {a: _effect(layout, a, y, alpha) for a, ok in layout.estimable.items() if ok}
    else:
        effects = {a: _point(layout, a, y, reason) for a, ok in layout.estimable.items() if ok}
    aa_mean, aa_sd = _baseline_against_baseline(samples)
    return Fit(
        effects=effects,
        noise_sd=noise,
        df=layout.df,
        blocks=blocks,
        methods=methods,
        aa_mean=aa_mean,
        aa_sd=aa_sd,
        problems=_problems(layout, samples, reference, reason),
    )


def _check(samples: Sequence[Sample], methods: int) -> None:
    if methods < 1:
        raise InputError(f"expected at least one method in the design, found {methods}")
    seen: set[tuple[int, int]] = set()
    for s in samples:
        where = f"block {s.block}, position {s.position}, {s.arm}"
        if not math.isfinite(s.y):
            raise InputError(f"expected a finite log performance, found {s.y}", where=where)
        if not 0 <= s.position <= methods + 1:
            raise InputError(f"expected a position from 0 to {methods + 1}", where=where)
        if (s.block, s.position) in seen:
            raise InputError("expected one start per position, found two", where=where)
        seen.add((s.block, s.position))


def _empty(methods: int, problem: str) -> Fit:
    return Fit(
        effects={},
        noise_sd=None,
        df=0,
        blocks=0,
        methods=methods,
        aa_mean=None,
        aa_sd=None,
        problems=(problem,),
    )


def _no_interval(blocks: int, df: int, noise: float | None, scale: float) -> str | None:
    """Say why no interval exists, or None when one does."""
    if blocks < 2:
        return "one block only: an interval needs at least two"
    if noise is None:
        return "too few starts succeeded: no freedom is left to measure the noise"
    if noise <= 1e-12 * max(1.0, scale):
        # Server starts never agree to the last digit; a width of zero would claim certainty.
        return f"the starts do not differ at all over {df} degrees of freedom: copied or rounded"
    return None


def _effect(layout: Layout, arm: str, y: Array, alpha: float) -> Effect:
    found = estimate(layout, arm, y)
    effect, se, nu = float(found.effect[0]), float(found.se[0]), float(found.nu[0])
    half = t_quantile(1 - alpha / 2, nu) * se
    return Effect(
        arm=arm,
        log_effect=effect,
        se=se,
        df=nu,
        lower=effect - half,
        upper=effect + half,
        starts=int(layout.rows[arm].sum()),
    )


def _point(layout: Layout, arm: str, y: Array, reason: str) -> Effect:
    return Effect(
        arm=arm,
        log_effect=float(y[0] @ layout.solve[layout.columns[arm]]),
        se=None,
        df=None,
        lower=None,
        upper=None,
        starts=int(layout.rows[arm].sum()),
        reason=reason,
    )


def _problems(
    layout: Layout, samples: Sequence[Sample], reference: str, reason: str | None
) -> tuple[str, ...]:
    """Say which arms could not be told apart from their block, and why intervals are missing."""
    has_reference = any(s.arm == reference for s in samples)
    why = (
        "its starts cannot be told apart from the level and drift of their blocks"
        if has_reference
        else f"no start of the reference arm {reference} succeeded"
    )
    dropped = [f"{arm}: dropped, {why}" for arm, ok in layout.estimable.items() if not ok]
    return (*dropped, *([reason] if reason else []))


def _baseline_against_baseline(samples: Sequence[Sample]) -> tuple[float | None, float | None]:
    """Mean and standard deviation over blocks of last minus first baseline, log scale."""
    found: dict[int, list[tuple[int, float]]] = {}
    for s in samples:
        if s.arm == BASELINE:
            found.setdefault(s.block, []).append((s.position, s.y))
    pairs = [sorted(block) for block in found.values() if len(block) == 2]
    gaps = [last[1] - first[1] for first, last in pairs]
    if not gaps:
        return None, None
    return float(np.mean(gaps)), float(np.std(gaps, ddof=1)) if len(gaps) > 1 else None
