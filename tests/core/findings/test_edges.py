"""Values that lie exactly on a rule's threshold, and the least on either side of it."""

from __future__ import annotations

import math

import pytest

from bundle.core.findings import checklist
from bundle.core.findings.subject import Arm, Band, LoadPoint, QualityFacts
from tests.core.findings.test_rules import acceptance, band, found, state, subject

M = math.log(1.05)


def between(lower, estimate, upper):
    return Band(estimate=estimate, lower=lower, upper=upper, basis="made")


@pytest.mark.parametrize(
    ("tpot", "slower", "noise"),
    [
        (between(-0.2, -0.1, 0.0), "CLEAR", "TRIGGERED"),
        (between(-0.2, -0.1, -1e-9), "TRIGGERED", "CLEAR"),
        (between(0.0, 0.1, 0.2), "CLEAR", "TRIGGERED"),
        (between(1e-9, 0.1, 0.2), "CLEAR", "CLEAR"),
        (between(0.01, M, 0.2), "CLEAR", "TRIGGERED"),
        (between(0.01, M + 1e-9, 0.2), "CLEAR", "CLEAR"),
        (between(-0.5, 0.4, 1.3), "CLEAR", "TRIGGERED"),
    ],
)
def test_slower_and_within_noise_at_their_edges(tpot, slower, noise):
    fields = {"effects": {"tpot": tpot}}
    assert state("slower-than-baseline", **fields) == slower
    assert state("within-noise", **fields) == noise


def test_one_deciding_metric_is_enough_and_others_do_not_count():
    slow, fast = band(-0.2), band(0.3)
    both = {"effects": {"tpot": fast, "output_throughput": slow}}
    one = found("slower-than-baseline", **both)
    assert (one.state, one.evidence) == (
        "TRIGGERED",
        "output_throughput -18.1 % (-19.7 % to -16.5 %, made)",
    )
    assert found("slower-than-baseline", effects={"tpot": fast}).evidence.startswith("tpot +35.0")
    aside = {"effects": {"tpot": fast, "e2el": slow}}
    assert state("slower-than-baseline", **aside) == "CLEAR"
    assert state("within-noise", effects={"tpot": fast, "e2el": band(0.0)}) == "CLEAR"
    one = found("within-noise", effects={"tpot": fast, "output_throughput": band(0.0)})
    assert one.evidence.startswith("output_throughput +0.0 %")


@pytest.mark.parametrize(
    ("tpot", "tokens", "expected"),
    [
        (between(-0.1, 0.0, 0.1), math.exp(0.11), "TRIGGERED"),
        (between(-0.1, 0.0, 0.1), math.exp(0.09), "CLEAR"),
        (between(0.0, M - 1e-9, 0.1), 3.0, "TRIGGERED"),
        (between(0.0, M + 1e-9, 0.1), 3.0, "CLEAR"),
        (between(-0.12, -0.04, 0.04), math.exp(0.07), "CLEAR"),
        (between(-0.12, -0.04, 0.04), math.exp(0.09), "TRIGGERED"),
    ],
)
def test_a_step_that_costs_too_much_at_its_edges(tpot, tokens, expected):
    fields = {"effects": {"tpot": tpot}, **acceptance(effective=tokens)}
    assert state("step-cost-exceeds-gain", **fields) == expected


TENTH_SLOWER = "-9.5 % (-11.3 % to -7.7 %, made)"


def test_break_even_is_by_tpot_and_a_loss_of_throughput_stands_beside_it():
    known = acceptance(effective=2.0, length=3.0)
    both = {"tpot": band(0.5), "output_throughput": band(-0.1)}
    one = found("step-cost-exceeds-gain", k=3, effects=both, **known)
    assert one.state == "CLEAR"
    assert one.evidence == (
        "effective tokens per round 2.00 of at most 4, break-even 1.21; "
        f"tpot +64.9 % (+61.6 % to +68.2 %, made); output_throughput {TENTH_SLOWER}"
    )
    bare = {"effects": {"tpot": band(-0.1)}, **acceptance(length=3.0)}
    assert found("step-cost-exceeds-gain", **bare).evidence == (
        f"acceptance length 3.00, break-even 3.32; tpot {TENTH_SLOWER}"
    )


