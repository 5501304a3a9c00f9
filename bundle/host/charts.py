"""Charts as SVG: words as text, nothing random, nothing dated, legible without colour.

Page and PDF carry the font themselves, so words need not be drawn as paths: the PDF takes a fifth
less time and its charts can be searched.

A series has the same colour, marker and line in every chart.
"""

from __future__ import annotations

import io
import math
import re
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from bundle.core.report.parts import Chart, Panel, Series
from bundle.host.chart_colours import BAND, GRID, INK, MUTED, SERIES
from bundle.host.resources import resource

MARKERS = "osD^vPX"
LINES = ("-", "--", ":")

_LEFT, _RIGHT, _TITLE, _LEGEND_ROW = 0.62, 0.08, 0.34, 0.2
"""Inches: room for the y labels, at the right, for a panel's title, for a row of the legend."""
_LEGEND_MARK, _LETTER = 0.52, 0.07
"""Inches: a legend entry without its name, and a letter of it."""

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "specbundle",
    "font.family": "Inter",
    "font.size": 8.5,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.unicode_minus": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "text.color": INK,
    "legend.frameon": False,
    "path.simplify": False,
}


def draw(chart: Chart) -> str:
    """Draw a chart as one SVG element (no XML head), the same bytes every time."""
    _use_own_font()
    with mpl.rc_context(_style()):
        width, height = _size(chart)
        rows = math.ceil(len(chart.panels[0].series) / _columns(chart))
        height += _LEGEND_ROW * rows
        figure = Figure(figsize=(width, height))
        # Fixed margins: measuring every text first would double the time of a chart.
        axes = figure.subplots(
            1,
            len(chart.panels),
            squeeze=False,
            gridspec_kw={
                "left": _LEFT / width,
                "right": 1 - _RIGHT / width,
                "bottom": (0.5 if chart.kind == "lines" else 0.42) / height,
                "top": 1 - (_TITLE + _LEGEND_ROW * rows) / height,
                "wspace": 0.26,
            },
        )[0]
        for axis, panel in zip(axes, chart.panels, strict=True):
            _panel(axis, panel, joined=chart.kind == "lines")
        _legend(figure, axes[0], chart)
        out = io.StringIO()
        blank = {"Date": None, "Creator": None, "Format": None, "Type": None}
        FigureCanvasSVG(figure).print_svg(out, metadata=blank)  # type: ignore[no-untyped-call]
    return _element(out.getvalue(), chart.id)


def _style() -> Any:
    """Matplotlib's own defaults, whatever the user's settings are, and ours over them."""
    return {**mpl.rcParamsDefault, **_STYLE, "backend": "svg"}


def _use_own_font() -> None:
    path = str(resource("templates", "fonts/Inter-Regular.ttf"))
    if not any(entry.fname == path for entry in fontManager.ttflist):
        fontManager.addfont(path)


def _size(chart: Chart) -> tuple[float, float]:
    """Inches; pairs get room for their labels."""
    if chart.kind == "pairs":
        return max(4.2, min(7.6, 1.4 + 0.75 * len(chart.panels[0].categories))), 2.7
    return (7.6 if len(chart.panels) > 1 else 5.2), 2.7


def _columns(chart: Chart) -> int:
    """Entries of the legend in one row: as many as the longest name leaves room for."""
    names = [series.name for series in chart.panels[0].series]
    longest = max((len(name) for name in names), default=0)
    room = _size(chart)[0] / (_LEGEND_MARK + _LETTER * longest)
    return max(1, min(len(names), int(room)))


def _panel(axis: Axes, panel: Panel, *, joined: bool) -> None:
    axis.set_title(panel.title, pad=8)
    axis.set_ylabel(panel.y_label)
    axis.set_xlabel(panel.x_label)
    places = range(len(panel.categories))
    axis.set_xticks(list(places), [name.replace("$", r"\$") for name in panel.categories])
    axis.set_xlim(-0.5, len(panel.categories) - 0.5)
    axis.grid(axis="y", color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(length=0)
    axis.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    _band(axis, panel)
    if panel.percent and any(v.value < 0 for s in panel.series for v in s.points):
        axis.axhline(0, color=MUTED, linewidth=0.8)
    for value, label in panel.lines:
        axis.axhline(value, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        axis.annotate(
            label,
            (1, value),
            xycoords=("axes fraction", "data"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=7,
            color=MUTED,
        )
    count = len(panel.series)
    for i, series in enumerate(panel.series):
        shift = (i - (count - 1) / 2) * min(0.11, 0.7 / max(1, count)) if joined else 0.0
        _series(axis, series, shift, joined=joined)
    axis.margins(y=0.12)


def _band(axis: Axes, panel: Panel) -> None:
    """The noise floor around zero, one shape for the whole panel: every shape costs time."""
    corners: list[tuple[float, float]] = []
    for at, half in enumerate(panel.band):
        if half is not None:
            left, right = at - 0.5, at + 0.5
            corners += [(left, -half), (left, half), (right, half), (right, -half), (left, -half)]
    if corners:
        codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY] * (len(corners) // 5)
        shape = Path(corners, codes)
        axis.add_patch(PathPatch(shape, facecolor=BAND, linewidth=0, clip_on=False))


def _series(axis: Axes, series: Series, shift: float, *, joined: bool) -> None:
    colour = SERIES[series.style % len(SERIES)]
    turn = series.style // len(SERIES)
    xs = [point.at + shift for point in series.points]
    ys = [point.value for point in series.points]
    axis.plot(
        xs,
        ys,
        color=colour,
        marker=MARKERS[(series.style + turn) % len(MARKERS)],
        markersize=4.6,
        markeredgewidth=0,
        linewidth=1.1 if joined else 0,
        linestyle=LINES[turn % len(LINES)] if joined else "none",
        label=series.name.replace("$", r"\$"),
        clip_on=False,
    )
    bars = [
        (x, end)
        for x, point in zip(xs, series.points, strict=True)
        if point.lower is not None and point.upper is not None
        for end in (point.lower, point.upper, math.nan)
    ]
    if bars:
        axis.plot(*zip(*bars, strict=True), color=colour, linewidth=1.4, clip_on=False)


def _legend(figure: Figure, axis: Axes, chart: Chart) -> None:
    handles, labels = axis.get_legend_handles_labels()
    if handles:
        figure.legend(
            handles,
            labels,
            loc="upper left",
            bbox_to_anchor=(0, 1),
            borderpad=0.2,
            ncols=_columns(chart),
            handlelength=1.6,
            columnspacing=1.6,
            handletextpad=0.5,
        )


_IDS = re.compile(r'(\bid="|xlink:href="#|url\(#)([^")]+)')


def _element(document: str, chart_id: str) -> str:
    """The SVG element alone, its ids made unique in a page and its size left to the page."""
    start = document.index("<svg")
    svg = _IDS.sub(lambda m: f"{m[1]}{chart_id}-{m[2]}", document[start:].strip())
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = svg.replace("font-family: 'Inter'", "font-family: 'Inter', sans-serif")
    return re.sub(r"\n\s*", "\n", svg)
