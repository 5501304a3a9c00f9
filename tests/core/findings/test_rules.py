"""Rules at their edges, on subjects made by hand."""

from __future__ import annotations

import math

import pytest

from bundle.core.findings import checklist
from bundle.core.findings.cost import kv_loss
from bundle.core.findings.subject import Arm, Band, LoadPoint, QualityFacts, Rates, Subject


def band(estimate, half=0.02):
    bounds = (None, None) if half is None else (estimate - half, estimate + half)
    return Band(estimate=estimate, lower=bounds[0], upper=bounds[1], basis="made")


def subject(**fields):
    return Subject(**{"group": "g", "task": "t", "load": "c1", **fields})


def state(name, **fields):
    return found(name, **fields).state


def found(name, **fields):
    return next(f for f in checklist([subject(**fields)]) if f.id == name)


def acceptance(**fields):
    return {"acceptance": Rates(**fields)}


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"accepted": 0, "drafted": 0, "rounds": 0}, "NOT MEASURED"),
        ({"length": 1.0}, "TRIGGERED"),
        ({"length": 1.4}, "CLEAR"),
        ({"rate": 0.0, "accepted": 0, "drafted": 10, "rounds": 5}, "NOT MEASURED"),
        ({"rate": 0.0, "accepted": 0, "drafted": 40, "rounds": 20}, "TRIGGERED"),
        ({"rate": 0.01, "accepted": 1, "drafted": 99, "rounds": 50}, "CLEAR"),
        ({"rate": 0.01, "accepted": 1, "drafted": 100, "rounds": 50}, "TRIGGERED"),
        ({"rate": 0.02, "accepted": 2, "drafted": 100, "rounds": 50}, "CLEAR"),
        ({"rate": 1.0, "accepted": 99, "drafted": 99, "rounds": 99}, "CLEAR"),
        ({"rate": 1.0, "accepted": 100, "drafted": 100, "rounds": 50}, "TRIGGERED"),
        ({"rate": 1.0}, "CLEAR"),
        ({"length": 4.0, "rounds": 100}, "TRIGGERED"),
        ({"length": 4.0, "rounds": 99}, "CLEAR"),
        ({"length": 3.9, "rounds": 100}, "CLEAR"),
        ({}, "NOT MEASURED"),
    ],
)
def test_zero_acceptance(rates, expected):
    assert state("zero-acceptance", k=3, **acceptance(**rates)) == expected


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"length": 1.2}, "TRIGGERED"),
        ({"length": 1.4}, "CLEAR"),
        ({"length": 1.4, "rate": 0.1}, "TRIGGERED"),
        ({"length": 1.45, "rate": 0.45}, "CLEAR"),
        ({"length": 1.6, "rate": 0.2}, "CLEAR"),
        ({"length": 1.0, "rate": 0.0}, "CLEAR"),
        ({"rate": 0.1}, "NOT MEASURED"),
    ],
)
def test_low_acceptance(rates, expected):
    assert state("low-acceptance", **acceptance(**rates)) == expected


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ({"rate": 1.2, "accepted": 12, "drafted": 10}, "more accepted than proposed"),
        ({"length": 4.5}, "with at most 3"),
        ({"length": 0.9}, "below 1"),
        ({"per_position": (0.5, 0.7)}, "more often than position 1"),
        ({"per_position": (1.0, 0.7)}, "position 1 is accepted always"),
        ({"rate": 1.0}, "every position is accepted always"),
        ({"length": 4.0}, "every position is accepted always"),
        ({"rate": 0.5, "accepted": 5, "drafted": 10, "rounds": 11}, "more rounds than"),
        ({"rate": 0.5, "accepted": 5, "drafted": 10, "rounds": 3}, "more than 3 proposed"),
    ],
)
def test_implausible_acceptance(rates, said):
    one = found("implausible-acceptance", k=3, **acceptance(**rates))
    assert one.state == "TRIGGERED"
    assert said in one.evidence


