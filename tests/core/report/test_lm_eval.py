"""What the report says of lm-evaluation-harness, and that it says nothing where none was asked."""

from __future__ import annotations

from msgspec.structs import replace

from bundle.core.lm_eval_results import LmEvalGroup, LmEvalRow
from bundle.core.report.context import Context
from bundle.core.report.lm_eval import lm_eval_blocks
from bundle.core.report.parts import Section
from bundle.core.report.provenance import InputEntry, Provenance
from bundle.core.report.view import view
from bundle.core.results import Results
from tests import builders_report as b
from tests.core.test_lm_eval_args import SPEC

ROW = LmEvalRow(
    task="t",
    metric="exact_match",
    filter="none",
    items=120,
    value=0.75,
    stderr=0.0397,
    baseline=0.8,
    compared=118,
    excluded=2,
    won=1,
    lost=7,
    p_value=0.035,
)
BROKEN = LmEvalGroup(group="ngram", state="BROKEN", reason="7 lost", version="0.4.13", rows=(ROW,))
FAILED = LmEvalGroup(group="eagle3", state="NOT MEASURED", reason="no evaluation of eagle3: died")


def context(*found: LmEvalGroup, asked: bool = True) -> Context:
    made = b.recipe(("ngram", "eagle3"))
    if asked:
        made = replace(made, quality=replace(made.quality, lm_eval=SPEC))
    results: Results = replace(b.all_ship(), lm_eval=found)
    return Context(results, made, b.head(), Provenance())


def sections(made: Context) -> dict[str, Section]:
    shown = view(made.results, made.recipe, made.head, made.provenance)
    return {section.id: section for section in shown.sections}


def test_nothing_where_it_was_not_asked_for() -> None:
    assert lm_eval_blocks(context(asked=False)) == ()
    assert "lm-eval" not in {x.id for x in sections(context(asked=False))["quality"].blocks}


def test_states_then_numbers_beside_the_baseline() -> None:
    (block,) = lm_eval_blocks(context(BROKEN, FAILED))
    assert block.paragraphs[0].startswith("lm-evaluation-harness 0.4.13 asked every server of one")
    states, numbers = block.tables
    assert [[cell.text for cell in row] for row in states.rows] == [
        ["ngram", "BROKEN", "7 lost"],
        ["eagle3", "NOT MEASURED", "no evaluation of eagle3: died"],
    ]
    assert [row[1].tone for row in states.rows] == ["bad", "muted"]
    (row,) = numbers.rows
    assert [cell.text for cell in row] == [
        "t", "exact_match", "ngram", "0.750", "0.800", "118", "1", "7", "p = 0.035",
    ]  # fmt: skip
    assert row[3].sub == "±0.040, 120 items"
    assert row[5].sub == "2 excluded"
    assert "lm-eval" in {x.id for x in sections(context(BROKEN))["quality"].blocks}


def test_a_number_that_was_not_paired_says_why() -> None:
    bare = replace(
        ROW, filter="strict", stderr=None, baseline=None, compared=None, excluded=None,
        won=None, lost=None, p_value=None, reason="bleu does not pass or fail an item",
    )  # fmt: skip
    (block,) = lm_eval_blocks(context(replace(BROKEN, state="NOT SHOWN", rows=(bare,))))
    (row,) = block.tables[1].rows
    assert row[1].sub == "strict"
    assert row[3].sub == "120 items"
    assert (row[5].text, row[5].sub) == ("not measured", bare.reason)
    assert [cell.text for cell in row[6:]] == ["not measured"] * 3
    plain = replace(ROW, excluded=0)
    (block,) = lm_eval_blocks(context(replace(BROKEN, rows=(plain,))))
    assert block.tables[1].rows[0][5].sub == ""


def test_without_results_there_is_no_table() -> None:
    (block,) = lm_eval_blocks(context())
    assert block.tables == ()
    (block,) = lm_eval_blocks(context(FAILED))
    assert [table.id for table in block.tables] == ["lm-eval-states-table"]
    assert "asked every server" in block.paragraphs[0]


def test_its_files_are_among_the_inputs() -> None:
    made = context(BROKEN)
    made.provenance = Provenance(inputs=(InputEntry(path="lm_eval/t.yaml", sha256="0" * 64),))
    blocks = {block.id: block for block in sections(made)["provenance"].blocks}
    (row,) = (
        r for r in blocks["inputs"].tables[0].rows if r[0].text == "tasks of lm-evaluation-harness"
    )
    assert [cell.text for cell in row] == [
        "tasks of lm-evaluation-harness", "t/t.yaml", "0" * 64, "the same",
    ]  # fmt: skip
