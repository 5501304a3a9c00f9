"""How a rule words its evidence, and that it stays as it was registered."""

from __future__ import annotations

import pytest

from bundle.core.findings.rule import percent, share, shown
from bundle.core.findings.subject import Band


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0 %"),
        (0.0009999, "<0.1 %"),
        (0.001, "0.1 %"),
        (0.999, "99.9 %"),
        (0.9990001, ">99.9 %"),
        (1, "100.0 %"),
        (1.2, "120.0 %"),
    ],
)
def test_shares_never_round_to_all_or_nothing(value, text):
    assert share(value) == text


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (0.08, 0.12, "tpot +10.5 % (+8.3 % to +12.7 %, made)"),
        (None, None, "tpot +10.5 % (made)"),
    ],
)
def test_an_effect_has_both_bounds_or_says_why_not(lower, upper, text):
    assert shown("tpot", Band(estimate=0.1, lower=lower, upper=upper, basis="made")) == text


def test_a_change_has_its_sign():
    assert [percent(x) for x in (-0.1, 0.0, 0.1)] == ["-9.5 %", "+0.0 %", "+10.5 %"]
