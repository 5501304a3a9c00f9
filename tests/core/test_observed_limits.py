"""Limits that a report's figures exceed: where they begin, and how a broken one is told."""

from __future__ import annotations

import math

import pytest

from bundle.core.findings.subject import Arm, Band, Subject
from bundle.core.observed_limits import with_limits
from bundle.core.verdict_records import Verdict

SHIP = Verdict(
    group="one", task="code", verdict="SHIP", kind=None, reasons=("faster",), target="c1",
    margin=0.05, ship_range=("c1",),
)  # fmt: skip
LIMIT = math.log(1.10)


def longer(ratio_log, best=0.0):
    """A latency longer by a log ratio, at best by another."""
    return Band(estimate=-ratio_log, lower=None, upper=-best, basis="assumed noise of 5 %")


@pytest.mark.parametrize(
    ("metric", "band", "told"),
    [
        ("p99_tpot", longer(LIMIT), None),
        (
            "p99_tpot",
            longer(math.log(1.25)),
            "limit: p99_tpot +25.0 % longer with assumed noise of 5 %, allowed +10.0 %",
        ),
        ("ttft", longer(math.log(1.25), best=LIMIT), None),
        ("ttft", longer(math.log(1.25), best=0.05), None),
        (
            "ttft",
            longer(math.log(1.5), best=0.2),
            "limit: ttft +50.0 % longer with assumed noise of 5 %, allowed +10.0 %",
        ),
    ],
)
def test_a_tail_may_reach_its_limit_and_a_mean_must_exceed_it_beyond_the_noise(metric, band, told):
    found = with_limits(SHIP, Subject(group="one", effects={metric: band}, tail_limit=LIMIT))
    assert found.verdict == ("INCONCLUSIVE" if told else "SHIP")
    assert found.reasons == (("faster", told) if told else ("faster",))
    assert found.ship_range == (() if told else ("c1",))


@pytest.mark.parametrize(
    ("left", "limit", "told"),
    [
        (70, 0.3, None),
        (20, 0.6, "limit: KV capacity falls by 80 %, allowed 60 %"),
        (60, 0.3, "limit: KV capacity falls by 40 %, allowed 30 %"),
    ],
)
def test_the_kv_capacity_may_fall_to_its_limit(left, limit, told):
    sides = {"baseline": Arm(kv_tokens=(100,)), "arm": Arm(kv_tokens=(left,))}
    found = with_limits(SHIP, Subject(group="one", kv_limit=limit, **sides))
    assert found.reasons == (("faster", told) if told else ("faster",))