def test_the_slowest_deciding_metric_stands_in_for_tpot():
    effects = {"output_throughput": band(-0.1), "e2el": band(0.2)}
    deciding = ("tpot", "output_throughput", "e2el")
    fields = {"effects": effects, "deciding": deciding, **acceptance(effective=2.0)}
    one = found("step-cost-exceeds-gain", **fields)
    assert one.state == "TRIGGERED"
    assert one.evidence == (
        f"effective tokens per round 2.00, break-even 2.21; output_throughput {TENTH_SLOWER}"
    )


def test_break_even_is_that_of_the_report():
    """Measured on a CPU: the method gets 1.82 tokens a round and needs 1.60."""
    tpot = between(math.log(0.806), math.log(1.115), math.log(1.544))
    throughput = between(math.log(0.724), math.log(1.011), math.log(1.413))
    fields = {
        "baseline": Arm(values={"tpot": 93.769}),
        "arm": Arm(values={"tpot": 82.055}),
        "effects": {"tpot": tpot, "output_throughput": throughput},
        **acceptance(effective=1.8235),
    }
    one = found("step-cost-exceeds-gain", **fields)
    assert one.state == "CLEAR"
    assert one.evidence.startswith("effective tokens per round 1.82, break-even 1.60; tpot +11.5 %")


@pytest.mark.parametrize(
    ("before", "after", "effect", "expected"),
    [
        (90, 100, -0.05, "TRIGGERED"),
        (100, 98, 0.02, "TRIGGERED"),
        (90, 100, 0.05, "CLEAR"),
        (100, 90, -0.05, "CLEAR"),
    ],
)
def test_means_and_adjusted_effect_must_agree(before, after, effect, expected):
    sides = {"baseline": Arm(values={"tpot": before}), "arm": Arm(values={"tpot": after})}
    fields = {"effects": {"tpot": band(effect)}, **sides, **acceptance(effective=2.0)}
    assert state("step-cost-exceeds-gain", **fields) == expected


@pytest.mark.parametrize(
    ("rule", "names", "few"),
    [
        ("tail-regression", "p95_tpot, p99_tpot", "p95_tpot from 4 requests a start, 200 needed"),
        ("tail-pauses", "p95_itl, p99_itl", "p95_itl from 4 pauses a start, 200 needed"),
    ],
)
def test_an_unstable_percentile_is_no_missing_one(rule, names, few):
    first, _, second = names.partition(", ")
    speed = {"effects": {"tpot": band(0.3)}}
    assert found(rule, **speed).evidence == f"not measured on both sides: {names}"
    one = found(
        rule, baseline=Arm(values={first: 10.0}), percentiles={first: 4, second: 4}, **speed
    )
    assert one.state == "NOT MEASURED"
    assert one.evidence == (f"measured but unstable: {few}; not measured on both sides: {second}")
    both = {"baseline": Arm(values={first: 10.0, second: 20.0})}
    one = found(rule, percentiles={first: 4, second: 999}, **both, **speed)
    assert one.evidence.endswith(f"{second} from 999 {few.split()[3]} a start, 1000 needed")
    enough = found(rule, percentiles={first: 200, second: 1000}, **both, **speed)
    assert enough.evidence == f"not measured on both sides: {names}"


def test_pauses_without_a_speed_say_nothing():
    one = found("tail-pauses", effects={"p95_itl": band(0.3)})
    assert (one.state, one.evidence) == ("NOT MEASURED", "the speed of both sides is not known")


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"length": 1.5, "rate": 0.1}, "CLEAR"),
        ({"length": 1.49, "rate": 0.1}, "TRIGGERED"),
        ({"length": 1.4, "rate": 0.30}, "CLEAR"),
        ({"length": 1.4, "rate": 0.29}, "TRIGGERED"),
        ({"length": 1.3}, "CLEAR"),
        ({"length": 1.29}, "TRIGGERED"),
    ],
)
def test_low_acceptance_at_its_edges(rates, expected):
    assert state("low-acceptance", **acceptance(**rates)) == expected


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"rate": 0.0, "accepted": 0, "drafted": 29, "rounds": 9}, "NOT MEASURED"),
        ({"rate": 0.0, "accepted": 0, "drafted": 30, "rounds": 9}, "TRIGGERED"),
        ({"rate": 0.01}, "TRIGGERED"),
        ({"rate": 0.02}, "CLEAR"),
        ({"length": 3.995, "rounds": 100}, "TRIGGERED"),
        ({"length": 3.99, "rounds": 100}, "CLEAR"),
        ({"rate": 0.99, "length": 4.0, "accepted": 990, "drafted": 1000, "rounds": 500}, "CLEAR"),
        ({"rate": 1.0, "rounds": 100}, "TRIGGERED"),
        ({"rate": 1.0, "drafted": 100, "accepted": 100}, "TRIGGERED"),
    ],
)
def test_a_defect_of_acceptance_at_its_edges(rates, expected):
    assert state("zero-acceptance", k=3, **acceptance(**rates)) == expected


