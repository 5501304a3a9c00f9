"""The report's view put into its template: one self-contained HTML text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bundle.core.report.fit import for_paper, widths
from bundle.core.report.index import IndexView
from bundle.core.report.parts import Table
from bundle.core.report.text import clip, visible
from bundle.core.report.view import ReportView
from bundle.host.chart_colours import themed
from bundle.host.resources import resource, resource_root

Medium = Literal["screen", "print"]
Shown = Callable[[str], str]
Paper = Literal["A4", "Letter"]
FONTS = (
    ("Inter", 400, "Inter-Regular"),
    ("Inter", 600, "Inter-SemiBold"),
    ("JetBrains Mono", 400, "JetBrainsMono-Regular"),
)
LONGEST = 20_000
"""Characters of one text on a page; whoever wants more finds it in the bundle."""
LONGEST_ON_PAPER = 1_200
"""The same on paper, where a table's row must fit on a page."""
PRIVATE = "specbundle:"
"""Scheme of addresses that only :mod:`bundle.host.pdf` resolves, from memory."""


def page(view: ReportView, charts: Mapping[str, str]) -> str:
    """The report for a browser: nothing fetched, charts and fonts inside.

    Its one script sorts tables, and is the only one that the page's own policy lets run, by its
    hash. Everything is there without it.

    Args:
        view: the report.
        charts: every chart's SVG element by the chart's id.
    """
    figures = {name: Markup(themed(svg)) for name, svg in charts.items()}  # noqa: S704, own drawing
    return _render(view, figures, medium="screen", paper="A4", shown=_on_screen)


def print_page(view: ReportView, charts: Mapping[str, str], paper: Paper) -> str:
    """The report for :mod:`bundle.host.pdf`: charts and fonts by private address.

    Characters that the shipped fonts lack are written by number, so that no font of the machine
    gets into the document.
    """
    figures = {name: f"{PRIVATE}charts/{name}.svg" for name in charts}
    return _render(view, figures, medium="print", paper=paper, shown=_on_paper)


def index_page(view: IndexView) -> str:
    """The index of a folder: the same style sheet and script, links to the files beside it."""
    template = _environment(_on_screen).get_template("index.html.j2")
    style = Markup(_style("screen", "A4"))  # noqa: S704, our own style sheets
    return template.render(view=view, style=style, **_scripts())


def _render(
    view: ReportView,
    figures: Mapping[str, str],
    *,
    medium: Medium,
    paper: Paper,
    shown: Shown,
) -> str:
    environment = _environment(shown)
    environment.globals["widths"] = widths
    environment.globals["fitted"] = for_paper if medium == "print" else _whole
    return environment.get_template("report.html.j2").render(
        view=view,
        figures=figures,
        medium=medium,
        style=Markup(_style(medium, paper)),  # noqa: S704, our own style sheets
        **_scripts(),
    )


def _environment(shown: Shown) -> Environment:
    """Templates in which every text is escaped, and hidden characters are written by number."""

    def finalize(value: object) -> object:
        if isinstance(value, Markup) or not isinstance(value, str):
            return value
        return shown(value)

    environment = Environment(
        loader=FileSystemLoader(resource_root("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    # A file's name as an address: relative, whatever characters it has.
    environment.filters["link"] = lambda name: f"./{quote(name)}"
    return environment


def _scripts() -> dict[str, str]:
    script = _script()
    return {"script": Markup(script), "script_hash": _source_hash(script)}  # noqa: S704, our own


def _script() -> str:
    return resource("templates", "sort.js").read_text(encoding="utf-8").strip()


def _source_hash(script: str) -> str:
    """A script's hash as a content security policy names it."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _whole(table: Table) -> tuple[Table, ...]:
    return (table,)


def _style(medium: Medium, paper: Paper) -> str:
    sheets = [_faces(medium), _sheet("report.css")]
    if medium == "print":
        sheets += [f"@page {{ size: {paper} }}", _sheet("paged.css")]
    return "\n".join(sheets)


def _sheet(name: str) -> str:
    return resource("templates", name).read_text(encoding="utf-8")


def _faces(medium: Medium) -> str:
    return "\n".join(
        f'@font-face {{ font-family: "{family}"; font-weight: {weight}; font-style: normal; '
        f'src: url("{_source(file, medium)}"); }}'
        for family, weight, file in FONTS
    )


def _source(file: str, medium: Medium) -> str:
    if medium == "print":
        return f"{PRIVATE}fonts/{file}.ttf"
    data = resource("templates", f"fonts/{file}.woff2").read_bytes()
    return f"data:font/woff2;base64,{base64.b64encode(data).decode()}"


def _on_screen(text: str) -> str:
    return clip(visible(text), LONGEST)


def _on_paper(text: str) -> str:
    return clip(visible(text, _has_glyph), LONGEST_ON_PAPER)


def _has_glyph(char: str) -> bool:
    return ord(char) in _glyphs()


@cache
def _glyphs() -> frozenset[int]:
    """Code points that every shipped face has."""
    from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

    maps = []
    for _, _, file in FONTS:
        with TTFont(resource("templates", f"fonts/{file}.ttf")) as font:
            maps.append(set(font.getBestCmap()))
    return frozenset(set.intersection(*maps))
