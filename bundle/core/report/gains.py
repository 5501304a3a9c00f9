"""Gains with their intervals: one in a cell, and all of a task by load, in little room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bundle.core.report.context import Context
from bundle.core.report.metrics import E2EL, NAMES, THROUGHPUT, TPOT
from bundle.core.report.numbers import change, interval
from bundle.core.report.parts import Cell, Column, Table
from bundle.core.report.text import slug
from bundle.core.report.words import is_rate, load_short
from bundle.core.results import EffectRow

ADJUSTED = "is adjusted for drift within a block"
"""What every effect is and a ratio of means is not."""
_MOST_LOADS = 8
"""Columns that a page has room for beside the group's."""


def gain_cell(context: Context, row: EffectRow | None, *, said: str = "") -> Cell:
    """A gain with its interval and any note, unless the note is ``said`` elsewhere."""
    note = row.note if row is not None and row.note != said else ""
    if row is None or row.ratio is None:
        return Cell(text="not measured", sub=note, tone="muted")
    margin = context.results.margin
    spread = interval(row.lower, row.upper, margin=margin)
    return Cell(
        text=change(row.ratio, row.lower, row.upper, margin=margin),
        sub=f"{spread}; {note}" if note else spread,
    )


def shared_note(rows: Iterable[EffectRow | None]) -> str:
    """The note that several rows have, all of them: it need not stand in every cell."""
    notes = [row.note for row in rows if row is not None]
    return notes[0] if len(notes) > 1 and len(set(notes)) == 1 else ""


def gains_by_load(context: Context, task: str, loads: Sequence[str]) -> tuple[Table, ...]:
    """One table for each metric, groups down and loads across; none where a page has no room.

    The first has the id of the long table that it stands for, so that links to it land.
    """
    if len(loads) > _MOST_LOADS:
        return ()
    second = E2EL if all(is_rate(load) for load in loads) else THROUGHPUT
    made = (_table(context, task, loads, metric) for metric in (TPOT, second))
    kept = [table for table in made if table.rows]
    first = [msgspec.structs.replace(table, id=f"speed-table-{slug(task)}") for table in kept[:1]]
    return (*first, *kept[1:])


def _table(context: Context, task: str, loads: Sequence[str], metric: str) -> Table:
    return Table(
        id=f"gains-{slug(task, metric)}",
        caption=f"{task}: gain in {NAMES[metric]} by load",
        columns=(
            Column(label="Group"),
            *(Column(label=load_short(load), numeric=True) for load in loads),
        ),
        rows=tuple(
            (
                Cell(text=group),
                *(gain_cell(context, context.effect(group, task, load, metric)) for load in loads),
            )
            for group in context.methods
            if any(context.effect(group, task, load, metric) for load in loads)
        ),
        note="+ is faster; in the second line the 95\u00a0% interval. The values of both sides, "
        "noise floors and starts are in the HTML report and in the attached data.",
    )
