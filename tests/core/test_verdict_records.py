"""Limits, and the policy that a verdict follows where nobody says otherwise."""

from __future__ import annotations

import pytest

from bundle.core.layout import Effect
from bundle.core.verdict import judge
from bundle.core.verdict_records import (
    Evidence,
    LoadEvidence,
    Looks,
    MetricEvidence,
    limit_of_count,
    limit_of_effect,
    limit_of_percentile,
    limit_of_range,
)


def effect(log_effect, se=0.001, half=0.01, reason=None):
    bounds = (None, None) if half is None else (log_effect - half, log_effect + half)
    return Effect(
        arm="g",
        log_effect=log_effect,
        se=se,
        df=8.0,
        lower=bounds[0],
        upper=bounds[1],
        starts=3,
        reason=reason,
    )


def evidence(one, **changes):
    metrics = tuple(MetricEvidence(metric=m, effect=one) for m in ("tpot", "output_throughput"))
    base = {
        "group": "ngram",
        "task": "code",
        "target": LoadEvidence(label="c4", load=4, metrics=metrics),
        "blocks": 3,
        "methods": 4,
        "quality": "SHOWN",
        "limits": (limit_of_count("failed-requests", 0),),
    }
    return Evidence(**{**base, **changes})


def test_the_policy_where_nobody_says_otherwise():
    """A margin of 5 %, 95 % intervals, a fixed number of requests in flight."""
    found = judge(evidence(effect(0.2)))
    assert (found.verdict, found.margin, found.alpha) == ("SHIP", 0.05, 0.05)
    assert found.checks_not_run == ()
    at_rate = judge(evidence(effect(0.2), closed_loop=False))
    assert (at_rate.verdict, at_rate.checks_not_run) == (
        "INCONCLUSIVE",
        ("speed:e2el (no timing)",),
    )


def test_a_verdict_is_the_first_look_and_one_was_declared_where_nobody_says_otherwise():
    # Seven further blocks at the error of a second look; five would do at that of the first.
    wide = effect(0.12, se=0.04)
    assert judge(evidence(wide)).further_blocks == 7
    late = judge(evidence(wide, looks=Looks(taken=3)))
    assert late.verdict == "INCONCLUSIVE"
    assert late.reasons[0].startswith("look number 3 at growing data, 1 declared beforehand")


@pytest.mark.parametrize(("percentile", "needed"), [(95, 200), (99, 1000)])
def test_a_percentile_decides_from_its_number_of_requests_on(percentile, needed):
    def at(requests):
        return limit_of_percentile(
            "tail", effect(0.1), 0.1, percentile=percentile, fewest_requests=requests
        )

    assert (at(needed).state, at(needed).reason) == ("SHOWN", "")
    few = at(needed - 1)
    assert (few.state, few.limit, few.estimate) == ("NOT SHOWN", 0.1, None)
    assert few.reason == (
        f"unstable: {needed - 1} requests a start, {needed} needed for P{percentile}"
    )


def test_a_cost_without_bounds_says_why():
    bare = limit_of_effect("tail", effect(-0.1, half=None, reason="one block only"), 0.1)
    assert (bare.state, bare.lower, bare.upper) == ("NOT SHOWN", None, None)
    assert bare.reason == "one block only"
    assert limit_of_effect("tail", effect(-0.1), 0.1).reason == ""


def test_a_range_is_told_by_its_middle():
    found = limit_of_range("kv-capacity", 0.1, 0.2, 0.3)
    assert found.estimate == pytest.approx(0.15)
    assert (found.lower, found.upper, found.state) == (0.1, 0.2, "SHOWN")


def test_no_failed_request_is_allowed():
    assert [limit_of_count("failed-requests", n).state for n in (0, 1)] == ["SHOWN", "BROKEN"]
    assert limit_of_count("failed-requests", 0).limit == 0