def test_plausible_acceptance():
    sound = {"rate": 0.5, "length": 2.5, "per_position": (0.8, 0.4, 0.3)}
    assert state("implausible-acceptance", k=3, **acceptance(**sound)) == "CLEAR"
    assert state("implausible-acceptance", k=3, **acceptance(coverage=0.5)) == "NOT MEASURED"
    counted = {"rate": 0.5, "accepted": 6, "drafted": 12, "rounds": 4}
    assert state("implausible-acceptance", k=3, **acceptance(**counted)) == "CLEAR"
    assert state("implausible-acceptance", **acceptance(**counted)) == "CLEAR"
    assert state("implausible-acceptance", **acceptance(length=9.0)) == "CLEAR"
    nothing = {"length": 1.0, "accepted": 0, "drafted": 0, "rounds": 5}
    assert state("implausible-acceptance", k=3, **acceptance(**nothing)) == "CLEAR"


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ((0.8, 0.5, 0.09), "TRIGGERED"),
        ((0.8, 0.5, 0.10), "CLEAR"),
        ((0.09, 0.05), "CLEAR"),
        ((0.09,), "CLEAR"),
        ((), "NOT MEASURED"),
    ],
)
def test_weak_later_positions(positions, expected):
    assert state("weak-later-positions", **acceptance(per_position=positions)) == expected


@pytest.mark.parametrize(("coverage", "expected"), [(0.49, "TRIGGERED"), (0.5, "CLEAR")])
def test_low_coverage(coverage, expected):
    assert state("low-coverage", **acceptance(coverage=coverage)) == expected


@pytest.mark.parametrize(
    ("rounds", "percentiles", "expected"),
    [
        (384, {}, "TRIGGERED"),
        (385, {}, "CLEAR"),
        (None, {"p95_tpot": 199}, "TRIGGERED"),
        (None, {"p95_tpot": 200, "p99_tpot": 1000}, "CLEAR"),
        (385, {"p99_tpot": 999}, "TRIGGERED"),
        (None, {}, "NOT MEASURED"),
    ],
)
def test_too_few_samples(rounds, percentiles, expected):
    fields = {"percentiles": percentiles, **acceptance(rounds=rounds)}
    assert state("too-few-samples", **fields) == expected


def test_few_samples_are_requests_or_pauses():
    fields = {"percentiles": {"p95_tpot": 4, "p99_itl": 45}}
    assert found("too-few-samples", **fields).evidence == (
        "p95_tpot from 4 requests a start, 200 needed; p99_itl from 45 pauses a start, 1000 needed"
    )


def test_outputs_are_graded_against_the_baselines_own():
    def facts(**fields):
        return QualityFacts(state="SHOWN", reason="", **fields)

    compared = {"diverged": 5, "comparable": 50}
    assert state("outputs-differ", quality=facts()) == "NOT MEASURED"
    assert state("outputs-differ", quality=facts(**compared)) == "NOT MEASURED"
    own = {"aa_diverged": 5, "aa_comparable": 50}
    assert state("outputs-differ", quality=facts(**compared, **own, outputs_p=0.5)) == "CLEAR"
    one = found("outputs-differ", quality=facts(
        **compared, **own, outputs_p=0.01, first_divergence=3))  # fmt: skip
    assert one.state == "TRIGGERED"
    assert "output token 4" in one.evidence


def test_a_side_without_timing_is_named():
    both = {"baseline": Arm(values={"tpot": 1.0}), "arm": Arm(values={"ttft": 1.0})}
    one = found("no-baseline-timing", **both)
    assert one.state == "TRIGGERED"
    assert "in common" in one.evidence
    assert "baseline" in found("no-baseline-timing", arm=Arm(values={"tpot": 1.0})).evidence
    assert state("no-baseline-timing", baseline=Arm(values={"ttft": 1.0}), arm=both["arm"]) == (
        "CLEAR"
    )