def test_a_defect_needs_k_to_know_the_maximum():
    assert state("zero-acceptance", **acceptance(length=4.0, rounds=100)) == "CLEAR"


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"length": 4.0051}, "TRIGGERED"),
        ({"length": 1.0}, "CLEAR"),
        ({"length": 0.999}, "TRIGGERED"),
        ({"per_position": (0.5, 0.504)}, "CLEAR"),
        ({"per_position": (0.5, 0.506)}, "TRIGGERED"),
        ({"per_position": (0.999, 0.7)}, "CLEAR"),
        ({"rate": 0.5, "accepted": 6, "drafted": 12, "rounds": 12}, "CLEAR"),
        ({"rate": 0.5, "accepted": 6, "drafted": 13, "rounds": 4}, "TRIGGERED"),
    ],
)
def test_impossible_figures_at_their_edges(rates, expected):
    assert state("implausible-acceptance", k=3, **acceptance(**rates)) == expected


def test_the_first_position_must_work_before_later_ones_are_called_weak():
    one = found("weak-later-positions", **acceptance(per_position=(0.10, 0.05)))
    assert (one.state, one.evidence) == (
        "TRIGGERED",
        "by position: 10.0 %, 5.0 %; from position 2 on almost nothing is added",
    )


def test_lost_capacity_at_its_limit_and_at_what_the_target_needs():
    def kv(before, after, **changes):
        sides = {"baseline": Arm(kv_tokens=before), "arm": Arm(kv_tokens=after)}
        return found("kv-capacity-loss", **sides, **changes)

    assert kv((100_000,), (70_000,)).state == "CLEAR"
    assert kv((100_000,), (69_999,)).state == "TRIGGERED"
    # By the means over starts: 90,000 to 75,000.
    assert kv((100_000, 80_000), (70_000, 80_000)).evidence == "16.7 % lost, 70000 tokens left"
    assert kv((100,), (100,)).evidence == "0.0 % lost, 100 tokens left"
    assert kv((100,), (90, 95), kv_needed=90).state == "CLEAR"
    one = kv((100,), (90, 95), kv_needed=91)
    assert (one.state, one.evidence) == (
        "TRIGGERED",
        "7.5 % lost, 90 tokens left; the target load at full context needs 91",
    )


def test_preemptions_are_any():
    assert state("preemptions", arm=Arm(preemptions=1)) == "TRIGGERED"
    one = found("preemptions", arm=Arm(preemptions=0), baseline=Arm(preemptions=7))
    assert (one.state, one.evidence) == ("CLEAR", "0 preemptions; baseline 7")


@pytest.mark.parametrize("name", ["p95_tpot", "p95_itl", "p95_ttft"])
def test_a_tail_is_worse_only_with_its_whole_interval(name):
    rule = {"p95_tpot": "tail-regression", "p95_itl": "tail-pauses", "p95_ttft": "ttft-regression"}
    sides = {"baseline": Arm(values={name: 10}), "arm": Arm(values={name: 11})}

    def at(upper):
        effects = {name: between(-0.2, -0.1, upper), "tpot": band(0.3)}
        return state(rule[name], effects=effects, **sides)

    assert at(0.0) == "CLEAR"
    assert at(-1e-9) == "TRIGGERED"


def test_longer_pauses_matter_where_the_mean_is_better():
    sides = {"baseline": Arm(values={"p95_itl": 10}), "arm": Arm(values={"p95_itl": 12})}

    def at(speed):
        effects = {"p95_itl": band(-0.2), "tpot": band(speed)}
        return state("tail-pauses", effects=effects, **sides)

    assert (at(1e-9), at(0.0), at(-0.1)) == ("TRIGGERED", "CLEAR", "CLEAR")


