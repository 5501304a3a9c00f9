"""What the rules are handed: bounds, defaults of the policy, and facts that nobody has."""

from __future__ import annotations

import math

import pytest

from bundle.core.findings.subject import Arm, Band, QualityFacts
from tests.core.findings.test_rules import acceptance, band, found, subject


@pytest.mark.parametrize(
    ("lower", "estimate", "upper", "word"),
    [
        (-0.3, -0.2, -1e-9, "worse"),
        (-0.3, -0.2, 0.0, ""),
        (0.0, 0.2, 0.3, ""),
        (1e-9, 0.2, 0.3, "better"),
        (None, -0.2, None, ""),
        (None, 0.2, None, ""),
    ],
)
def test_better_and_worse_need_the_whole_interval(lower, estimate, upper, word):
    one = Band(estimate=estimate, lower=lower, upper=upper, basis="made")
    assert (one.worse, one.better) == (word == "worse", word == "better")


def test_an_interval_reaches_beyond_its_estimate_and_none_without_end():
    assert Band(estimate=0.25, lower=-0.25, upper=0.75, basis="made").reach == 0.5
    assert band(0.25, half=None).reach == math.inf


@pytest.mark.parametrize(
    ("rates", "evidence"),
    [
        ({"drafted": 0}, "no drafts: nothing was proposed"),
        ({"rounds": 0}, "no drafts: nothing was proposed"),
        ({"drafted": 0, "rounds": 0}, "no drafts: nothing was proposed"),
        ({"drafted": 1, "rounds": 1}, "acceptance is not known"),
        ({}, "acceptance is not known"),
    ],
)
def test_nothing_proposed_is_not_the_same_as_nothing_known(rates, evidence):
    one = found("zero-acceptance", **acceptance(**rates))
    assert (one.state, one.evidence) == ("NOT MEASURED", evidence)


def test_counted_tokens_have_no_rounding():
    sides = {"baseline": Arm(tokens=(1000.0,)), "arm": Arm(tokens=(980.0,))}
    assert found("unequal-work", **sides, **acceptance()).evidence == (
        "baseline and g: 1000 and 980 output tokens, allowed difference 1.0 %"
    )


OWN = {"diverged": 5, "comparable": 50, "aa_diverged": 0, "aa_comparable": 50, "outputs_p": 0.5}


@pytest.mark.parametrize(
    ("facts", "between"),
    [
        ({}, ""),
        ({"divergences": 5}, "; the baseline was not asked again at first divergences"),
        (
            {"divergences": 5, "asked": 4},
            "; asked again at 4 first divergences, 4 are near ties",
        ),
    ],
)
def test_what_was_not_said_of_divergences_is_none(facts, between):
    quality = QualityFacts(state="SHOWN", reason="", **OWN, **facts)
    one = found("outputs-differ", quality=quality, **acceptance())
    assert one.evidence == (
        f"5 of 50 outputs differ from the baseline{between}; 0 of 50 between baselines, p = 0.5"
    )


def test_a_report_without_a_policy_is_held_to_the_default_one():
    """Gains of 5 %, tails at most 10 % longer, at most 30 % of the KV capacity lost."""
    assert band(0.0).ratio == 1
    one = subject()
    assert math.exp(one.margin) == pytest.approx(1.05)
    assert math.exp(one.tail_limit) == pytest.approx(1.10)
    assert one.kv_limit == 0.30
