"""A real Chromium, and the pages that it opens."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bundle.core.levels import Level
from bundle.core.report.index import FileLink, Found, damaged, index_view, readable
from bundle.core.report.view import view
from bundle.host.charts import draw
from bundle.host.html import index_page, page
from bundle.stages.report import charts_of
from tests import builders_report as b
from tests.host.test_hostile_text import records

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
UNSIGNED = Level(state="NOT CHECKED", reason="UNSIGNED: no x.intoto.jsonl beside the archive")


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a rerun with every verdict, failures and hostile text."""
    made = view(b.rerun(), b.recipe(), b.head(), b.provenance(), b.RERUN)
    path = tmp_path_factory.mktemp("page") / "report.html"
    charts = {chart.id: draw(chart) for chart in charts_of(made)}
    path.write_text(page(made, charts), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of records in which every free text is hostile and endless."""
    made = view(*records())
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    path.write_text(page(made, {c.id: "<svg></svg>" for c in charts_of(made)}), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of three bundles, one of them damaged."""
    made = view(b.mixed(), b.recipe(), b.head(), b.provenance())
    links = tuple(FileLink(label=x, name=f"a-{x}") for x in ("HTML", "PDF", "archive", "sha256"))
    dates = ("2026-11-30T21:04:05Z", "2026-10-01T07:00:00Z")
    entries = [
        readable(
            f"qwen3-8b-{i}",
            Found(report=made, results=b.mixed(), finished=when, parent="p" * 12),
            UNSIGNED,
            links,
        )
        for i, when in enumerate(dates)
    ]
    broken = damaged("broken-" + "0" * 64, "archive (V0): sha256 is " + "f" * 64, None, links[2:])
    path = tmp_path_factory.mktemp("index") / "index.html"
    path.write_text(index_page(index_view((*entries, broken))), encoding="utf-8")
    return path


# Not for the whole session: while it runs, no test can run an event loop of its own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine (apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A tab with one of the pages, as (page, width, colour scheme[, script])."""
    name, width, scheme, *script = request.param
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        java_script_enabled=not script,
    )
    tab = context.new_page()
    tab.asked = []
    tab.on("request", lambda one: tab.asked.append(one.url))
    tab.goto(request.getfixturevalue(name).as_uri())
    tab.label = f"{name}-{width}-{scheme}"
    yield tab
    context.close()