def speeds(throughput, **effects):
    return {"effects": {"output_throughput": band(throughput), **effects}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (speeds(0.3, itl=band(0.3)), "CLEAR"),
        (speeds(0.3, itl=band(-0.3)), "TRIGGERED"),
        (speeds(0.0, itl=band(0.3)), "TRIGGERED"),
        (speeds(0.0, itl=band(0.01)), "CLEAR"),
        (speeds(-0.3, itl=band(-0.3)), "CLEAR"),
        ({"effects": {"output_throughput": band(0.3, None), "itl": band(-0.3)}}, "CLEAR"),
        ({"effects": {"itl": band(0.3)}}, "TRIGGERED"),
        ({}, "NOT MEASURED"),
        ({"arm": Arm(peak_throughput=10)}, "CLEAR"),
        ({"arm": Arm(peak_throughput=10, values={"output_throughput": 20})}, "TRIGGERED"),
    ],
)
def test_chunk_figures(fields, expected):
    assert state("itl-counts-chunks", **fields) == expected


@pytest.mark.parametrize(
    ("estimate", "half", "slower", "noise"),
    [
        (-0.03, 0.02, "TRIGGERED", "CLEAR"),
        (-0.01, 0.02, "CLEAR", "TRIGGERED"),
        (0.03, 0.02, "CLEAR", "TRIGGERED"),
        (0.20, 0.02, "CLEAR", "CLEAR"),
        (0.20, None, "NOT MEASURED", "NOT MEASURED"),
    ],
)
def test_slower_and_within_noise(estimate, half, slower, noise):
    fields = {"effects": {"tpot": band(estimate, half)}}
    assert state("slower-than-baseline", **fields) == slower
    assert state("within-noise", **fields) == noise


@pytest.mark.parametrize(
    ("estimate", "rates", "expected"),
    [
        (-0.2, {"length": 2.0}, "TRIGGERED"),
        (-0.2, {"length": 1.01}, "CLEAR"),
        (0.04, {"length": 2.0}, "TRIGGERED"),
        (0.06, {"length": 2.0}, "CLEAR"),
        (-0.2, {"effective": 1.0, "length": 3.0}, "CLEAR"),
        (-0.2, {"effective": 0.0}, "NOT MEASURED"),
        (-0.2, {}, "NOT MEASURED"),
    ],
)
def test_step_cost(estimate, rates, expected):
    fields = {"effects": {"tpot": band(estimate)}, **acceptance(**rates)}
    assert state("step-cost-exceeds-gain", **fields) == expected


@pytest.mark.parametrize(
    ("estimate", "rates", "expected"),
    [
        (math.log(2.2), {"effective": 2.0, "length": 3.0}, "TRIGGERED"),
        (math.log(2.2), {"length": 2.0}, "TRIGGERED"),
        (math.log(2.2), {"effective": 2.2}, "CLEAR"),
        (math.log(2.2), {"effective": 3.0}, "CLEAR"),
        (math.log(1.1), {"length": 1.0}, "TRIGGERED"),
        (math.log(2.2), {"effective": 0.0}, "NOT MEASURED"),
        (math.log(2.2), {}, "NOT MEASURED"),
    ],
)
def test_gain_beyond_the_tokens_per_round(estimate, rates, expected):
    fields = {"effects": {"tpot": band(estimate)}, **acceptance(**rates)}
    assert state("gain-exceeds-acceptance", **fields) == expected


def test_gain_beyond_the_tokens_per_round_needs_bounds_and_a_fixed_load():
    known = acceptance(effective=2.0)
    bare = {"effects": {"tpot": band(0.9, half=None)}, **known}
    assert state("gain-exceeds-acceptance", **bare) == "NOT MEASURED"
    assert state("gain-exceeds-acceptance", **known) == "NOT MEASURED"
    rate = {"effects": {"tpot": band(0.9)}, "deciding": ("tpot", "e2el"), **known}
    assert state("gain-exceeds-acceptance", **rate) == "NOT MEASURED"
    throughput = {"effects": {"output_throughput": band(math.log(4.0))}, **known}
    assert found("gain-exceeds-acceptance", **throughput).evidence == (
        "output_throughput 4.00 times as fast, at least 3.92 (made), with 2.00 tokens a round: "
        "a step of 0.50 times the baseline's"
    )
    assert found("gain-exceeds-acceptance", **throughput).effect == "blocks"


