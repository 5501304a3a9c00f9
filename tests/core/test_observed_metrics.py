"""Speed figures of a report's two sides: what is a figure, its effect, its bounds and its words."""

from __future__ import annotations

import math

import pytest

from bundle.core.findings.subject import Arm, Band
from bundle.core.observed import ObservedArm, ObservedCell
from bundle.core.observed_metrics import (
    deciding_of,
    effects_of,
    percentiles_of,
    spreads_of,
    values_of,
)


@pytest.mark.parametrize("side", ["baseline", "speculative"])
def test_a_spread_that_one_side_alone_reports_is_known(side):
    sides = {"baseline": {"mean_tpot_ms": 10.0}, "speculative": {"mean_tpot_ms": 10.0}}
    sides[side]["mean_tpot_ms_sd"] = 0.5
    cell = ObservedCell(**{name: ObservedArm(metrics=given) for name, given in sides.items()})
    assert spreads_of(cell) == {"mean_tpot_ms": pytest.approx(0.05)}


@pytest.mark.parametrize(
    ("value", "found"), [(0.0, {}), (1e-9, {}), (2e-9, {"tpot": 2e-9}), (8.0, {"tpot": 8.0})]
)
def test_a_figure_as_good_as_none_is_none(value, found):
    side = ObservedArm(metrics={"mean_tpot_ms": value})
    assert values_of(side, side) == found


@pytest.mark.parametrize("other", [{}, {"mean_tpot_ms": 12.0, "median_tpot_ms": 11.0}])
def test_the_mean_stands_for_a_metric_where_the_median_would_do_as_well(other):
    side = ObservedArm(metrics={"median_tpot_ms": 9.0, "mean_tpot_ms": 10.0})
    assert values_of(side, ObservedArm(metrics=other)) == {"tpot": 10.0}


@pytest.mark.parametrize(("seconds", "found"), [(1e-9, {}), (4.0, {"output_throughput": 25.0})])
def test_a_duration_as_good_as_none_gives_no_throughput(seconds, found):
    side = ObservedArm(output_tokens=100, duration_s=seconds)
    assert values_of(side, side) == found


@pytest.mark.parametrize(
    ("noise", "spreads", "own", "basis"),
    [
        (0.05, {}, 0.05, "assumed noise of 5 %"),
        (0.05, {"mean_tpot_ms": 0.02}, 0.05, "assumed noise of 5 %"),
        (0.05, {"mean_tpot_ms": 0.2}, 0.2, "the report's own spread of 20 %"),
        (0.05, {"mean_ttft_ms": 0.2}, 0.05, "assumed noise of 5 %"),
        (0.0, {}, 0.0, "assumed noise of 0 %"),
    ],
)
def test_bounds_lie_on_both_sides_of_the_effect_by_the_noise(noise, spreads, own, basis):
    before, after = Arm(values={"tpot": 20.0}), Arm(values={"tpot": 10.0})
    effect = math.log(2)
    assert effects_of(before, after, noise, 0.05, spreads)["tpot"] == Band(
        estimate=pytest.approx(effect),
        lower=pytest.approx(effect - 1.645 * own),
        upper=pytest.approx(effect + 1.645 * own),
        basis=basis,
    )


@pytest.mark.parametrize(
    ("load", "metrics", "found"),
    [
        ({"concurrency": 8}, ["e2el"], ("tpot", "output_throughput", "e2el")),
        ({"concurrency": 8}, ["e2el", "tpot"], ("tpot", "output_throughput")),
        ({"concurrency": 8}, ["e2el", "output_throughput"], ("tpot", "output_throughput")),
        ({"concurrency": 8}, ["ttft"], ("tpot", "output_throughput")),
        ({"request_rate": 2.0}, ["e2el"], ("tpot", "e2el")),
    ],
)
def test_latency_decides_a_closed_loop_only_where_nothing_else_can(load, metrics, found):
    band = Band(estimate=0.1, lower=0.0, upper=0.2, basis="assumed noise of 5 %")
    assert deciding_of(ObservedCell(**load), dict.fromkeys(metrics, band)) == found


@pytest.mark.parametrize(
    ("baseline", "speculative", "found"),
    [
        ({"requests": 40}, {"requests": 40}, {"p99_tpot": 40}),
        ({"requests": 40, "completed": 30}, {"requests": 40}, {"p99_tpot": 30}),
        ({}, {"completed": 30}, {"p99_tpot": 30}),
        ({}, {}, {}),
    ],
)
def test_percentiles_of_both_sides_rest_on_the_fewest_answered(baseline, speculative, found):
    cell = ObservedCell(
        baseline=ObservedArm(metrics={"p99_tpot_ms": 9.0, "p99_ttft_ms": 9.0}, **baseline),
        speculative=ObservedArm(metrics={"p99_tpot_ms": 8.0, "p95_e2el_ms": 8.0}, **speculative),
    )
    assert percentiles_of(cell) == found
