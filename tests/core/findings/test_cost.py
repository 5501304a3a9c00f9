"""Capacity, clocks and starts: which side is meant, and what counts as measured."""

from __future__ import annotations

import pytest

from bundle.core.findings.cost import kv_loss
from bundle.core.findings.subject import Arm
from tests.core.findings.test_rules import found, subject


def test_the_widest_spread_is_that_of_the_ratio_not_of_the_largest_pool():
    launches = {"cold": (1000, 990), "warm": (90, 100)}
    one = found("startup-variance", arm=Arm(kv_launches=launches))
    assert (one.state, one.evidence) == (
        "TRIGGERED",
        "90 to 100 tokens over 2 identical launches, compile cache warm",
    )


@pytest.mark.parametrize(
    ("before", "after", "loss"),
    [
        ((), (5,), None),
        ((5,), (), None),
        ((0,), (5,), None),
        ((1,), (1,), 0.0),
        ((4,), (5,), -0.25),
    ],
)
def test_capacity_that_nobody_stated_is_not_lost(before, after, loss):
    assert kv_loss(subject(baseline=Arm(kv_tokens=before), arm=Arm(kv_tokens=after))) == loss


@pytest.mark.parametrize(
    ("base", "mine", "clocks", "telemetry"),
    [
        (
            None,
            None,
            ("NOT MEASURED", "clocks were not sampled on both sides"),
            ("NOT MEASURED", "GPUs were not sampled on both sides"),
        ),
        (
            (),
            None,
            ("NOT MEASURED", "clocks were not sampled on both sides"),
            ("NOT MEASURED", "GPUs were not sampled on both sides"),
        ),
        (
            None,
            ("power cap", "heat"),
            ("TRIGGERED", "g: power cap, heat"),
            ("NOT MEASURED", "GPUs were not sampled on both sides"),
        ),
        (
            ("heat",),
            (),
            ("TRIGGERED", "baseline: heat"),
            ("CLEAR", "NVML answered"),
        ),
        (
            (),
            (),
            ("CLEAR", "no throttle reason in any sample"),
            ("CLEAR", "NVML answered"),
        ),
    ],
)
def test_a_side_that_was_not_sampled_is_not_clear(base, mine, clocks, telemetry):
    sides = {"baseline": Arm(throttled=base), "arm": Arm(throttled=mine)}
    for name, expected in (("gpu-throttled", clocks), ("gpu-telemetry-denied", telemetry)):
        one = found(name, **sides)
        assert (one.state, one.evidence) == expected


def test_a_refusal_is_told_once_whoever_met_it():
    refused = Arm(denied="NVML: no permission")
    for sides in ({"baseline": refused}, {"arm": refused}, {"baseline": refused, "arm": refused}):
        one = found("gpu-telemetry-denied", **sides)
        assert (one.state, one.evidence) == ("TRIGGERED", "NVML: no permission")