def points(*estimates, half=0.02):
    return tuple(
        LoadPoint(label=f"c{2**i}", size=2**i, metric="tpot", band=band(e, half))
        for i, e in enumerate(estimates)
    )


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        (points(0.4, 0.2, -0.1), "TRIGGERED"),
        (points(0.4, 0.39), "CLEAR"),
        (points(0.1, 0.4), "CLEAR"),
        (points(0.4), "NOT MEASURED"),
        (points(0.4, 0.1, half=None), "NOT MEASURED"),
    ],
)
def test_gain_fades_with_load(loads, expected):
    assert state("gain-fades-with-load", loads=loads) == expected


def test_where_the_gain_ends_is_said():
    said = found("gain-fades-with-load", loads=points(0.2, -0.2)).evidence
    assert f"near {math.sqrt(2):.3g}" in said
    assert "near" not in found("gain-fades-with-load", loads=points(0.4, 0.2)).evidence


def sides(metric, before, after, effect):
    return {
        "baseline": Arm(values={metric: before}),
        "arm": Arm(values={metric: after}),
        "effects": {metric: effect, "tpot": band(0.3)},
    }


@pytest.mark.parametrize(
    ("name", "metric"),
    [("tail-regression", "p95_tpot"), ("ttft-regression", "p99_ttft"), ("ttft-regression", "ttft")],
)
def test_tails(name, metric):
    assert state(name, **sides(metric, 10, 12, band(-0.2))) == "TRIGGERED"
    assert state(name, **sides(metric, 10, 10, band(0.0))) == "CLEAR"
    assert state(name, **sides(metric, 10, 12, band(-0.2, None))) == "NOT MEASURED"


def test_tail_pauses():
    assert state("tail-pauses", **sides("p95_itl", 10, 12, band(-0.2))) == "TRIGGERED"
    assert state("tail-pauses", **sides("p95_itl", 10, 9, band(0.1))) == "CLEAR"
    assert state("tail-pauses", **sides("p95_itl", 10, 12, band(-0.2, None))) == "NOT MEASURED"


def test_kv_capacity():
    assert kv_loss(subject(baseline=Arm(kv_tokens=(0,)), arm=Arm(kv_tokens=(5,)))) is None
    more = found("kv-capacity-loss", baseline=Arm(kv_tokens=(100,)), arm=Arm(kv_tokens=(110,)))
    assert "10.0 % gained" in more.evidence


def test_startup_variance_of_identical_sides():
    pools = {"baseline": Arm(kv_launches={"": (100,)}), "arm": Arm(kv_launches={"": (95,)})}
    assert state("startup-variance", identical=True, **pools) == "TRIGGERED"
    assert state("startup-variance", identical=False, **pools) == "NOT MEASURED"


def test_startup_variance_compares_equal_states_of_the_cache_alone():
    apart = {"arm": Arm(kv_launches={"cold": (100,), "warm": (95, 95)})}
    one = found("startup-variance", **apart)
    assert one.state == "CLEAR"
    assert one.evidence == "95 to 95 tokens over 2 identical launches, compile cache warm"
    wide = {"arm": Arm(kv_launches={"cold": (100, 98), "warm": (95, 95)})}
    assert found("startup-variance", **wide).evidence.startswith("98 to 100 tokens over 2")


def test_hits_and_traffic_half_known_are_not_clear():
    half = {"baseline": Arm(prefix_hits=0, excess_tokens=0, excess_requests=0)}
    assert state("prefix-cache-hits", prefix_cache_off=True, **half) == "NOT MEASURED"
    assert state("foreign-traffic", **half) == "NOT MEASURED"


def test_work_of_nothing_is_equal():
    zero = Arm(tokens=(0.0,))
    assert state("unequal-work", baseline=zero, arm=zero) == "CLEAR"


def test_a_cause_without_words():
    assert "names no cause" in found("server-did-not-start", started=False).evidence
    other = found("out-of-memory", started=False, log_causes=(("unsupported-method", "x"),))
    assert (other.state, other.evidence) == ("CLEAR", "the log names another cause")


def test_a_rule_that_fires_anywhere_counts_for_the_group():
    dummy = [subject(dummy=False), subject(dummy=True, load="c8"), subject(load="c9")]
    one = [f for f in checklist(dummy) if f.id == "dummy-weights"]
    assert [f.state for f in one] == ["TRIGGERED"]
