"""What the checklist says where outputs could not be compared, or only in part."""

from __future__ import annotations

import pytest

from bundle.core.findings.subject import QualityFacts
from tests.core.findings.test_rules import found

ALONE = "5 of 50 outputs differ from the baseline; the baseline was not compared with itself"


@pytest.mark.parametrize(
    ("facts", "evidence"),
    [
        ({}, "outputs were not compared"),
        ({"comparable": 50}, "outputs were not compared"),
        ({"diverged": 0, "comparable": 0}, "outputs were not compared"),
        ({"diverged": 5, "comparable": 50}, ALONE),
        ({"diverged": 5, "comparable": 50, "aa_comparable": 50, "outputs_p": 1.0}, ALONE),
        (
            {"diverged": 5, "comparable": 50, "aa_diverged": 0, "aa_comparable": 0,
             "outputs_p": 1.0},
            ALONE,
        ),
        ({"diverged": 5, "comparable": 50, "aa_diverged": 1, "aa_comparable": 50}, ALONE),
    ],
)  # fmt: skip
def test_outputs_that_were_not_compared_on_both_sides(facts, evidence):
    one = found("outputs-differ", quality=QualityFacts(state="SHOWN", reason="", **facts))
    assert (one.state, one.evidence) == ("NOT MEASURED", evidence)
