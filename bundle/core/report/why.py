"""Section 3: why a method gains or loses, by acceptance, step time and break-even."""

from __future__ import annotations

from bundle.core.report.accepted import (
    acceptance_table,
    histogram_table,
    position_table,
    positions_chart,
)
from bundle.core.report.context import Context
from bundle.core.report.gains import ADJUSTED
from bundle.core.report.lost import loss_table, losses
from bundle.core.report.metrics import TPOT
from bundle.core.report.numbers import (
    multiple,
    number,
    quantity,
)
from bundle.core.report.parts import (
    Block,
    Chart,
    Panel,
    Point,
    Section,
    Series,
    Table,
    cells,
    columns,
)
from bundle.core.report.speed import at_target
from bundle.core.report.splitting import split_sentences, split_table
from bundle.core.report.text import slug
from bundle.core.report.words import load_key, load_short, load_words
from bundle.core.results_why import BreakEven

_MOST_PAIRS = 10
"""Labels that a chart has room for; with more pairs it shows the target load."""


def section(context: Context) -> Section:
    """Build section 3."""
    blocks = [_task(context, task) for task in context.tasks]
    return Section(
        id="why",
        number=3,
        title="Why",
        lead=(
            "A method pays when it brings more tokens per decode round than its rounds cost more "
            "time. Acceptance alone does not say so: rounds without a draft count too.",
        ),
        blocks=tuple(block for block in blocks if block.tables or block.paragraphs),
    )


def _task(context: Context, task: str) -> Block:
    rows = [row for row in context.results.acceptance if row.task == task]
    even = [row for row in context.results.break_even if row.task == task]
    sentences = [
        f"{reason(context, row)}{losses(row)}" for row in even if row.load == context.results.target
    ]
    sentences += split_sentences(context, task)
    tables = [
        table
        for table in (
            _break_even_table(context, task, even),
            loss_table(context, task, even),
            split_table(context, task),
            acceptance_table(context, task, rows),
            position_table(task, rows),
            histogram_table(context, task, rows),
        )
        if table.rows
    ]
    return Block(
        id=f"why-{slug(task)}",
        title=task,
        paragraphs=tuple(sentences),
        charts=(*positions_chart(context, task, rows), *_predictions(context, task, even)),
        tables=tuple(tables),
    )


def reason(context: Context, row: BreakEven) -> str:
    """Why a method pays or not at one cell, in one sentence of numbers."""
    at = load_words(row.load)
    if row.break_even is None or row.effective is None:
        drafted = any(
            a.drafted
            for a in context.results.acceptance
            if (a.group, a.task) == (row.group, row.task)
        )
        missing = "its step time or its tokens per round were not measured"
        return f"{row.group} at {at}: {missing if drafted else 'it proposed no drafts'}."
    needs, gets = number(row.break_even), number(row.effective)
    if needs == gets:
        needs, gets = number(row.break_even, 5), number(row.effective, 5)
    step = ""
    if row.step_ms is not None and row.baseline_step_ms is not None:
        step = (
            f" (a round takes {quantity(row.step_ms, 'ms')}, the baseline's "
            f"{quantity(row.baseline_step_ms, 'ms')})"
        )
    return (
        f"{row.group} at {at}: it needs more than {needs} tokens per round to pay{step} and gets "
        f"{gets}, {_pays(context, row, row.effective > row.break_even)}.{_too_cheap(row)}"
    )


def _pays(context: Context, row: BreakEven, enough: bool) -> str:
    """Whether a method pays, said only where the interval of its TPOT says the same."""
    effect = context.effect(row.group, row.task, row.load, TPOT)
    if effect is None or effect.lower is None or effect.upper is None:
        return "but without an interval it cannot be told whether it pays"
    if enough and effect.lower > 1:
        return "so it pays"
    if not enough and effect.upper < 1:
        return "so it loses"
    return "but whether it pays cannot be told at this noise"


def _too_cheap(row: BreakEven) -> str:
    if row.break_even is None or row.break_even >= 1:
        return ""
    return (
        " A round that is cheaper than a plain step is noise, or something else differs between "
        "the two sides."
    )


def _break_even_table(context: Context, task: str, rows: list[BreakEven]) -> Table:
    ordered = sorted(rows, key=lambda row: load_key(row.load))
    return Table(
        id=f"break-even-{slug(task)}",
        caption=f"{task}: tokens per round against break-even",
        columns=columns(
            "Load",
            "Group",
            "#Tokens per round",
            "#Break-even",
            "#Step time",
            "#Baseline step",
            "#Predicted",
            "#Measured",
            "Predicted from",
        ),
        rows=tuple(
            cells(
                load_short(row.load),
                row.group,
                number(row.effective),
                number(row.break_even),
                quantity(row.step_ms, "ms"),
                quantity(row.baseline_step_ms, "ms"),
                multiple(row.predicted, "not predicted"),
                multiple(row.measured),
                row.predicted_from or "-",
            )
            for row in ordered
        ),
        short=at_target(context, [row.load for row in ordered]),
        note="Break-even is the step time of the method over the baseline's. Predicted is the "
        "speed-up expected from tokens per round seen elsewhere, so that it can be wrong. Measured "
        f"{ADJUSTED}, so that it differs from tokens per round over break-even.",
    )


def _predictions(context: Context, task: str, rows: list[BreakEven]) -> tuple[Chart, ...]:
    both = [row for row in rows if row.predicted is not None and row.measured is not None]
    if len(both) > _MOST_PAIRS:
        both = [row for row in both if row.load == context.results.target]
    ordered = sorted(both, key=lambda row: (load_key(row.load), row.group))
    if not ordered:
        return ()
    said = [
        f"{row.group} at {load_words(row.load)} {multiple(row.predicted)} predicted, "
        f"{multiple(row.measured)} measured"
        for row in ordered
    ]
    panel = Panel(
        title="Speed-up against the baseline",
        y_label="times the baseline",
        x_label="",
        categories=tuple(f"{row.group}\n{row.load}" for row in ordered),
        series=(
            Series(
                name="predicted",
                style=0,
                points=tuple(Point(at=i, value=r.predicted or 0) for i, r in enumerate(ordered)),
            ),
            Series(
                name="measured",
                style=1,
                points=tuple(Point(at=i, value=r.measured or 0) for i, r in enumerate(ordered)),
            ),
        ),
        lines=((1.0, "baseline"),),
        percent=False,
    )
    return (
        Chart(
            id=f"chart-predicted-{slug(task)}",
            title=f"{task}: predicted and measured speed-up",
            alt=f"Speed-up on {task}: {'; '.join(said)}.",
            panels=(panel,),
            kind="pairs",
            table=f"break-even-{slug(task)}",
        ),
    )
