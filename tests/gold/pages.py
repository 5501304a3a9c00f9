"""The gold pages: fixed records rendered whole, without what is not text.

Update after looking at the difference: ``python -m tests.gold.update``.
"""

from __future__ import annotations

import re
from pathlib import Path

from bundle.core.report.provenance import Provenance
from bundle.core.report.view import ReportView, view
from bundle.host.html import page
from bundle.stages.report import charts_of
from tests import builders_report as b

FOLDER = Path(__file__).parent


def views() -> dict[str, ReportView]:
    """The four fixed runs by name."""
    two = b.recipe(("ngram", "eagle3"))
    return {
        "mixed": view(b.mixed(), b.recipe(), b.head(), b.provenance()),
        "rerun": view(
            b.rerun(), b.recipe(), b.head(parent=b.RERUN.parent), b.provenance(), b.RERUN
        ),
        "all-ship": view(b.all_ship(), two, b.head(failed=()), b.provenance()),
        "all-invalid": view(b.all_invalid(), two, b.head(), Provenance()),
    }


def gold_text(made: ReportView) -> str:
    """A page without style sheet and script, with each chart's alternative only, one tag a line."""
    figures = {chart.id: "<svg></svg>" for chart in charts_of(made)}
    html = re.sub(r"<style>.*?</style>", "<style></style>", page(made, figures), flags=re.DOTALL)
    html = re.sub(r"<script>.*?</script>", "<script></script>", html, flags=re.DOTALL)
    html = re.sub(r"'sha256-[^']*'", "'sha256-'", html)
    html = re.sub(r"<colgroup>.*?</colgroup>\n?", "", html)
    lines = (line.strip() for line in html.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def gold_file(name: str) -> Path:
    """Where a gold page lies."""
    return FOLDER / f"{name}.html.txt"
