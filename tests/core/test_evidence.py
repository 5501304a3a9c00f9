"""How a start is named."""

from __future__ import annotations

from tests.builders import EAGLE, evidence, only


def test_a_start_is_named_by_its_place_in_the_order_of_runs():
    given = evidence(only(EAGLE))
    assert [s.folder for s in given.starts[:4]] == [
        "1/0-baseline",
        "1/1-eagle3",
        "1/2-baseline",
        "2/0-baseline",
    ]
    assert given.starts[0].cell("code", "c1") is None
