"""First differences: what the baseline said when it was asked again."""

import msgspec

from bundle.core.report.view import view
from bundle.core.results import Divergence
from tests import builders_report as b
from tests.core.report.test_view import table, texts, words

replace = msgspec.structs.replace


def shown(*gaps):
    found = tuple(
        Divergence(
            item=f"q{i}",
            position=i,
            baseline_text="one two",
            group_text="one three",
            gap=nats,
            ranked=ranked,
        )
        for i, (nats, ranked) in enumerate(gaps)
    )
    results = b.mixed()
    quality = tuple(
        replace(row, first_divergences=found if row.group == "ngram" else ())
        for row in results.quality
    )
    made = view(replace(results, quality=quality), b.recipe(), b.head(), b.provenance())
    return table(made, "divergences-ngram-table")


def test_near_ties_wide_gaps_and_what_was_not_asked():
    found = shown((0.25, True), (3.5, True), (0.1, False), (None, None))
    assert [column.label for column in found.columns] == [
        "Item", "First difference", "Two best tokens", "Baseline", "ngram",
    ]  # fmt: skip
    cells = [row[2] for row in found.rows]
    assert texts(tuple(cells)) == ["0.25 nat", "3.50 nat", "0.10 nat", "not measured"]
    assert [cell.sub for cell in cells] == [
        "near tie",
        "no near tie",
        "another token than these",
        "",
    ]
    assert "1 nat is a near tie" in words(found)


def test_no_column_where_nobody_asked():
    found = shown((None, None))
    assert len(found.columns) == 4
    assert not found.note
