"""The part of section 7 that lm-evaluation-harness gives: every number beside the baseline's."""

from __future__ import annotations

from bundle.core.lm_eval_results import LmEvalGroup, LmEvalRow
from bundle.core.report.context import Context
from bundle.core.report.numbers import count, number, probability
from bundle.core.report.parts import Block, Cell, Table, Tone, columns
from bundle.core.report.text import listed

_TONES: dict[str, Tone] = {
    "SHOWN": "good",
    "BROKEN": "bad",
    "NOT SHOWN": "unsure",
    "NOT MEASURED": "muted",
}


def lm_eval_blocks(context: Context) -> tuple[Block, ...]:
    """One block where the recipe asks for an evaluation, none otherwise."""
    spec, found = context.recipe.quality.lm_eval, context.results.lm_eval
    if spec is None:
        return ()
    versions = [group.version for group in found if group.version]
    text = (
        f"lm-evaluation-harness{f' {versions[0]}' if versions else ''} asked every server of one "
        f"block for {listed(list(spec.tasks))} through the {spec.api} interface, greedy and "
        "seeded, after its cells. Items are paired with the baseline's by the first metric of a "
        "task that passes or fails an item, over all tasks together, and the worse of this and the "
        "checked items above is the group's quality."
    )
    tables = (_states(found), *((_numbers(found),) if any(g.rows for g in found) else ()))
    return (
        Block(
            id="lm-eval",
            title="lm-evaluation-harness",
            paragraphs=(text,),
            tables=tables if found else (),
        ),
    )


def _states(found: tuple[LmEvalGroup, ...]) -> Table:
    return Table(
        id="lm-eval-states-table",
        caption="All tasks together, method against baseline",
        columns=columns("Group", "State", "Reason"),
        rows=tuple(
            (
                Cell(text=group.group),
                Cell(text=group.state, tone=_TONES[group.state]),
                Cell(text=group.reason or "-"),
            )
            for group in found
        ),
    )


def _numbers(found: tuple[LmEvalGroup, ...]) -> Table:
    return Table(
        id="lm-eval-table",
        caption="What the harness says, and how its items differ from the baseline's",
        columns=columns(
            "Task",
            "Metric",
            "Group",
            "#Value",
            "#Baseline",
            "#Paired items",
            "#Won",
            "#Lost",
            "#One-sided test",
        ),
        rows=tuple(
            (
                Cell(text=row.task),
                Cell(text=row.metric, sub="" if row.filter == "none" else row.filter),
                Cell(text=group.group),
                Cell(text=number(row.value), sub=_stderr(row)),
                Cell(text=number(row.baseline)),
                _compared(row),
                Cell(text=count(row.won)),
                Cell(text=count(row.lost)),
                Cell(text=probability(row.p_value)),
            )
            for group in found
            for row in group.rows
        ),
        note="± is the harness's standard error over the items of one start: two values may lie "
        "within it and still differ item by item.",
    )


def _stderr(row: LmEvalRow) -> str:
    spread = "" if row.stderr is None else f"±{number(row.stderr, 2)}, "
    return f"{spread}{count(row.items)} items"


def _compared(row: LmEvalRow) -> Cell:
    if row.compared is None:
        return Cell(text="not measured", sub=row.reason, tone="muted")
    return Cell(text=count(row.compared), sub=f"{row.excluded} excluded" if row.excluded else "")
