"""A rerun's section: what differed first, then every claim with its band."""

import msgspec
import pytest

from bundle.core.comparison import Comparison
from bundle.core.report.parts import Section, Table
from bundle.core.report.view import ReportView, view
from tests import builders_report as b


def made(comparison: Comparison = b.RERUN) -> ReportView:
    return view(b.mixed(), b.recipe(), b.head(parent="feedc0ffee12"), b.provenance(), comparison)


@pytest.fixture(scope="module")
def section() -> Section:
    found = made().comparison
    assert found is not None
    return found


def rows(table: Table) -> list[list[str]]:
    return [
        [cell.text.replace("\u00a0", " ").replace("\u2212", "-") for cell in row]
        for row in table.rows
    ]


def test_what_differed_comes_first(section: Section) -> None:
    first, second = section.blocks
    assert rows(first.tables[0]) == [["kernel", "6.8", "6.12"], ["models", "a" * 64, "b" * 64]]
    assert first.tables[0].rows[1][1].code
    assert not first.tables[0].rows[0][1].code
    assert second.tables[0].id == "claims-table"


def test_every_claim_with_both_values_band_and_noise_units(section: Section) -> None:
    table = section.blocks[1].tables[0]
    shown = rows(table)
    assert [row[1] for row in shown] == [
        "NOT REPRODUCED",
        "NOT COMPARABLE",
        "REPRODUCED",
        "REPRODUCED",
        "REPRODUCED",
        "IDENTICAL",
        "INCONCLUSIVE",
    ]
    assert shown[2] == [
        "ngram",
        "REPRODUCED",
        "1.31×",
        "1.28×",
        "-2.3 %",
        "-1.3",
        "1.26× to 1.36×",
        "inside the band",
    ]
    assert table.rows[2][0].sub == "gain in TPOT, code, 8 concurrent"
    other = msgspec.structs.replace(
        b.RERUN, claims=(b.claim("ratio/ngram/code/c8/output_throughput", "REPRODUCED"),)
    )
    found = made(other).comparison
    assert found is not None
    (row,) = found.blocks[1].tables[0].rows
    assert row[0].sub == "gain in output throughput, code, 8 concurrent"
    assert shown[0][4:6] == ["-31 %", "+2.0"]
    assert shown[6][3:6] == ["not measured", "-", "-"]
    assert shown[1][6] == "no band"
    assert (table.rows[3][0].sub, shown[3][2], shown[3][5]) == (
        "mean acceptance length, code, quality pass",
        "2.50",
        "0",
    )
    assert (shown[4][2:4], shown[4][6], table.rows[4][0].sub) == (
        ["95.0 %", "97.5 %"],
        "83 % to 100 %",
        "outputs equal to the baseline's",
    )
    assert (shown[5][3], shown[5][6], table.rows[5][0].sub) == (
        "100 %",
        "equal token ids",
        "outputs equal to the parent's, by token ids",
    )


def test_paper_keeps_what_did_not_hold_and_the_target_load(section: Section) -> None:
    assert section.blocks[1].tables[0].short == (0, 1, 2, 4, 5)


def test_groups_that_the_rerun_left_out_are_named_above_the_claims(section: Section) -> None:
    assert section.blocks[1].paragraphs == (
        "Groups that this run left out stay open: 1 claim on draft.",
    )
    claims = tuple(row for row in b.RERUN.claims if row.own is not None)
    found = made(msgspec.structs.replace(b.RERUN, claims=claims)).comparison
    assert found is not None
    assert found.blocks[1].paragraphs == ()


def test_the_first_line_of_the_page_counts_the_claims() -> None:
    line = made().headlines[0]
    assert line.task == "Rerun of bundle feedc0ffee12"
    assert line.text == (
        "Of 6 claims of the parent: 3 REPRODUCED, 1 NOT REPRODUCED, 1 IDENTICAL and "
        "1 NOT COMPARABLE; 1 more on groups that this run left out."
    )
    assert line.detail == "Not the same on both sides: kernel and models."
    assert line.tone == "bad"


@pytest.mark.parametrize(
    ("words", "tone"),
    [
        (["REPRODUCED", "INCONCLUSIVE"], "good"),
        (["IDENTICAL"], "good"),
        (["INCONCLUSIVE"], "unsure"),
    ],
)
def test_the_tone_follows_the_words(words: list[str], tone: str) -> None:
    claims = tuple(b.claim("ratio/ngram/code/c8/tpot", word) for word in words)
    own = made(msgspec.structs.replace(b.RERUN, claims=claims, differences=()))
    assert own.headlines[0].tone == tone
    assert own.comparison is not None
    assert own.comparison.blocks[0].paragraphs == ("Nothing that is recorded differed.",)


def test_an_original_run_has_no_such_section() -> None:
    own = view(b.mixed(), b.recipe(), b.head(), b.provenance())
    assert own.comparison is None
    assert not own.headlines[0].task.startswith("Rerun")
