"""Documents computed again: equal to the digits that all processors share, and not beyond."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundle.core.tolerance import apart, equal, tables_apart


def test_what_differs_is_named_by_its_place() -> None:
    one = {"a": [1, 2.0, {"b": "x"}], "gone": 1, "c": None}
    other = {"a": [1, 2.5, {"b": "y"}], "new": 1, "c": 0}
    assert list(apart(one, other)) == [
        "a[1] is 2.0, computed again 2.5",
        "a[2].b is 'x', computed again 'y'",
        "gone is not computed",
        "c is None, computed again 0",
        "new is missing",
    ]
    assert list(apart([1], [1, 2])) == ["the document is [1], computed again [1, 2]"]


@pytest.mark.parametrize(
    ("length", "shown"),
    [(58, "'" + "x" * 58 + "'"), (59, "'" + "x" * 56 + "..."), (99, "'" + "x" * 56 + "...")],
)
def test_long_values_are_shown_by_their_first_sixty_characters(length: int, shown: str) -> None:
    assert len(shown) == 60
    assert list(apart("x" * length, "y")) == [f"the document is {shown}, computed again 'y'"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1.0, 1.0 + 1e-12, True),
        (1.0, 1.0 + 1e-8, False),
        (0.0, 1e-12, False),
        (1, 1.0, False),
        (True, 1, False),
        (3, 3, True),
        (None, None, True),
        (math.inf, math.inf, True),
        (math.inf, 1e308, False),
    ],
)
def test_leaves(one: object, other: object, same: bool) -> None:
    assert equal(one, other) is same


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(JSON)
def test_a_document_is_never_apart_from_itself(document: object) -> None:
    assert list(apart(document, document)) == []


@given(JSON, JSON)
def test_the_order_of_the_two_does_not_matter(one: object, other: object) -> None:
    assert bool(list(apart(one, other))) == bool(list(apart(other, one)))


def test_tables() -> None:
    table = "group,value\nngram,1.5\n"
    assert list(tables_apart(table, table)) == []
    assert list(tables_apart(table, "group,value\nngram,1.5000000000001\n")) == []
    assert list(tables_apart(table, "group,value\nngram,1.6\n")) == [
        "line 2 is 'ngram,1.5', computed again 'ngram,1.6'"
    ]
    assert list(tables_apart(table, "group,value\ndraft,1.5\n"))
    assert list(tables_apart(table, "group,value\nngram,1.5,2\n"))
    assert list(tables_apart(table, "group,value\n")) == ["has 2 lines, computed again 1"]
