"""Exact tests on small counts, against SciPy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from bundle.core.exact import fewest_equal, hypergeometric_tail


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_the_tail_is_fishers_exact_one(items: int, others: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(0, items))
    worse = data.draw(st.integers(0, others))
    table = [[bad, items - bad], [worse, others - worse]]
    expected = fisher_exact(table, alternative="greater").pvalue
    assert hypergeometric_tail(bad, items, worse, others) == pytest.approx(expected)


@given(st.integers(1, 30), st.integers(1, 30), st.data())
def test_the_fewest_is_the_edge(items: int, compared: int, data: st.DataObject) -> None:
    equal = data.draw(st.integers(0, compared))
    found = fewest_equal(items, equal, compared, p=0.01)
    assert hypergeometric_tail(items - found, items, compared - equal, compared) > 0.01
    if found:
        worse = hypergeometric_tail(items - found + 1, items, compared - equal, compared)
        assert worse <= 0.01


def test_forty_items() -> None:
    assert fewest_equal(40, 40, 40, p=0.01) == 34
    assert fewest_equal(40, 30, 40, p=0.01) < 25
    assert fewest_equal(6, 0, 6, p=0.01) == 0


def test_a_chance_of_exactly_p_no_longer_explains_it() -> None:
    """One of two equal falls on either side with a chance of exactly one half."""
    assert hypergeometric_tail(1, 1, 0, 1) == 0.5
    assert fewest_equal(1, 1, 1, p=0.5) == 1
    assert fewest_equal(1, 1, 1, p=0.49) == 0