@pytest.mark.parametrize(
    ("base", "mine", "expected"),
    [
        ((1000.0,), (990.0,), "CLEAR"),
        ((1000.0,), (989.0,), "TRIGGERED"),
        ((989.0,), (1000.0,), "TRIGGERED"),
        ((1000.0, 980.0), (990.0,), "CLEAR"),
        ((), (990.0,), "NOT MEASURED"),
    ],
)
def test_work_may_differ_by_one_per_cent(base, mine, expected):
    fields = {"baseline": Arm(tokens=base), "arm": Arm(tokens=mine)}
    assert state("unequal-work", **fields) == expected


def test_work_is_held_against_what_was_asked_start_by_start():
    asked = Arm(tokens=(1000.0, 1000.0), expected_tokens=1000)
    short = Arm(tokens=(1000.0, 980.0), expected_tokens=1000)
    one = found("unequal-work", baseline=asked, arm=short)
    assert (one.state, one.evidence) == (
        "TRIGGERED",
        "g asked and made: 1000 and 980 output tokens, allowed difference 1.0 %",
    )
    assert state("unequal-work", baseline=short, arm=asked) == "TRIGGERED"
    assert found("unequal-work", arm=asked).evidence == (
        "g asked and made: 1000 and 1000 output tokens; the other side is not known"
    )


def test_rounded_figures_widen_what_work_may_differ_by():
    sides = {
        "baseline": Arm(tokens=(1000.0,), token_tolerance=0.01),
        "arm": Arm(tokens=(969.0,), token_tolerance=0.02),
    }
    assert state("unequal-work", **sides) == "CLEAR"
    sides["arm"] = Arm(tokens=(959.0,), token_tolerance=0.02)
    assert "allowed difference 4.0 %" in found("unequal-work", **sides).evidence


def test_lengths_may_differ_by_ten_per_cent():
    def at(a, b):
        fields = {"baseline": Arm(mean_length=a), "arm": Arm(mean_length=b)}
        return state("output-length-drift", **fields)

    assert (at(100.0, 90.0), at(90.0, 100.0)) == ("CLEAR", "CLEAR")
    assert (at(100.0, 89.9), at(89.9, 100.0)) == ("TRIGGERED", "TRIGGERED")


def test_one_lost_request_of_either_side_is_enough():
    whole = Arm(failed=0, missing=0)
    assert state("failed-requests", baseline=whole, arm=whole) == "CLEAR"
    for part in (Arm(failed=1, missing=0), Arm(failed=0, missing=1), Arm(missing=1)):
        assert state("failed-requests", baseline=part, arm=whole) == "TRIGGERED"
        assert state("failed-requests", baseline=whole, arm=part) == "TRIGGERED"
    assert state("failed-requests", baseline=whole, arm=Arm(missing=0)) == "NOT MEASURED"
    assert state("failed-requests", baseline=Arm(failed=0), arm=Arm(failed=0)) == "CLEAR"


@pytest.mark.parametrize("field", ["excess_requests", "excess_tokens"])
def test_one_request_or_token_too_many_is_foreign(field):
    own = Arm(excess_requests=0, excess_tokens=0)
    other = Arm(**{"excess_requests": 0, "excess_tokens": 0, field: 1})
    fewer = Arm(**{"excess_requests": 0, "excess_tokens": 0, field: -1})
    assert state("foreign-traffic", baseline=own, arm=other) == "TRIGGERED"
    assert state("foreign-traffic", baseline=other, arm=own) == "TRIGGERED"
    assert state("foreign-traffic", baseline=fewer, arm=own) == "CLEAR"
    assert state("foreign-traffic", baseline=own, arm=Arm(excess_requests=0)) == "NOT MEASURED"


def test_cache_hits_matter_where_the_cache_is_meant_to_be_off():
    def at(off, a, b):
        sides = {"baseline": Arm(prefix_hits=a), "arm": Arm(prefix_hits=b)}
        return state("prefix-cache-hits", prefix_cache_off=off, **sides)

    assert (at(True, 1, 0), at(True, 0, 1)) == ("TRIGGERED", "TRIGGERED")
    assert (at(True, None, 1), at(True, 1, None)) == ("TRIGGERED", "TRIGGERED")
    assert (at(True, 0, 0), at(False, 5, 5)) == ("CLEAR", "CLEAR")
    assert (at(None, 5, 5), at(True, None, None)) == ("NOT MEASURED", "NOT MEASURED")


