"""Section 2: the effect over load, with intervals and the noise floor as a band."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bundle.core.report.context import Context
from bundle.core.report.metrics import E2EL, NAMES, THROUGHPUT, TPOT, canonical, short
from bundle.core.report.numbers import change, interval, noise, quantity
from bundle.core.report.parts import (
    Block,
    Cell,
    Chart,
    Column,
    Panel,
    Point,
    Section,
    Series,
    Table,
    columns,
)
from bundle.core.report.text import counted, listed, slug
from bundle.core.report.words import is_rate, load_short
from bundle.core.results import EffectRow


def section(context: Context) -> Section:
    """Build section 2."""
    tasks = [task for task in context.tasks if any(key[1] == task for key in context.effects)]
    blocks = [_task(context, task) for task in tasks]
    return Section(
        id="speed",
        number=2,
        title="Speed over load",
        lead=(_lead(context),),
        blocks=(*blocks, *_aa(context)),
    )


def _lead(context: Context) -> str:
    if not context.effects:
        return "No effect was measured."
    sds = [row.noise_sd for row in context.effects.values() if row.noise_sd is not None]
    text = (
        "Every effect is a method against the baseline of the same blocks, one value per server "
        "start. The noise floor is the standard deviation between starts of the same cell."
    )
    if not sds:
        return f"{text} It could not be measured here: with one block there is no interval."
    low, high = noise(min(sds)), noise(max(sds))
    return f"{text} It lies between {low} and {high}." if low != high else f"{text} It is {low}."


def _task(context: Context, task: str) -> Block:
    loads = [
        x for x in context.loads if any(key[1] == task and key[2] == x for key in context.effects)
    ]
    rest = [m for m in context.metrics if m not in (TPOT, THROUGHPUT)]
    # Four metrics with interval and values fill a page's width.
    parts = [rest[first : first + 4] for first in range(0, len(rest), 4)]
    tables = [_main_table(context, task, loads)]
    tables += [_other_table(context, task, loads, part) for part in parts]
    return Block(
        id=f"speed-{slug(task)}",
        title=task,
        charts=_charts(context, task, loads),
        tables=tuple(tables),
    )


def _charts(context: Context, task: str, loads: list[str]) -> tuple[Chart, ...]:
    kinds = [
        ("concurrent requests", [x for x in loads if not is_rate(x)], (TPOT, THROUGHPUT)),
        ("requests per second", [x for x in loads if is_rate(x)], (TPOT, E2EL)),
    ]
    drawn = (
        _chart(context, task, axis, chosen, metrics) for axis, chosen, metrics in kinds if chosen
    )
    return tuple(chart for chart in drawn if chart.panels)


def _chart(
    context: Context, task: str, axis: str, loads: list[str], metrics: tuple[str, ...]
) -> Chart:
    panels = tuple(_panel(context, task, axis, loads, metric) for metric in metrics)
    kept = tuple(panel for panel in panels if panel.series)
    return Chart(
        id=f"chart-speed-{slug(task, axis)}",
        title=f"{task}: gain over the baseline by {axis}",
        alt=_alt(context, task, loads, axis),
        panels=kept,
        table=f"speed-table-{slug(task)}",
        note="Bars: 95\u00a0% interval; grey band: noise floor; dashed: the margin asked for",
    )


def _panel(context: Context, task: str, axis: str, loads: list[str], metric: str) -> Panel:
    series = []
    for group in context.methods:
        rows = [(i, context.effect(group, task, load, metric)) for i, load in enumerate(loads)]
        points = tuple(
            _point(i, row) for i, row in rows if row is not None and row.ratio is not None
        )
        if points:
            series.append(Series(name=group, style=context.style(group), points=points))
    return Panel(
        title=NAMES.get(metric, metric),
        y_label="gain, %",
        x_label=axis,
        categories=tuple(load[1:] for load in loads),
        series=tuple(series),
        band=tuple(_band(context, task, load, metric) for load in loads),
        lines=((100 * context.results.margin, "margin"),),
    )


def _point(at: int, row: EffectRow) -> Point:
    def percent(value: float | None) -> float | None:
        return None if value is None else 100 * (value - 1)

    return Point(
        at=at,
        value=100 * ((row.ratio or 1.0) - 1),
        lower=percent(row.lower),
        upper=percent(row.upper),
    )


def _band(context: Context, task: str, load: str, metric: str) -> float | None:
    sds = [
        row.noise_sd
        for key, row in context.effects.items()
        if key[1:] == (task, load, metric) and row.noise_sd is not None
    ]
    return 100 * (math.exp(max(sds)) - 1) if sds else None


def _alt(context: Context, task: str, loads: list[str], axis: str) -> str:
    parts = []
    for group in context.methods:
        found = [(load, context.effect(group, task, load, TPOT)) for load in loads]
        spoken = [
            f"{change(row.ratio, row.lower, row.upper)} at {load[1:]}"
            for load, row in found
            if row is not None and row.ratio is not None
        ]
        if spoken:
            parts.append(f"{group} {listed(spoken)}")
    said = "; ".join(parts) or "nothing was measured"
    return f"Gain in time per token on {task} by {axis}: {said}."


def _main_table(context: Context, task: str, loads: list[str]) -> Table:
    rows = []
    for load in loads:
        for group in context.methods:
            row = _main_row(context, task, load, group)
            if row is not None:
                rows.append(row)
    return Table(
        id=f"speed-table-{slug(task)}",
        caption=f"{task}: time per token and throughput",
        columns=columns(
            "Load",
            "Group",
            "#TPOT, baseline to group",
            "#Gain in TPOT",
            "#Output throughput, baseline to group",
            "#Gain in throughput",
            "#Noise floor",
            "#Starts",
        ),
        rows=tuple(rows),
        note="Gain: + is faster; in the second line the 95\u00a0% interval.",
    )


def _main_row(context: Context, task: str, load: str, group: str) -> tuple[Cell, ...] | None:
    tpot = context.effect(group, task, load, TPOT)
    throughput = context.effect(group, task, load, THROUGHPUT)
    first = tpot or throughput
    if first is None:
        return None
    return (
        Cell(text=load_short(load)),
        Cell(text=group),
        _from_to(tpot),
        gain_cell(context, tpot),
        _from_to(throughput),
        gain_cell(context, throughput),
        Cell(text=noise(first.noise_sd)),
        Cell(text=f"{first.starts}"),
    )


def _from_to(row: EffectRow | None) -> Cell:
    if row is None or row.value is None or row.baseline is None:
        return Cell(text="not measured", tone="muted")
    base = quantity(row.baseline, "")
    return Cell(text=f"{base} → {quantity(row.value, row.unit)}")


def gain_cell(context: Context, row: EffectRow | None) -> Cell:
    """A gain with its interval and any note."""
    if row is None or row.ratio is None:
        return Cell(text="not measured", sub=row.note if row else "", tone="muted")
    margin = context.results.margin
    spread = interval(row.lower, row.upper, margin=margin)
    return Cell(
        text=change(row.ratio, row.lower, row.upper, margin=margin),
        sub=f"{spread}; {row.note}" if row.note else spread,
    )


def _other_table(context: Context, task: str, loads: list[str], metrics: list[str]) -> Table:
    rows, places = [], []
    for load in loads:
        for group in context.methods:
            effects = [context.effect(group, task, load, metric) for metric in metrics]
            if any(effect is not None for effect in effects):
                found = (_other_cell(context, effect) for effect in effects)
                rows.append((Cell(text=load_short(load)), Cell(text=group), *found))
                places.append(load)
    return Table(
        id=f"latency-table-{slug(task, metrics[0])}",
        caption=f"{task}: {listed([short(metric) for metric in metrics])}",
        columns=(
            Column(label="Load"),
            Column(label="Group"),
            *(Column(label=short(metric), numeric=True) for metric in metrics),
        ),
        rows=tuple(rows),
        short=at_target(context, places),
        note="Gain against the baseline: + is faster. ITL counts chunks under speculation: it "
        "shows the pauses that a reader sees, never a speed.",
    )


def at_target(context: Context, loads: Sequence[str]) -> tuple[int, ...]:
    """The indices of the rows at the target load."""
    return tuple(i for i, load in enumerate(loads) if load == context.results.target)


def _other_cell(context: Context, row: EffectRow | None) -> Cell:
    cell = gain_cell(context, row)
    if row is None or row.value is None or row.baseline is None or row.ratio is None:
        return cell
    values = f"{quantity(row.baseline, '')} → {quantity(row.value, row.unit)}"
    return Cell(text=cell.text, sub=f"{cell.sub}; {values}")


def _aa(context: Context) -> tuple[Block, ...]:
    rows = tuple(
        (
            Cell(text=row.task),
            Cell(text=load_short(row.load)),
            Cell(text=short(row.metric)),
            gain_cell(context, row),
            Cell(text=noise(row.noise_sd)),
            Cell(text=f"{row.starts}"),
        )
        for row in context.results.aa
        if canonical(row.metric) in (TPOT, THROUGHPUT, E2EL)
    )
    if not rows:
        return ()
    table = Table(
        id="aa-table",
        caption="The baseline against itself: last start of a block against the first",
        columns=columns("Task", "Load", "Metric", "#Change", "#Noise floor", "#Starts"),
        rows=rows,
    )
    text = (
        "Both arms are the same configuration, so any change here is drift of the machine. "
        f"{counted(len(rows), 'cell')} could be compared."
    )
    return (Block(id="aa", title="Baseline against baseline", paragraphs=(text,), tables=(table,)),)
