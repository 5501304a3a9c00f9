"""What the checklist says of drafts, word by word: counts, rates, positions, sample sizes."""

from __future__ import annotations

import pytest

from tests.core.findings.test_rules import acceptance, found

COUNTED = {"rate": 0.5, "accepted": 6, "drafted": 12}


@pytest.mark.parametrize(
    ("rates", "state", "evidence"),
    [
        (
            {**COUNTED, "rounds": 4},
            "CLEAR",
            "acceptance rate 50.0 %, 6 of 12 proposed tokens in 4 rounds",
        ),
        (COUNTED, "CLEAR", "acceptance rate 50.0 %, 6 of 12 proposed tokens"),
        (
            {"rate": 0.5, "accepted": 6},
            "CLEAR",
            "acceptance rate 50.0 %, stated, without counts",
        ),
        (
            {"rate": 0.5, "drafted": 12},
            "CLEAR",
            "acceptance rate 50.0 %, stated, without counts",
        ),
        ({"length": 2.5}, "CLEAR", "length 2.50, stated, without counts"),
        # A length of 1 is no accepted token at all.
        ({"length": 1.0}, "TRIGGERED", "acceptance rate 0.0 %, stated, without counts"),
        (
            {"rate": 0.0, "accepted": 0, "drafted": 29},
            "NOT MEASURED",
            "acceptance rate 0.0 %, 0 of 29 proposed tokens: too few to tell",
        ),
        (
            {"rate": 1.0, "accepted": 100, "drafted": 100, "rounds": 50},
            "TRIGGERED",
            "acceptance rate 100.0 %, 100 of 100 proposed tokens in 50 rounds: always the maximum",
        ),
        (
            {"rate": 1.0, "accepted": 99, "drafted": 99},
            "CLEAR",
            "acceptance rate 100.0 %, 99 of 99 proposed tokens",
        ),
        ({"accepted": 0, "drafted": 0}, "NOT MEASURED", "no drafts: nothing was proposed"),
        ({"rounds": 0}, "NOT MEASURED", "no drafts: nothing was proposed"),
        ({"rounds": 5}, "NOT MEASURED", "acceptance is not known"),
        ({}, "NOT MEASURED", "acceptance is not known"),
    ],
)
def test_a_defect_of_acceptance_in_numbers(rates, state, evidence):
    one = found("zero-acceptance", k=3, **acceptance(**rates))
    assert (one.state, one.evidence) == (state, evidence)


def test_without_any_acceptance_it_is_not_known():
    assert found("zero-acceptance").evidence == "acceptance is not known"


@pytest.mark.parametrize(
    ("rates", "evidence"),
    [
        ({"rate": 1.0, "accepted": 5, "drafted": 5}, "every position is accepted always"),
        ({"length": 4.0}, "every position is accepted always"),
        # Lengths are printed with two digits behind the point: 4.005 may have been a 4.
        ({"length": 4.005}, "every position is accepted always"),
        (
            {"length": 4.01},
            "acceptance length 4.01 with at most 3 draft tokens; every position is accepted always",
        ),
        ({"length": 0.9}, "acceptance length 0.90, which is below 1"),
        (
            {"rate": 1.2, "accepted": 12, "drafted": 10},
            "more accepted than proposed: 12 of 10 proposed tokens; "
            "every position is accepted always",
        ),
        (
            {"per_position": (0.5, 0.4, 0.7)},
            "position 3 is accepted more often than position 2",
        ),
        ({"per_position": (1.0, 0.7)}, "position 1 is accepted always"),
        (
            {"rate": 0.0, "accepted": 0, "drafted": 1, "rounds": 2},
            "more rounds than proposed tokens: 0 of 1 proposed tokens in 2 rounds",
        ),
        (
            {"rate": 0.5, "accepted": 5, "drafted": 10, "rounds": 3},
            "more than 3 proposed tokens a round: 5 of 10 proposed tokens in 3 rounds",
        ),
    ],
)
def test_figures_that_cannot_be_in_words(rates, evidence):
    one = found("implausible-acceptance", k=3, **acceptance(**rates))
    assert (one.state, one.evidence) == ("TRIGGERED", evidence)


@pytest.mark.parametrize(
    ("rates", "evidence"),
    [
        ({"length": 3.5}, "plausible: stated, without counts"),
        # Shares by position are rounded as well: half a point is no more often.
        ({"per_position": (0.5, 0.505)}, "plausible: stated, without counts"),
        ({**COUNTED, "rounds": 12}, "plausible: 6 of 12 proposed tokens in 12 rounds"),
        (
            {"length": 1.0, "accepted": 0, "drafted": 0, "rounds": 5},
            "plausible: 0 of 0 proposed tokens in 5 rounds",
        ),
    ],
)
def test_figures_that_can_be(rates, evidence):
    one = found("implausible-acceptance", k=3, **acceptance(**rates))
    assert (one.state, one.evidence) == ("CLEAR", evidence)


@pytest.mark.parametrize(
    ("missing", "expected", "state", "evidence"),
    [
        (0, 10, "CLEAR", "0 of 10 replies without figures"),
        (1, 10, "TRIGGERED", "1 of 10 replies without figures"),
        (None, 10, "NOT MEASURED", "no requests with per-request figures were expected"),
        (0, 0, "NOT MEASURED", "no requests with per-request figures were expected"),
        (0, None, "NOT MEASURED", "no requests with per-request figures were expected"),
    ],
)
def test_replies_without_figures(missing, expected, state, evidence):
    one = found("metrics-missing", metrics_missing=missing, metrics_expected=expected)
    assert (one.state, one.evidence) == (state, evidence)


@pytest.mark.parametrize(
    ("rates", "method", "state", "evidence"),
    [
        ({"coverage": 0.4}, "suffix", "TRIGGERED", "40.0 % of decode rounds had a draft"),
        (
            {"coverage": 0.4, "estimated": ("coverage",)},
            "suffix",
            "TRIGGERED",
            "40.0 % of decode rounds had a draft (estimated from output tokens)",
        ),
        (
            {"coverage": 0.6, "estimated": ("effective",), "runner": "V1"},
            "ngram",
            "CLEAR",
            "60.0 % of decode rounds had a draft",
        ),
        (
            {"coverage": 1.0, "runner": "V2"},
            "ngram",
            "NOT MEASURED",
            "under the V2 runner every round counts as drafted",
        ),
        (
            {"coverage": 1.0, "runner": "V2"},
            "ngram_gpu",
            "NOT MEASURED",
            "under the V2 runner every round counts as drafted",
        ),
        (
            {"coverage": 1.0, "runner": "V2"},
            "suffix",
            "CLEAR",
            "100.0 % of decode rounds had a draft",
        ),
        ({}, "ngram", "NOT MEASURED", "decode rounds were not counted"),
    ],
)
def test_coverage_in_numbers(rates, method, state, evidence):
    one = found("low-coverage", method=method, **acceptance(**rates))
    assert (one.state, one.evidence) == (state, evidence)


def test_the_first_weak_position_is_named():
    one = found("weak-later-positions", **acceptance(per_position=(0.8, 0.09, 0.05)))
    assert one.evidence == (
        "by position: 80.0 %, 9.0 %, 5.0 %; from position 2 on almost nothing is added"
    )
