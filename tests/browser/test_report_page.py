"""The pages as a person sees them, in a real Chromium: no overflow, contrast, keyboard, no network.

Screenshots are kept in ``build/browser``.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser
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


ALL = pytest.mark.parametrize(
    "opened",
    [
        (name, width, scheme)
        for name in ("report", "index")
        for width in WIDTHS
        for scheme in ("light", "dark")
    ],
    indirect=True,
    ids=lambda p: "-".join(map(str, p)),
)
# Colours have a test of their own at every width; all else is the same in both themes.
THEMES_ONCE = pytest.mark.parametrize(
    "opened",
    [
        (name, width, scheme)
        for name in ("report", "index")
        for width in WIDTHS
        for scheme in (("light", "dark") if width == WIDTHS[1] else ("light",))
    ],
    indirect=True,
    ids=lambda p: "-".join(map(str, p)),
)
ONE = pytest.mark.parametrize("opened", [("report", 1440, "light")], indirect=True, ids=["report"])
BOTH = pytest.mark.parametrize(
    "opened",
    [("report", 1440, "light"), ("index", 1440, "light"), ("report", 360, "light")],
    indirect=True,
    ids=lambda p: "-".join(map(str, p)),
)


@ALL
def test_it_fits_and_is_legible(opened: Any) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    opened.screenshot(path=str(SHOTS / f"{opened.label}.png"), full_page=True)
    width = opened.viewport_size["width"]
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.evaluate(CLIPPED) == []
    assert opened.evaluate(CONTRAST) == []


@pytest.mark.parametrize(
    "opened", [("hostile", 360, "light"), ("hostile", 1440, "dark")], indirect=True, ids=str
)
def test_hostile_text_neither_runs_nor_widens_the_page(opened: Any) -> None:
    said: list[str] = []
    opened.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    opened.reload()
    width = opened.viewport_size["width"]
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.evaluate(CLIPPED) == []
    assert said == []
    assert [url for url in opened.asked if not url.startswith(("file:", "data:"))] == []


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


@BOTH
def test_everything_to_press_is_reached_by_keyboard(opened: Any) -> None:
    wanted = "[...document.querySelectorAll('a[href], button')].filter(e => e.checkVisibility"
    wanted += "({visibilityProperty: true}))"
    stops = opened.evaluate("document.querySelectorAll('a[href], button, [tabindex=\"0\"]').length")
    count = opened.evaluate(f"{wanted}.length")
    reached = set()
    for _ in range(stops + 1):
        opened.keyboard.press("Tab")
        reached.add(opened.evaluate(f"{wanted}.indexOf(document.activeElement)"))
    assert count > 5
    assert reached - {-1} == set(range(count))


@THEMES_ONCE
def test_axe_finds_nothing_serious(opened: Any) -> None:
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    # The page's own policy forbids scripts, so the rules come in through the debugger.
    session = opened.context.new_cdp_session(opened)
    session.send("Runtime.evaluate", {"expression": axe})
    found = opened.evaluate("axe.run()")
    serious = [
        (rule["id"], rule["nodes"][0]["html"][:120])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert len(found["passes"]) > 20


TABLE = "#speed-table-chat"


def column(index: int) -> str:
    """JavaScript for the main lines of one column."""
    return f"""() => [...document.querySelectorAll('{TABLE} tbody tr')]
      .map(row => row.cells[{index}].firstChild.textContent.trim())"""


@ONE
def test_a_table_is_sorted_by_keyboard_and_back(opened: Any) -> None:
    before = opened.evaluate(column(3))
    head = opened.locator(f"{TABLE} thead th").nth(3)
    head.locator("button").focus()
    shown = []
    for _ in range(3):
        opened.keyboard.press("Enter")
        shown.append((head.get_attribute("aria-sort"), opened.evaluate(column(3))))
    (first, rising), (second, falling), (third, again) = shown
    assert (first, second, third) == ("ascending", "descending", None)
    assert rising != before
    assert again == before
    assert percents(rising) == sorted(percents(rising))
    assert percents(falling) == sorted(percents(falling), reverse=True)


def percents(cells: list[str]) -> list[float]:
    return [float(cell.replace("\u2212", "-").removesuffix("\u00a0%")) for cell in cells]


@ONE
def test_what_was_not_measured_stays_last(opened: Any) -> None:
    button = opened.locator(f"{TABLE} thead th").nth(5).locator("button")
    for _ in range(2):
        button.click()
        assert opened.evaluate(column(5))[-1] == "not measured"
    assert opened.locator("th[aria-sort]").count() == 1


@ONE
def test_words_sort_as_words_and_another_column_takes_over(opened: Any) -> None:
    heads = opened.locator(f"{TABLE} thead th")
    heads.nth(3).locator("button").click()
    heads.nth(1).locator("button").click()
    names = opened.evaluate(column(1))
    assert names == sorted(names)
    assert heads.nth(3).get_attribute("aria-sort") is None


@pytest.mark.parametrize(
    "opened", [("report", 1440, "light", "no script")], indirect=True, ids=["no script"]
)
def test_without_script_everything_is_there(opened: Any) -> None:
    assert opened.locator("button").count() == 0
    assert opened.locator("main section.part").count() == 12
    assert opened.locator(f"{TABLE} tbody tr").count() == 7
    assert opened.locator(f"{TABLE} thead th").nth(3).inner_text() == "Gain in TPOT"


@ONE
def test_no_other_script_runs(opened: Any) -> None:
    opened.evaluate(
        """() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';
        document.body.append(s); const b = document.createElement('b');
        b.setAttribute('onclick', 'window.ran = 1'); document.body.append(b); b.click() }"""
    )
    assert opened.evaluate("window.ran === undefined")
