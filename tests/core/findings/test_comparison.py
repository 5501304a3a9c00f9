"""What the checklist says of the comparison itself, word for word."""

from __future__ import annotations

import pytest

from bundle.core.findings.subject import Arm
from tests.core.findings.test_rules import found, state


@pytest.mark.parametrize(
    ("base", "mine", "expected", "evidence"),
    [
        (
            {"failed": 1, "missing": 2},
            {"failed": 3, "missing": 4},
            "TRIGGERED",
            "failed: baseline 1, g 3; missing: baseline 2, g 4",
        ),
        (
            {"failed": 0},
            {"failed": 0},
            "CLEAR",
            "failed: baseline 0, g 0; missing: baseline not counted, g not counted",
        ),
        (
            {"failed": 0},
            {"missing": 0},
            "NOT MEASURED",
            "failed: baseline 0, g not counted; missing: baseline not counted, g 0",
        ),
        (
            {"failed": 0},
            {"failed": 0, "died": "EngineDeadError"},
            "TRIGGERED",
            "failed: baseline 0, g 0; missing: baseline not counted, g not counted; "
            "the server broke down: EngineDeadError",
        ),
    ],
)
def test_lost_requests_are_told_by_side(base, mine, expected, evidence):
    one = found("failed-requests", baseline=Arm(**base), arm=Arm(**mine))
    assert (one.state, one.evidence) == (expected, evidence)


@pytest.mark.parametrize(
    ("rule", "facts", "expected", "evidence"),
    [
        (
            "reference-not-plain-decode",
            {"reference_plain": False, "reference": "a speculative server"},
            "TRIGGERED",
            "the reference is: a speculative server",
        ),
        (
            "reference-not-plain-decode",
            {"reference_plain": True},
            "CLEAR",
            "the reference is: plain decode",
        ),
        (
            "identical-configs",
            {"identical": True},
            "TRIGGERED",
            "no speculation on either side",
        ),
        ("identical-configs", {"identical": False}, "CLEAR", "they differ in the method"),
        ("synthetic-acceptance", {"synthetic": True}, "TRIGGERED", "synthetic acceptance"),
        ("synthetic-acceptance", {"synthetic": False}, "CLEAR", "not synthetic"),
        ("dummy-weights", {"dummy": True}, "TRIGGERED", "dummy weights"),
        ("dummy-weights", {"dummy": False}, "CLEAR", "weights were loaded from files"),
    ],
)
def test_the_evidence_says_which_of_the_two_it_is(rule, facts, expected, evidence):
    one = found(rule, **facts)
    assert (one.state, one.evidence) == (expected, evidence)


@pytest.mark.parametrize(
    ("off", "hits", "expected", "evidence"),
    [
        (True, (5, 5), "TRIGGERED", "hits: baseline 5, g 5 tokens"),
        (True, (0, 0), "CLEAR", "hits: baseline 0, g 0 tokens"),
        (False, (5, 7), "CLEAR", "hits: baseline 5, g 7 tokens; the cache is meant to be on"),
        (True, (0, None), "NOT MEASURED", "hits: baseline 0, g not counted tokens"),
    ],
)
def test_hits_of_both_sides_add_up(off, hits, expected, evidence):
    sides = {"baseline": Arm(prefix_hits=hits[0]), "arm": Arm(prefix_hits=hits[1])}
    one = found("prefix-cache-hits", prefix_cache_off=off, **sides)
    assert (one.state, one.evidence) == (expected, evidence)


@pytest.mark.parametrize(
    ("base", "mine", "expected"),
    [
        ((None, None), (None, 1), "TRIGGERED"),
        ((None, None), (1, None), "TRIGGERED"),
        ((None, None), (None, 0), "NOT MEASURED"),
        ((0, 0), (0, None), "NOT MEASURED"),
        ((0, 0), (0, 0), "CLEAR"),
    ],
)
def test_traffic_that_is_known_counts_also_where_the_rest_is_not(base, mine, expected):
    def arm(counts):
        return Arm(excess_requests=counts[0], excess_tokens=counts[1])

    assert state("foreign-traffic", baseline=arm(base), arm=arm(mine)) == expected


def test_the_rounding_of_both_sides_is_in_the_difference_that_is_allowed():
    sides = {
        "baseline": Arm(tokens=(1000.0,), token_tolerance=0.05),
        "arm": Arm(tokens=(899.0,), token_tolerance=0.04),
    }
    assert found("unequal-work", **sides).evidence == (
        "baseline and g: 1000 and 899 output tokens, allowed difference 10.0 %"
    )


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [((1.0, 0.5), "TRIGGERED"), ((0.5, 1.0), "TRIGGERED"), ((0.0, 0.0), "CLEAR")],
)
def test_lengths_of_a_token_or_none_are_compared_as_any_other(lengths, expected):
    sides = {"baseline": Arm(mean_length=lengths[0]), "arm": Arm(mean_length=lengths[1])}
    assert state("output-length-drift", **sides) == expected
