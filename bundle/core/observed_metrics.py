"""The figures of a report's two sides under the names the rules use, and their effects."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from bundle.core.findings.subject import E2EL, THROUGHPUT, TPOT, Arm, Band
from bundle.core.observed import ObservedArm, ObservedCell
from bundle.core.observed_facts import tokens_of
from bundle.core.verdict_records import CLOSED_LOOP, OPEN_LOOP

ONE_SIDED_95 = 1.645
LEAST = 1e-9
"""Milliseconds, seconds or tokens per second up to which a figure is none."""
_STAND_INS = {
    TPOT: ("mean_tpot_ms", "median_tpot_ms"),
    E2EL: ("mean_e2el_ms", "median_e2el_ms"),
    "ttft": ("mean_ttft_ms", "median_ttft_ms"),
    "itl": ("mean_itl_ms", "median_itl_ms"),
    THROUGHPUT: ("output_throughput", "request_throughput", "total_token_throughput"),
}
_SPEED = frozenset(name for metric in (TPOT, E2EL, THROUGHPUT) for name in _STAND_INS[metric])


def noise_of(cell: ObservedCell, assumed: float) -> float:
    """The assumed noise, or the widest spread of a speed that the cell reports, if that is more.

    How far the first token or a percentile spreads says nothing of how far the speed does.
    """
    return max([assumed, *(sd for name, sd in spreads_of(cell).items() if name in _SPEED)])


def spreads_of(cell: ObservedCell) -> dict[str, float]:
    """By figure, the standard deviation of the log ratio that the two reported ones give."""
    sides = (cell.baseline.metrics, cell.speculative.metrics)
    spreads = {}
    for name in {*sides[0], *sides[1]}:
        if name.endswith("_sd"):
            figure = name.removesuffix("_sd")
            pairs = [(side.get(figure), side.get(name, 0.0)) for side in sides]
            spreads[figure] = math.hypot(*(sd / value for value, sd in pairs if value))
    return spreads


def noise_basis(noise: float, assumed: float) -> str:
    """Where a noise comes from, in words."""
    return "the report's own spread" if noise > assumed else "assumed noise"


def values_of(side: ObservedArm, other: ObservedArm) -> dict[str, float]:
    """Metrics under the names the rules use; a figure of 0, or as good as 0, is no figure.

    A mean is held against a mean, a median against a median: where the sides have no such figure in
    common, each keeps its own under its own name.
    """
    given, theirs = _given(side), _given(other)
    values = {n.removesuffix("_ms"): v for n, v in given.items() if re.match(r"p\d+_.*_ms$", n)}
    for metric, names in _STAND_INS.items():
        own = [n for n in names if n in given]
        rivals = [n for n in names if n in theirs]
        shared = [n for n in own if n in rivals]
        if shared or (own and not rivals):
            values[metric] = given[(shared or own)[0]]
        else:
            values |= {n: given[n] for n in own}
    return values


def _given(side: ObservedArm) -> dict[str, float]:
    """The figures of a side; its throughputs follow from tokens, requests and duration."""
    given = {name: value for name, value in side.metrics.items() if value > LEAST}
    tokens, requests = tokens_of(side)[0], side.completed or side.requests
    if side.duration_s is not None and side.duration_s > LEAST:
        if tokens:
            given.setdefault(THROUGHPUT, sum(tokens) / side.duration_s)
        if requests:
            given.setdefault("request_throughput", requests / side.duration_s)
    return given


def effects_of(
    baseline: Arm, arm: Arm, noise: float, assumed: float, spreads: Mapping[str, float]
) -> dict[str, Band]:
    """Log effects of every figure that both sides have, with the bounds that the noise gives.

    A figure whose own spread is wider than the noise of the speed is judged by its own.
    """
    effects = {}
    for metric in sorted(baseline.values.keys() & arm.values.keys()):
        names = _STAND_INS.get(metric, (f"{metric}_ms",))
        own = max([noise, *(spreads[name] for name in names if name in spreads)])
        h = ONE_SIDED_95 * own
        basis = f"{noise_basis(own, assumed)} of {100 * own:.3g} %"
        effect = math.log(arm.values[metric] / baseline.values[metric])
        effect = effect if metric == THROUGHPUT else -effect
        effects[metric] = Band(estimate=effect, lower=effect - h, upper=effect + h, basis=basis)
    return effects


def deciding_of(cell: ObservedCell, effects: Mapping[str, Band]) -> tuple[str, ...]:
    """The deciding metrics of a load.

    With a fixed number of requests in flight the throughput is that number over the latency, so
    that the latency decides where a report has nothing else.
    """
    if cell.request_rate is not None:
        return OPEN_LOOP
    only_latency = E2EL in effects and not any(m in effects for m in CLOSED_LOOP)
    return (*CLOSED_LOOP, E2EL) if only_latency else CLOSED_LOOP


def percentiles_of(cell: ObservedCell) -> dict[str, int]:
    """Percentiles that both sides show, with the requests they rest on where that is known.

    Those of ITL rest on pauses, which no report counts.
    """
    requests = [s.completed or s.requests for s in (cell.baseline, cell.speculative)]
    fewest = min((n for n in requests if n), default=None)
    if fewest is None:
        return {}
    shown = cell.baseline.metrics.keys() & cell.speculative.metrics.keys()
    return {
        name.removesuffix("_ms"): fewest
        for name in sorted(shown)
        if re.match(r"p9[59]_(?!itl)\w+_ms$", name)
    }