@pytest.mark.parametrize(
    ("p", "expected"), [(0.01, "TRIGGERED"), (0.0101, "CLEAR"), (None, "NOT MEASURED")]
)
def test_outputs_differ_at_the_level_of_their_test(p, expected):
    facts = QualityFacts(
        state="SHOWN",
        reason="",
        diverged=5,
        comparable=50,
        aa_diverged=0,
        aa_comparable=50,
        outputs_p=p,
    )
    assert state("outputs-differ", quality=facts) == expected


def test_near_ties_are_those_that_are_not_wide():
    facts = QualityFacts(
        state="SHOWN",
        reason="",
        diverged=5,
        comparable=50,
        aa_diverged=0,
        aa_comparable=50,
        outputs_p=0.5,
        first_divergence=0,
        divergences=5,
        asked=4,
        wide=1,
    )
    assert found("outputs-differ", quality=facts).evidence == (
        "5 of 50 outputs differ from the baseline, the first at output token 1; asked again at 4 "
        "first divergences, 3 are near ties; 0 of 50 between baselines, p = 0.5"
    )


def test_one_reply_that_ran_out_of_tokens_is_enough():
    def facts(truncated, replies=9):
        return QualityFacts(state="SHOWN", reason="", truncated=truncated, replies=replies)

    assert state("truncated-outputs", quality=facts(1)) == "TRIGGERED"
    assert state("truncated-outputs", quality=facts(0)) == "CLEAR"
    assert state("truncated-outputs", quality=facts(0, replies=0)) == "NOT MEASURED"


def trend(*points):
    return tuple(
        LoadPoint(label=f"c{size}", size=size, metric=metric, band=band(value, half))
        for size, metric, value, half in points
    )


def test_a_gain_fades_by_more_than_both_intervals():
    # Halves of 0.03 and 0.04: their root sum of squares is 0.05.
    fading = trend((1, "tpot", 0.201, 0.03), (8, "tpot", 0.15, 0.04))
    steady = trend((1, "tpot", 0.199, 0.03), (8, "tpot", 0.15, 0.04))
    assert state("gain-fades-with-load", loads=fading) == "TRIGGERED"
    assert state("gain-fades-with-load", loads=steady) == "CLEAR"


def test_the_trend_is_that_of_the_first_metric_with_two_loads_in_order_of_size():
    loads = trend(
        (8, "output_throughput", -0.1, 0.02),
        (1, "output_throughput", 0.3, 0.02),
        (1, "tpot", 0.2, 0.02),
    )
    one = found("gain-fades-with-load", loads=loads)
    assert one.state == "TRIGGERED"
    # From +0.3 to -0.1 over the logarithm of 1 to 8: zero at three quarters of it.
    assert one.evidence == (
        f"output_throughput: c1 +35.0 %, c8 -9.5 %; the gain ends near {8**0.75:.3g}"
    )


def test_a_gain_that_ends_in_nothing_ends_there():
    loads = trend((1, "tpot", 0.2, 0.02), (4, "tpot", 0.0, 0.02), (16, "tpot", -0.1, 0.02))
    assert "ends near 4" in found("gain-fades-with-load", loads=loads).evidence
    rising = trend((1, "tpot", 0.0, 0.02), (4, "tpot", -0.2, 0.02))
    assert "ends" not in found("gain-fades-with-load", loads=rising).evidence


def test_chunks_contradict_only_beyond_the_noise():
    def at(itl, speed):
        return state("itl-counts-chunks", effects={"output_throughput": speed, "itl": band(itl)})

    slow = between(-0.05, 0.05, 0.15)
    assert at(-0.11, slow) == "TRIGGERED"
    assert at(-0.09, slow) == "CLEAR"
    assert at(0.14, slow) == "CLEAR"
    assert at(0.16, slow) == "TRIGGERED"
    assert at(0.3, between(0.0, 0.1, 0.2)) == "CLEAR"


def test_peaks_are_held_against_means_on_both_sides():
    for side in ("baseline", "arm"):
        one = {side: Arm(peak_throughput=10, values={"output_throughput": 10.5})}
        assert state("itl-counts-chunks", **one) == ("TRIGGERED")
        even = {side: Arm(peak_throughput=10.5, values={"output_throughput": 10.5})}
        assert state("itl-counts-chunks", **even) != "TRIGGERED"


def test_subjects_that_nobody_measured_trigger_nothing():
    states = {f.id: f.state for f in checklist([subject()])}
    fired = {name for name, value in states.items() if value == "TRIGGERED"}
    assert fired == {"no-baseline-timing"}
