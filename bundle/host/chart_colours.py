"""The colours of charts: literals in a drawing, variables of the page that a chart is put into."""

from __future__ import annotations

INK, MUTED, GRID, BAND = "#1b1e22", "#575d66", "#dcdfe4", "#eceef1"
# Dark enough for 3:1 on white, apart for the common colour deficiencies; markers tell them too.
SERIES = ("#5f656e", "#0068a8", "#bf4a00", "#007a5a", "#a0407f", "#856000", "#5546b8")
VARIABLES = {INK: "ink", MUTED: "muted", GRID: "line", BAND: "band"} | {
    colour: f"s{i}" for i, colour in enumerate(SERIES)
}


def themed(svg: str) -> str:
    """A chart for a page: its colours follow the page's variables, so into dark mode too."""
    for colour, name in VARIABLES.items():
        svg = svg.replace(f": {colour}", f": var(--{name})")
    return svg
