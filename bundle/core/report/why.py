"""Section 3: why a method gains or loses, by acceptance, step time and break-even."""

from __future__ import annotations

from bundle.core.report.context import Context
from bundle.core.report.numbers import (
    NO_DRAFTS,
    count,
    multiple,
    number,
    quantity,
    share,
)
from bundle.core.report.parts import (
    Block,
    Cell,
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
from bundle.core.report.text import listed, slug
from bundle.core.report.words import load_key, load_short, load_words
from bundle.core.results import Acceptance, BreakEven


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
    at_target = [row for row in even if row.load == context.results.target]
    sentences = [f"{reason(context, row)}{losses(row)}" for row in at_target]
    tables = [
        table
        for table in (
            _break_even_table(context, task, even),
            _acceptance_table(context, task, rows),
            _position_table(task, rows),
            _histogram_table(context, task, rows),
        )
        if table.rows
    ]
    return Block(
        id=f"why-{slug(task)}",
        title=task,
        paragraphs=tuple(sentences),
        charts=(*_positions(context, task, rows), *_predictions(task, even)),
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
    pays = "so it pays" if row.effective > row.break_even else "so it loses"
    return (
        f"{row.group} at {at}: it needs more than {needs} tokens per round to pay{step} and gets "
        f"{gets}, {pays}."
    )


def losses(row: BreakEven) -> str:
    """A further sentence on where the tokens that full acceptance would bring are lost."""
    parts = sorted(row.lost.items(), key=lambda part: -part[1])
    said = [f"{share(value)} to {name}" for name, value in parts if value > 0]
    return f" Of what full acceptance would bring it loses {listed(said)}." if said else ""


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
        "speed-up expected from tokens per round seen elsewhere, so that it can be wrong.",
    )


def scope_words(scope: str) -> str:
    """Where an acceptance was counted."""
    return "quality pass" if scope == "quality" else load_short(scope)


def _acceptance_table(context: Context, task: str, rows: list[Acceptance]) -> Table:
    return Table(
        id=f"acceptance-{slug(task)}",
        caption=f"{task}: acceptance, sums first",
        columns=columns(
            "Group",
            "Counted in",
            "#Accepted / proposed",
            "#Rate",
            "#Length",
            "#Rounds with a draft",
            "#Coverage",
            "#Accepted per output token",
            "Runner",
        ),
        rows=tuple(_acceptance_row(row) for row in rows),
        short=at_target(context, [row.scope for row in rows]),
        note="Rate and length are not comparable between model runners: V2 counts a draft on every "
        "round, V1 only where it has one. Accepted tokens per output token are.",
    )


def _acceptance_row(row: Acceptance) -> tuple[Cell, ...]:
    return (
        Cell(text=row.group, sub=f"k = {row.k}"),
        Cell(text=scope_words(row.scope)),
        Cell(text=f"{count(row.accepted)} / {count(row.drafted)}"),
        Cell(text=share(row.accepted, row.drafted, absent=NO_DRAFTS)),
        Cell(text=number(row.length, absent=NO_DRAFTS)),
        Cell(text=count(row.rounds)),
        Cell(text=share(row.rounds, row.decode_rounds)),
        Cell(text=number(row.accepted / row.output_tokens if row.output_tokens else None)),
        Cell(text=row.runner or "not recorded"),
    )


def _best_scope(rows: list[Acceptance]) -> list[Acceptance]:
    """One row per group: the quality pass where it counted positions, else the first load."""
    chosen: dict[str, Acceptance] = {}
    for row in sorted(rows, key=lambda r: (r.scope != "quality", load_key(r.scope))):
        if row.per_position is not None:
            chosen.setdefault(row.group, row)
    return list(chosen.values())


def _positions(context: Context, task: str, rows: list[Acceptance]) -> tuple[Chart, ...]:
    chosen = _best_scope(rows)
    if not chosen:
        return ()
    longest = max(len(row.per_position or ()) for row in chosen)
    series = tuple(
        Series(
            name=row.group,
            style=context.style(row.group),
            points=tuple(
                Point(at=i, value=100 * value) for i, value in enumerate(row.per_position or ())
            ),
        )
        for row in chosen
    )
    panel = Panel(
        title="Rounds that accepted at least this many draft tokens",
        y_label="share of rounds with a draft, %",
        x_label="draft position",
        categories=tuple(f"{i + 1}" for i in range(longest)),
        series=series,
    )
    said = "; ".join(f"{row.group} {_spoken(row)}" for row in chosen)
    return (
        Chart(
            id=f"chart-positions-{slug(task)}",
            title=f"{task}: acceptance by draft position",
            alt=f"Share of rounds on {task} that accepted at least so many draft tokens: {said}.",
            panels=(panel,),
            table=f"positions-{slug(task)}",
        ),
    )


def _spoken(row: Acceptance) -> str:
    values = row.per_position or ()
    return listed([f"{share(value)} at {i + 1}" for i, value in enumerate(values)])


def _position_table(task: str, rows: list[Acceptance]) -> Table:
    chosen = _best_scope(rows)
    return Table(
        id=f"positions-{slug(task)}",
        caption=f"{task}: acceptance by draft position",
        columns=columns(
            "Group", "Counted in", "Share of rounds that accepted at least 1, 2, ... tokens"
        ),
        rows=tuple(
            cells(
                row.group,
                scope_words(row.scope),
                " · ".join(share(c, row.rounds) for c in row.per_position_counts or ()),
            )
            for row in chosen
        ),
    )


def _histogram_table(context: Context, task: str, rows: list[Acceptance]) -> Table:
    counted_rows = [row for row in rows if row.histogram]
    return Table(
        id=f"histogram-{slug(task)}",
        caption=f"{task}: rounds by the number of draft tokens they accepted",
        columns=columns(
            "Group", "Counted in", "#Rounds", "Rounds that accepted exactly 0, 1, 2, ... tokens"
        ),
        rows=tuple(
            cells(
                row.group,
                scope_words(row.scope),
                count(row.rounds),
                " · ".join(count(value) for value in row.histogram or ()),
            )
            for row in counted_rows
        ),
        short=at_target(context, [row.scope for row in counted_rows]),
    )


def _predictions(task: str, rows: list[BreakEven]) -> tuple[Chart, ...]:
    both = [row for row in rows if row.predicted is not None and row.measured is not None]
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
