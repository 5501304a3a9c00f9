"""What the checklist says of speed exactly at its limits, and which figures it names."""

from __future__ import annotations

import math

import pytest

from bundle.core.chunks import Chunks
from bundle.core.findings.subject import Arm
from tests.core.findings.test_edges import between, trend
from tests.core.findings.test_rules import acceptance, band, found, state


@pytest.mark.parametrize("name", ["slower-than-baseline", "within-noise"])
def test_why_an_effect_says_nothing(name):
    bare = {"tpot": band(0.1, half=None)}
    for effects, said in (
        ({}, "no deciding metric on both sides"),
        ({"e2el": band(0.1)}, "no deciding metric on both sides"),
        (bare, "no effect with bounds"),
    ):
        one = found(name, effects=effects)
        assert (one.state, one.evidence) == ("NOT MEASURED", said)


def test_chunks_are_told_of_both_sides():
    merged, single = Chunks(pauses=100, tokens=250), Chunks(pauses=200, tokens=200)
    one = found("itl-counts-chunks", baseline=Arm(chunks=single), arm=Arm(chunks=merged))
    assert (one.state, one.evidence) == (
        "TRIGGERED",
        "g: 2.5 tokens a chunk, 250 tokens in 100 chunks after the first",
    )
    one = found("itl-counts-chunks", baseline=Arm(chunks=single), arm=Arm(chunks=single))
    said = "1 tokens a chunk, 200 tokens in 200 chunks after the first"
    assert (one.state, one.evidence) == ("CLEAR", f"baseline: {said}; g: {said}")


@pytest.mark.parametrize(
    ("peaks", "expected", "evidence"),
    [
        ((10, 20), "TRIGGERED", "peak rate +100.0 % while the speed is +0.0 %"),
        ((20, 10), "TRIGGERED", "peak rate -50.0 % while the speed is +0.0 %"),
        ((10, 10), "CLEAR", "chunk-based figures do not contradict the others"),
    ],
)
def test_peak_rates_are_compared_as_a_ratio(peaks, expected, evidence):
    sides = {"baseline": Arm(peak_throughput=peaks[0]), "arm": Arm(peak_throughput=peaks[1])}
    one = found("itl-counts-chunks", effects={"tpot": band(0.0)}, **sides)
    assert (one.state, one.evidence) == (expected, evidence)


@pytest.mark.parametrize(
    ("itl", "speed"),
    [
        (-0.25, 0.5),  # as slow as the noise, no slower
        (-0.75, -0.25),  # both slower: the speed by as much as the noise
        (0.25, -0.5),  # as fast as the noise, no faster
        (0.75, 0.25),  # both faster: the speed by as much as the noise
        (-0.375, -0.125),  # slower, but no further from the speed than the noise
        (0.375, 0.125),
    ],
)
def test_chunks_do_not_contradict_exactly_at_the_noise(itl, speed):
    def at(itl, speed):
        effects = {"tpot": between(speed - 0.25, speed, speed + 0.25), "itl": band(itl)}
        return state("itl-counts-chunks", effects=effects)

    assert at(itl, speed) == "CLEAR"
    further = itl + math.copysign(2**-10, itl)
    nearer = speed - math.copysign(2**-10, itl)
    assert "TRIGGERED" in (at(further, speed), at(itl, nearer))


def test_without_bounds_nothing_contradicts():
    for itl in (-0.5, 0.5):
        effects = {"tpot": band(0.0, half=None), "itl": band(itl)}
        assert state("itl-counts-chunks", effects=effects) == "CLEAR"


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # 2 tokens a round, and an interval that reaches exactly a factor of 2 up.
        (between(-1.0, 0.0, math.log(2.0)), "CLEAR"),
        (between(-1.0, 0.0, math.log(1.99)), "TRIGGERED"),
        (between(-0.7, -0.6, 0.0), "TRIGGERED"),
        # An effect of exactly the margin is no more than the margin.
        (between(0.0, 0.0625, 0.125), "TRIGGERED"),
        (between(0.0, 0.0626, 0.125), "CLEAR"),
    ],
)
def test_a_step_costs_too_much_exactly_at_the_margin(metric, expected):
    same = {"baseline": Arm(values={"tpot": 50.0}), "arm": Arm(values={"tpot": 50.0})}
    fields = {"effects": {"tpot": metric}, "margin": 0.0625, **same, **acceptance(effective=2.0)}
    assert state("step-cost-exceeds-gain", **fields) == expected


