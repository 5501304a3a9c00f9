"""The part of section 3 on matched baselines: the engine's path apart from the speculation."""

from __future__ import annotations

from bundle.core.report.context import Context
from bundle.core.report.metrics import TPOT, canonical, short
from bundle.core.report.numbers import change, interval
from bundle.core.report.parts import Cell, Table, columns
from bundle.core.report.speed import at_target
from bundle.core.report.text import slug
from bundle.core.report.words import load_key, load_short, load_words
from bundle.core.results_why import SplitRow


def split_table(context: Context, task: str) -> Table:
    """Every effect of one task that a matched baseline splits in two."""
    found = [row for row in context.results.splits if row.task == task]
    rows = sorted(found, key=lambda row: load_key(row.load))
    return Table(
        id=f"split-{slug(task)}",
        caption=f"{task}: the engine's path apart from the speculation",
        columns=columns(
            "Load", "Group", "Metric", "Matched baseline", "#Engine path", "#Speculation", "#Both"
        ),
        rows=tuple(_row(row) for row in rows),
        short=at_target(context, [row.load for row in rows]),
        note="Some methods run on an older path of the engine. Engine path: the matched baseline, "
        "forced onto it, against the stock one. Speculation: the method against the matched "
        "baseline. The two multiply to the whole.",
    )


def _row(row: SplitRow) -> tuple[Cell, ...]:
    return (
        Cell(text=load_short(row.load)),
        Cell(text=row.group),
        Cell(text=short(row.metric)),
        Cell(text=row.matched),
        _part(row.path_ratio, row.path_lower, row.path_upper),
        _part(row.spec_ratio, row.spec_lower, row.spec_upper),
        Cell(text=change(row.path_ratio * row.spec_ratio)),
    )


def _part(ratio: float, lower: float | None, upper: float | None) -> Cell:
    return Cell(text=change(ratio, lower, upper), sub=interval(lower, upper))


def split_sentences(context: Context, task: str) -> tuple[str, ...]:
    """One sentence for every method with a matched baseline, in time per token at the target."""
    return tuple(
        f"{row.group} at {load_words(row.load)}: the engine path it needs changes TPOT by "
        f"{change(row.path_ratio, row.path_lower, row.path_upper)}, the speculation itself by "
        f"{change(row.spec_ratio, row.spec_lower, row.spec_upper)} (against {row.matched})."
        for row in context.results.splits
        if row.task == task and row.load == context.results.target and canonical(row.metric) == TPOT
    )
