"""The charts of section 2: the gain over load with intervals, noise floor and margin."""

from __future__ import annotations

import math

from bundle.core.report.context import Context
from bundle.core.report.metrics import E2EL, NAMES, THROUGHPUT, TPOT
from bundle.core.report.numbers import change
from bundle.core.report.parts import (
    Chart,
    Panel,
    Point,
    Series,
)
from bundle.core.report.text import listed, slug
from bundle.core.report.words import is_rate
from bundle.core.results import EffectRow


def charts(context: Context, task: str, loads: list[str]) -> tuple[Chart, ...]:
    """One chart per kind of load that has a ratio."""
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