@pytest.mark.parametrize(("after", "expected"), [(50.0, "TRIGGERED"), (49.99, "CLEAR")])
def test_tokens_that_break_even_leave_exactly_a_margin_of_nothing(after, expected):
    sides = {"baseline": Arm(values={"tpot": 50.0}), "arm": Arm(values={"tpot": after})}
    fields = {"effects": {"tpot": band(-0.1)}, "margin": 0.0, **sides, **acceptance(effective=2.0)}
    assert state("step-cost-exceeds-gain", **fields) == expected


@pytest.mark.parametrize(("other", "named"), [(0.0, False), (-0.01, True)])
def test_a_metric_that_stays_is_not_named_beside_break_even(other, named):
    effects = {"tpot": band(-0.1), "output_throughput": band(other)}
    one = found("step-cost-exceeds-gain", effects=effects, **acceptance(effective=2.0))
    assert ("output_throughput" in one.evidence) == named


@pytest.mark.parametrize("side", ["baseline", "arm"])
def test_tpot_of_one_side_gives_no_break_even(side):
    alone = {side: Arm(values={"tpot": 50.0})}
    effects = {"output_throughput": band(-0.1)}
    one = found("step-cost-exceeds-gain", effects=effects, **alone, **acceptance(effective=2.0))
    assert one.evidence.startswith("effective tokens per round 2.00, break-even 2.21; output_")


def test_a_gain_of_exactly_the_tokens_per_round_is_possible():
    def at(lower):
        metric = between(lower, 0.8, 0.9)
        return state(
            "gain-exceeds-acceptance", effects={"tpot": metric}, **acceptance(effective=2.0)
        )

    assert (at(math.log(2.0)), at(math.log(2.0) + 1e-9)) == ("CLEAR", "TRIGGERED")


def test_an_impossible_gain_is_that_of_the_first_deciding_metric_with_bounds():
    known = acceptance(effective=2.0)
    fast, slow = band(math.log(4.0)), band(math.log(3.0))
    both = {"output_throughput": slow, "tpot": fast}
    one = found("gain-exceeds-acceptance", effects=both, **known)
    assert one.evidence.startswith("tpot 4.00 times as fast, at least 3.92 (made)")
    bare = {"output_throughput": slow, "tpot": band(math.log(4.0), half=None)}
    one = found("gain-exceeds-acceptance", effects=bare, **known)
    assert one.evidence.startswith("output_throughput 3.00 times as fast")
    for effects, said in (
        ({}, "no deciding metric on both sides"),
        ({"tpot": band(0.9, half=None)}, "no effect with bounds"),
    ):
        one = found("gain-exceeds-acceptance", effects=effects, **known)
        assert (one.state, one.evidence) == ("NOT MEASURED", said)


def test_the_trend_is_from_the_lowest_load_to_the_highest():
    loads = trend((4, "tpot", 0.1, 0.02), (1, "tpot", 0.4, 0.02), (2, "tpot", 0.4, 0.02))
    one = found("gain-fades-with-load", loads=loads)
    assert (one.state, one.evidence) == ("TRIGGERED", "tpot: c1 +49.2 %, c2 +49.2 %, c4 +10.5 %")
    one = found("gain-fades-with-load", loads=loads[1:])
    assert (one.state, one.evidence) == ("CLEAR", "tpot: c1 +49.2 %, c2 +49.2 %")
    one = found("gain-fades-with-load", loads=loads[:1])
    assert (one.state, one.evidence) == ("NOT MEASURED", "one load only")


def test_a_gain_that_falls_by_exactly_the_noise_does_not_fade():
    def at(half):
        return state(
            "gain-fades-with-load",
            loads=trend((1, "tpot", 0.5, half), (8, "tpot", 0.0, 0.0)),
        )

    assert (at(0.5), at(0.499)) == ("CLEAR", "TRIGGERED")


@pytest.mark.parametrize("bare", [0, 1])
def test_a_trend_needs_bounds_at_both_ends(bare):
    halves = [None if i == bare else 0.02 for i in (0, 1)]
    loads = trend((1, "tpot", 0.4, halves[0]), (8, "tpot", 0.1, halves[1]))
    one = found("gain-fades-with-load", loads=loads)
    assert (one.state, one.evidence) == (
        "NOT MEASURED",
        "tpot: c1 +49.2 %, c8 +10.5 %; no bounds",
    )


def test_the_trend_is_that_of_the_first_deciding_metric():
    loads = trend(
        (2, "output_throughput", 0.3, 0.02),
        (8, "output_throughput", 0.3, 0.02),
        (2, "tpot", 0.2, 0.02),
        (8, "tpot", -0.2, 0.02),
    )
    # Half of the way from 2 to 8 on a logarithmic axis is 4.
    assert found("gain-fades-with-load", loads=loads).evidence == (
        "tpot: c2 +22.1 %, c8 -18.1 %; the gain ends near 4"
    )
