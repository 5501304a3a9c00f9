"""The page as a person sees it, in a real Chromium: no overflow, contrast, keyboard, no network.

Screenshots are kept in ``build/browser``. With ``AXE_CORE`` naming axe-core's ``axe.min.js`` its
rules run too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bundle.core.report.view import view
from bundle.host.charts import draw
from bundle.host.html import page
from bundle.stages.report import charts_of
from tests import builders_report as b

pytestmark = pytest.mark.browser
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
SHOTS = Path(__file__).resolve().parents[2] / "build" / "browser"
WIDTHS = (360, 768, 1440)

# Every text node whose colour and background give less than WCAG AA asks for.
CONTRAST = """
() => {
  const lum = c => { const v = c.map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92
      : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] };
  const parse = s => { const m = s.match(/[\\d.]+/g).map(Number); return m };
  const back = el => { for (; el; el = el.parentElement) {
      const c = parse(getComputedStyle(el).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c.slice(0, 3) } return [255, 255, 255] };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), bad = [];
  while (walk.nextNode()) {
    const node = walk.currentNode; if (!node.textContent.trim()) continue;
    const el = node.parentElement, style = getComputedStyle(el);
    if (!el.getClientRects().length || el.closest('svg')) continue;
    const a = lum(parse(style.color).slice(0, 3)), b = lum(back(el));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24
      || (size >= 18.66 && style.fontWeight >= 600);
    if (ratio < (large ? 3 : 4.5)) bad.push([node.textContent.trim().slice(0, 40), ratio]);
  }
  return bad;
}
"""

# Elements outside scroll containers whose content is wider than they are.
CLIPPED = """
() => [...document.querySelectorAll('main *, header *')]
  .filter(el => !el.closest('.scroll') && !el.closest('svg') && el.clientWidth
    && el.scrollWidth > el.clientWidth + 1)
  .map(el => el.tagName + ' ' + el.textContent.trim().slice(0, 40))
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = view(b.mixed(), b.recipe(), b.head(), b.provenance())
    path = tmp_path_factory.mktemp("page") / "report.html"
    charts = {chart.id: draw(chart) for chart in charts_of(made)}
    path.write_text(page(made, charts), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine (apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser: Any, file: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    width, scheme = request.param
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=True
    )
    tab = context.new_page()
    tab.asked = []
    tab.on("request", lambda one: tab.asked.append(one.url))
    tab.goto(file.as_uri())
    tab.label = f"{width}-{scheme}"
    yield tab
    context.close()


ALL = pytest.mark.parametrize(
    "opened",
    [(width, scheme) for width in WIDTHS for scheme in ("light", "dark")],
    indirect=True,
    ids=lambda p: f"{p[0]}-{p[1]}",
)
ONE = pytest.mark.parametrize("opened", [(1440, "light")], indirect=True, ids=["1440-light"])


@ALL
def test_it_fits_and_is_legible(opened: Any) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    opened.screenshot(path=str(SHOTS / f"{opened.label}.png"), full_page=True)
    width = opened.viewport_size["width"]
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.evaluate(CLIPPED) == []
    assert opened.evaluate(CONTRAST) == []


@ONE
def test_only_the_file_itself_is_asked_for(opened: Any) -> None:
    assert [url for url in opened.asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in opened.asked if url.startswith("file:")]) == 1


@ONE
def test_our_fonts_are_the_ones_on_screen(opened: Any) -> None:
    opened.evaluate("document.fonts.ready")
    loaded = opened.evaluate(
        "[...document.fonts].filter(f => f.status === 'loaded').map(f => f.family + f.weight)"
    )
    assert {name.replace('"', "") for name in loaded} >= {"Inter400", "Inter600"}


@ONE
def test_every_link_is_reached_by_keyboard(opened: Any) -> None:
    links = opened.evaluate("document.querySelectorAll('a[href]').length")
    stops = opened.evaluate("document.querySelectorAll('a[href], [tabindex=\"0\"]').length")
    reached = set()
    for _ in range(stops + 1):
        opened.keyboard.press("Tab")
        place = opened.evaluate(
            "[...document.querySelectorAll('a[href]')].indexOf(document.activeElement)"
        )
        reached.add(place)
    assert reached - {-1} == set(range(links))


@ONE
def test_axe_finds_nothing_serious(opened: Any) -> None:
    axe = os.environ.get("AXE_CORE")
    if not axe:
        pytest.skip("AXE_CORE does not name axe.min.js")
    # The page's own policy forbids scripts, so the rules come in through the debugger.
    session = opened.context.new_cdp_session(opened)
    session.send("Runtime.evaluate", {"expression": Path(axe).read_text(encoding="utf-8")})
    found = opened.evaluate("axe.run()")
    serious = [
        (rule["id"], rule["nodes"][0]["html"][:120])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []
