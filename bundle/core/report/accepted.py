"""The part of section 3 on acceptance: sums, rates, positions, histogram."""

from __future__ import annotations

from bundle.core.report.context import Context
from bundle.core.report.numbers import (
    NO_DRAFTS,
    count,
    number,
    share,
)
from bundle.core.report.parts import (
    Cell,
    Chart,
    Panel,
    Point,
    Series,
    Table,
    cells,
    columns,
)
from bundle.core.report.speed import at_target
from bundle.core.report.text import listed, slug
from bundle.core.report.words import load_key, load_short
from bundle.core.results import Acceptance


def scope_words(scope: str) -> str:
    """Where an acceptance was counted."""
    return "quality pass" if scope == "quality" else load_short(scope)


def acceptance_table(context: Context, task: str, rows: list[Acceptance]) -> Table:
    """Accepted and proposed tokens of every group and scope, with what follows from them."""
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


def positions_chart(context: Context, task: str, rows: list[Acceptance]) -> tuple[Chart, ...]:
    """Acceptance by draft position, one line per group."""
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


def position_table(task: str, rows: list[Acceptance]) -> Table:
    """The same in numbers."""
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


def histogram_table(context: Context, task: str, rows: list[Acceptance]) -> Table:
    """Rounds by the number of draft tokens they accepted."""
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
