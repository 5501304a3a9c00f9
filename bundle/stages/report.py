"""Report: a finished run folder becomes HTML, PDF and charts.

The stage reads the run folder and nothing else, so the same folder gives the same bytes in any
process, place, time zone and locale.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import cast, get_args

from msgspec import Struct

from bundle.core.bundlefile import BundleFile
from bundle.core.comparison import Comparison
from bundle.core.recipe import Recipe
from bundle.core.report.parts import Chart
from bundle.core.report.provenance import Provenance
from bundle.core.report.view import ReportView, view
from bundle.core.results import Results
from bundle.errors import UsageError
from bundle.host.drawing import Drawing
from bundle.host.folders import read_json, write_whole
from bundle.host.html import Paper, page, print_page
from bundle.host.pdf import write_pdf
from bundle.host.provenance import read_provenance

RESULTS = "results/results.json"
COMPARISON = "results/comparison.json"
ATTACHED = (RESULTS, "bundle.json", COMPARISON)
"""Files that the PDF carries inside, by their base names; a comparison only a rerun has."""


class ReportFiles(Struct, frozen=True, kw_only=True):
    """What the stage wrote."""

    html: Path
    pdf: Path
    charts: tuple[Path, ...]


class Source(Struct, frozen=True, kw_only=True):
    """The records that a report is made from, and the files that are attached to it."""

    results: Results
    recipe: Recipe
    head: BundleFile
    provenance: Provenance
    comparison: Comparison | None
    attached: dict[str, bytes]


class Report:
    """The report of one run; each form is made when it is asked for, the charts once."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def view(self) -> ReportView:
        """The report as data."""
        own = self.source
        return view(own.results, own.recipe, own.head, own.provenance, own.comparison)

    @cached_property
    def charts(self) -> Mapping[str, str]:
        """Every chart as an SVG element, by its id; they are drawn while others work."""
        return Drawing(tuple(charts_of(self.view)))

    def html(self) -> str:
        """The page."""
        return page(self.view, self.charts)

    def pdf(self, paper: Paper = "A4") -> bytes:
        """The document.

        Raises:
            HostError: there is no Pango on this machine.
        """
        attached = self.source.attached
        return write_pdf(
            print_page(self.view, self.charts, paper),
            charts=self.charts,
            attachments=attached,
            created=self.view.created,
            identifier=hashlib.sha256(b"".join(attached.values())).digest()[:16],
        )


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
    size = paper_named(paper)
    made = read_report(run_folder)
    pdf, html = made.pdf(size), made.html()
    target = run_folder / "report"
    charts = {target / "charts" / f"{name}.svg": svg for name, svg in made.charts.items()}
    for path, svg in charts.items():
        write_whole(path, svg + "\n")
    write_whole(target / "report.html", html)
    write_whole(target / "report.pdf", pdf)
    return ReportFiles(html=target / "report.html", pdf=target / "report.pdf", charts=tuple(charts))


def read_report(run_folder: Path) -> Report:
    """Read a run folder without writing anything.

    Raises:
        BundleError: the head record, the recipe or the results are missing or not readable.
    """
    compared = run_folder / COMPARISON
    source = Source(
        results=read_json(run_folder / RESULTS, Results),
        recipe=read_json(run_folder / "recipes" / "recipe.json", Recipe),
        head=read_json(run_folder / "bundle.json", BundleFile),
        provenance=read_provenance(run_folder),
        comparison=read_json(compared, Comparison) if compared.exists() else None,
        attached={
            file.name: file.read_bytes()
            for file in (run_folder / name for name in ATTACHED)
            if file.exists()
        },
    )
    return Report(source)


def paper_named(name: str) -> Paper:
    """A paper size by its name in any case.

    Raises:
        UsageError: there is no such paper.
    """
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
