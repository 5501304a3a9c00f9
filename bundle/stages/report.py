"""Report: a finished run folder becomes HTML, PDF and charts.

The stage reads the run folder and nothing else, so the same folder gives the same bytes in any
process, place, time zone and locale.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import cast, get_args

from msgspec import Struct

from bundle.core.bundlefile import BundleFile
from bundle.core.recipe import Recipe
from bundle.core.report.parts import Chart
from bundle.core.report.view import ReportView, view
from bundle.core.results import Results
from bundle.errors import UsageError
from bundle.host.charts import draw
from bundle.host.folders import read_json, write_whole
from bundle.host.html import Paper, page, print_page
from bundle.host.pdf import write_pdf
from bundle.host.provenance import read_provenance

ATTACHED = ("results.json", "bundle.json")


class ReportFiles(Struct, frozen=True, kw_only=True):
    """What the stage wrote."""

    html: Path
    pdf: Path
    charts: tuple[Path, ...]


class ReportTexts(Struct, frozen=True, kw_only=True):
    """The same in memory, for whoever compares before writing. ``charts`` are SVG by id."""

    html: str
    pdf: bytes
    charts: dict[str, str]


def render(run_folder: Path, *, paper: str = "A4") -> ReportFiles:
    """Write ``report/report.html``, ``report/report.pdf`` and ``report/charts/*.svg``.

    Args:
        run_folder: a run folder with results, or the ``data`` folder of an unpacked bundle.
        paper: the PDF's paper size, ``A4`` or ``Letter``.

    Raises:
        UsageError: there is no such paper.
        BundleError: the head record, the recipe or the results are missing or not readable.
        HostError: no space, an unwritable folder, or no Pango.
    """
    texts = compose(run_folder, paper=paper)
    target = run_folder / "report"
    charts = {target / "charts" / f"{name}.svg": svg for name, svg in texts.charts.items()}
    for path, svg in charts.items():
        write_whole(path, svg + "\n")
    write_whole(target / "report.html", texts.html)
    write_whole(target / "report.pdf", texts.pdf)
    return ReportFiles(html=target / "report.html", pdf=target / "report.pdf", charts=tuple(charts))


def compose(run_folder: Path, *, paper: str = "A4") -> ReportTexts:
    """Make the report of a run folder without writing anything.

    Raises:
        UsageError: there is no such paper.
        BundleError: the head record, the recipe or the results are missing or not readable.
        HostError: there is no Pango on this machine.
    """
    size = _paper(paper)
    made = read_view(run_folder)
    drawn = {chart.id: draw(chart) for chart in charts_of(made)}
    files = {"results.json": run_folder / "results" / "results.json"}
    files["bundle.json"] = run_folder / "bundle.json"
    attached = {name: files[name].read_bytes() for name in ATTACHED}
    identifier = hashlib.sha256(b"".join(attached.values())).digest()[:16]
    pdf = write_pdf(
        print_page(made, drawn, size),
        charts=drawn,
        attachments=attached,
        created=made.created,
        identifier=identifier,
    )
    return ReportTexts(html=page(made, drawn), pdf=pdf, charts=drawn)


def read_view(run_folder: Path) -> ReportView:
    """Read a run folder into the report's view."""
    return view(
        read_json(run_folder / "results" / "results.json", Results),
        read_json(run_folder / "recipes" / "recipe.json", Recipe),
        read_json(run_folder / "bundle.json", BundleFile),
        read_provenance(run_folder),
    )


def _paper(name: str) -> Paper:
    for known in get_args(Paper):
        if name.lower() == known.lower():
            return cast("Paper", known)
    raise UsageError(
        f"expected {' or '.join(get_args(Paper))}, found {name}",
        where="--paper",
        next_step="name one of them",
    )


def charts_of(made: ReportView) -> Iterable[Chart]:
    """Every chart of a report in order."""
    return (c for section in made.sections for block in section.blocks for c in block.charts)
