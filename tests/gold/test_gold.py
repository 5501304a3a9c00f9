"""Whole pages stay as they were read and approved."""

import pytest

from tests.gold.pages import gold_file, gold_text, views


@pytest.mark.parametrize("name", ["mixed", "rerun", "all-ship", "all-invalid"])
def test_page(name: str) -> None:
    expected = gold_file(name).read_text(encoding="utf-8")
    found = gold_text(views()[name])
    assert found == expected, "look at the difference, then: python -m tests.gold.update"
