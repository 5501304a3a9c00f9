"""The part of section 3 on losses: from full acceptance down to the speed-up that was measured."""

from __future__ import annotations

from bundle.core.breakeven import MISSING, REJECTED, SHORTER, STEPS, UNDIVIDED
from bundle.core.report.context import Context
from bundle.core.report.gains import ADJUSTED
from bundle.core.report.numbers import multiple, number, share
from bundle.core.report.parts import Cell, Table, columns
from bundle.core.report.speed import at_target
from bundle.core.report.text import listed, slug
from bundle.core.report.words import load_key, load_short
from bundle.core.results_why import BreakEven

_NONE = "-"
_SAID = 0.001
"""Smallest part of the whole loss that a sentence names."""


def losses(row: BreakEven) -> str:
    """A further sentence on where the tokens that full acceptance would bring are lost."""
    parts = sorted(row.losses, key=lambda loss: -loss.share)
    said = [f"{share(loss.share)} to {loss.name}" for loss in parts if loss.share >= _SAID]
    return f" Of what full acceptance would bring it loses {listed(said)}." if said else ""


def loss_table(context: Context, task: str, rows: list[BreakEven]) -> Table:
    """One row per cell: the speed-ups, and between them what divides one into the next."""
    known = sorted((row for row in rows if row.losses), key=lambda row: load_key(row.load))
    return Table(
        id=f"losses-{slug(task)}",
        caption=f"{task}: from full acceptance to the measured speed-up",
        columns=columns(
            "Load",
            "Group",
            "#Full acceptance",
            "#Shorter proposals",
            "#Rejected drafts",
            "#Rounds without a draft",
            "#If drafts were free",
            "#Longer rounds",
            "#Measured",
        ),
        rows=tuple(_row(row) for row in known),
        short=at_target(context, [row.load for row in known]),
        note="Full acceptance: all k drafts of every round accepted, at no cost. Each loss divides "
        "the speed-up by the number shown; below 1 it is a gain. The percentages are parts of the "
        "whole loss on the log scale. Longer rounds hold proposing and verifying together: the "
        "engine reports the time of neither, so that the two cannot be told apart. Measured "
        f"{ADJUSTED}, so that the factors do not lead to it exactly.",
    )


def _row(row: BreakEven) -> tuple[Cell, ...]:
    return (
        Cell(text=load_short(row.load)),
        Cell(text=row.group),
        Cell(text=f"{row.full}×"),
        _loss(row, SHORTER),
        _loss(row, REJECTED, UNDIVIDED),
        _loss(row, MISSING),
        Cell(text=multiple(row.effective)),
        _loss(row, STEPS),
        Cell(text=multiple(row.measured)),
    )


def _loss(row: BreakEven, *names: str) -> Cell:
    found = next((loss for loss in row.losses if loss.name in names), None)
    if found is None:
        return Cell(text=_NONE)
    said = share(found.share) if found.factor > 1 else ""
    if found.name == UNDIVIDED:
        said = f"{said}, with missing ones".removeprefix(", ")
    return Cell(text=f"÷{number(found.factor)}", sub=said)
