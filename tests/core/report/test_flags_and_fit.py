"""Argument vectors compared, and column widths that always add up."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundle.core.report.fit import for_paper, widths
from bundle.core.report.flags import parse, split
from bundle.core.report.parts import Cell, Table, columns


def test_flags_of_a_vector() -> None:
    assert parse(("serve", "m", "--a", "1", "--b", "--c=x", "--a", "2", "--port", "80")) == {
        "(command)": "serve m",
        "--a": "1 2",
        "--b": "",
        "--c": "x",
    }


def test_shared_and_differing() -> None:
    shared, differing = split({"x": {"--a": "1", "--b": ""}, "y": {"--a": "1", "--c": "2"}})
    assert shared == {"--a": "1"}
    assert differing == {"--b": {"x": "", "y": None}, "--c": {"x": None, "y": "2"}}


@given(
    st.lists(
        st.tuples(st.text(max_size=300), st.text(max_size=300), st.booleans()),
        min_size=1,
        max_size=8,
    ),
    st.booleans(),
)
def test_widths_fill_the_page(row: list[tuple[str, str, bool]], numeric: bool) -> None:
    labels = [f"{'#' if numeric else ''}column {i}" for i in range(len(row))]
    cells = tuple(Cell(text=a, sub=b, badge=c) for a, b, c in row)
    found = widths(Table(id="t", caption="", columns=columns(*labels), rows=(cells,)))
    assert sum(found) == pytest.approx(100, abs=1)
    assert min(found) > 2


def test_widths_of_an_empty_table() -> None:
    assert widths(Table(id="t", caption="", columns=columns("a", "b"), rows=())) == (50.0, 50.0)


def test_paper_gets_the_short_form_of_a_long_table_and_says_so() -> None:
    rows = tuple((Cell(text=f"{i}"),) for i in range(30))
    long = Table(id="t", caption="", columns=columns("a"), rows=rows, short=(3, 4), note="A note.")
    (made,) = for_paper(long)
    assert [row[0].text for row in made.rows] == ["3", "4"]
    assert made.note.startswith("A note. 2 of 30 rows, those at the target load")
    brief = msgspec.structs.replace(long, rows=rows[:24])
    assert for_paper(brief) == (brief,)
    whole = msgspec.structs.replace(long, short=())
    assert for_paper(whole) == (whole,)
    instead = msgspec.structs.replace(long, paper=(brief,))
    assert for_paper(instead) == (brief,)
