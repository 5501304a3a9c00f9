"""Section 8: what a method costs in memory, preemptions and energy."""

from __future__ import annotations

from bundle.core.report.context import Context
from bundle.core.report.decision import LIMIT_TONES, LIMIT_WORDS, limit_words
from bundle.core.report.numbers import NOT_MEASURED, count, quantity, share
from bundle.core.report.parts import Block, Cell, Section, Table, columns
from bundle.core.report.text import listed
from bundle.core.report.words import load_words
from bundle.core.results import CapacityRow


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


def kv_words(row: CapacityRow | None) -> str:
    """A method's KV capacity against the baseline's in a few words."""
    if row is None or row.kv_loss is None:
        return NOT_MEASURED
    if row.kv_loss == 0:
        return "no KV capacity lost"
    word = "lost" if row.kv_loss > 0 else "more"
    return f"{share(abs(row.kv_loss))} of the KV capacity {word}"


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
    rows = tuple(
        (
            Cell(text=row.group),
            Cell(text=row.task, sub=load_words(row.load)),
            Cell(
                text=LIMIT_WORDS[limit.state],
                sub=limit.state,
                tone=LIMIT_TONES.get(limit.state, "muted"),
            ),
            Cell(text=limit_words(limit)),
            Cell(text=limit.reason or "-"),
        )
        for row in context.results.verdicts
        for limit in row.limits
    )
    if not rows:
        return ()
    table = Table(
        id="limits-table",
        caption="Every limit of every verdict",
        columns=columns("Group", "Task", "State", "Measured", "Reason"),
        rows=rows,
    )
    return (Block(id="policy-limits", title="Limits of the policy", tables=(table,)),)


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
