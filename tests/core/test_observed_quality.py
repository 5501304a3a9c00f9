"""Quality from two totals: what each pair of them shows, in the words of the finding."""

from __future__ import annotations

import pytest

from bundle.core.observed import ObservedArm
from bundle.core.observed_quality import bare_quality

UNKNOWN = "passed and total items are not known for both sides"
OTHERS = "the sides did not answer the same items: "


def totals(baseline, method):
    """The state of quality where each side passed so many of so many items."""
    sides = (ObservedArm(quality_passed=a, quality_total=n) for a, n in (baseline, method))
    found = bare_quality(*sides)
    assert found is not None
    return found.state, found.reason


@pytest.mark.parametrize(
    ("baseline", "method", "reason"),
    [
        ((None, 40), (38, 40), UNKNOWN),
        ((38, 40), (None, 40), UNKNOWN),
        ((38, None), (38, 40), UNKNOWN),
        ((38, 40), (38, None), UNKNOWN),
        ((38, None), (38, None), UNKNOWN),
        ((38, 40), (38, 39), f"{OTHERS}38 of 40 and 38 of 39"),
        ((0, 0), (0, 0), f"{OTHERS}0 of 0 and 0 of 0"),
        ((41, 40), (40, 40), f"{OTHERS}41 of 40 and 40 of 40"),
        ((40, 40), (41, 40), f"{OTHERS}40 of 40 and 41 of 40"),
    ],
)
def test_totals_that_do_not_fit_together_measure_nothing(baseline, method, reason):
    assert totals(baseline, method) == ("NOT MEASURED", reason)


@pytest.mark.parametrize(
    ("a", "b", "n", "state", "between"),
    [
        # A method that passes everything, and totals that are equal, have lost nothing.
        (40, 40, 40, "SHOWN", "1 and 1"),
        (30, 30, 40, "SHOWN", "1 and 0.59"),
        (100, 110, 120, "SHOWN", "1 and 0.98"),
        # One item of 20 is the share that may be lost; one of 19 is more.
        (20, 19, 20, "SHOWN", "0.5 and 0.5"),
        (19, 18, 19, "NOT SHOWN", "0.5 and 0.5"),
        # Four lost and none won is chance at 1 / 16, five are not at 1 / 32.
        (100, 96, 100, "SHOWN", "0.062 and 0.062"),
        (100, 95, 100, "BROKEN", "0.031 and 0.031"),
        # The more items the method may have won back, the less certain the loss.
        (99, 94, 100, "NOT SHOWN", "0.031 and 0.062"),
        (118, 112, 120, "NOT SHOWN", "0.016 and 0.055"),
        (118, 110, 120, "BROKEN", "0.0039 and 0.019"),
        (60, 1, 120, "BROKEN", "1.7e-18 and 2.7e-17"),
    ],
)
def test_the_range_of_the_exact_test_decides(a, b, n, state, between):
    said = f"baseline passes {a} of {n}, method {b}; exact p between {between}"
    assert totals((a, n), (b, n)) == (state, said)


@pytest.mark.parametrize(
    ("differ", "wavering", "p"),
    [
        (5, 0, 1 / 32),
        (0, 5, 1.0),
        (3, 1, 5 / 16),
        (0, 0, 1.0),
        (5, None, None),
        (None, 5, None),
        (None, None, None),
    ],
)
def test_outputs_that_leave_are_held_against_those_of_the_baseline_itself(differ, wavering, p):
    found = bare_quality(
        ObservedArm(outputs_compared=40, outputs_differ=wavering),
        ObservedArm(outputs_compared=40, outputs_differ=differ),
    )
    assert found is not None
    assert found.outputs_p == (None if p is None else pytest.approx(p))


def test_a_report_that_says_all_there_is_has_quality_and_one_that_says_nothing_has_none():
    method = ObservedArm(
        quality_passed=40, quality_total=40, truncated=0, outputs_compared=40, empty_replies=0
    )
    found = bare_quality(ObservedArm(quality_passed=40, quality_total=40), method)
    assert found is not None
    assert (found.state, found.replies, found.truncated) == ("SHOWN", 40, 0)
    assert bare_quality(ObservedArm(), ObservedArm(quality_total=40)) is None
