"""Section 8: what a method costs in memory, preemptions and energy."""

from __future__ import annotations

from bundle.core.report.context import Context
from bundle.core.report.limit_words import LIMIT_TONES, kv_words, limit_measured, limit_name
from bundle.core.report.numbers import NOT_MEASURED, count, quantity
from bundle.core.report.parts import Block, Cell, Section, Table, columns
from bundle.core.report.text import listed
from bundle.core.report.words import load_words
from bundle.core.results import CapacityRow, VerdictRow


def section(context: Context) -> Section:
    """Build section 8."""
    blocks = (*_memory(context), *_limits(context), *_power(context))
    lead = (
        "Capacity is what the servers reported at start, one value per start; identical launches "
        "can differ."
        if context.results.capacity
        else "KV capacity and memory were not measured."
    )
    return Section(id="cost", number=8, title="Cost", lead=(lead,), blocks=blocks)


def _memory(context: Context) -> tuple[Block, ...]:
    rows = tuple(
        (
            Cell(text=row.group, sub=context.about.get(row.group, "")),
            Cell(text=_tokens(row)),
            Cell(text=_loss(context, row)),
            Cell(text=quantity(row.weights_gib, "GiB")),
            Cell(text=quantity(row.graph_gib, "GiB")),
            Cell(text=count(row.preemptions)),
            Cell(text=_path(row)),
        )
        for row in context.results.capacity
    )
    if not rows:
        return ()
    table = Table(
        id="capacity-table",
        caption="Memory by group",
        columns=columns(
            "Group",
            "#KV capacity, tokens",
            "#Lost",
            "#Weights",
            "#Graphs",
            "#Preemptions",
            "Engine path",
        ),
        rows=rows,
    )
    return (Block(id="capacity", title="KV capacity and memory", tables=(table,)),)


def _tokens(row: CapacityRow) -> str:
    if not row.kv_tokens:
        return NOT_MEASURED
    low, high = min(row.kv_tokens), max(row.kv_tokens)
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def _loss(context: Context, row: CapacityRow) -> str:
    return "reference" if row.group == context.baseline else kv_words(row)


def _path(row: CapacityRow) -> str:
    asynchronous = {None: "", True: "asynchronous scheduling", False: "synchronous scheduling"}
    parts = [f"runner {row.runner}" if row.runner else "", asynchronous[row.async_scheduling]]
    return ", ".join(part for part in parts if part) or "not recorded"


def _limits(context: Context) -> tuple[Block, ...]:
    judged = [row for row in context.results.verdicts if row.limits]
    names = list(dict.fromkeys(limit.name for row in judged for limit in row.limits))
    if not judged:
        return ()
    table = Table(
        id="limits-table",
        caption="Every limit of every verdict, at the target load",
        columns=columns("Group", "Task", *(limit_name(name) for name in names)),
        rows=tuple(
            (
                Cell(text=row.group),
                Cell(text=row.task),
                *(_limit_cell(row, name) for name in names),
            )
            for row in judged
        ),
    )
    return (Block(id="policy-limits", title="Limits of the policy", tables=(table,)),)


def _limit_cell(row: VerdictRow, name: str) -> Cell:
    limit = next((x for x in row.limits if x.name == name), None)
    if limit is None:
        return Cell(text=NOT_MEASURED, tone="muted")
    return Cell(
        text=limit.state,
        sub=limit_measured(limit),
        tone=LIMIT_TONES.get(limit.state, "muted"),
    )


def _power(context: Context) -> tuple[Block, ...]:
    """Power and energy where a cell's statistics carry them."""
    found = [cell for cell in context.results.cells if cell.unit in ("W", "J", "J/token")]
    if not found:
        text = "Power and energy per token were not measured."
        return (Block(id="power", title="Power and energy", paragraphs=(text,)),)
    table = Table(
        id="power-table",
        caption="Power and energy, one value per start",
        columns=columns("Group", "Task", "Load", "Metric", "#Values"),
        rows=tuple(
            (
                Cell(text=cell.group),
                Cell(text=cell.task),
                Cell(text=load_words(cell.load)),
                Cell(text=cell.metric),
                Cell(text=listed([quantity(value, cell.unit) for value in cell.values])),
            )
            for cell in found
        ),
    )
    return (Block(id="power", title="Power and energy", tables=(table,)),)
