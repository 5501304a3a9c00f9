"""The page: self-contained, escaped, whole."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import msgspec
import pytest

from bundle.core.report.view import ReportView, view
from bundle.host.charts import draw
from bundle.host.html import page, print_page
from bundle.stages.report import charts_of
from tests import builders_report as b

VOID = {"meta", "col", "img", "br", "link"}


class Outline(HTMLParser):
    """Checks nesting and collects ids, links and elements."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            if tag == "a" and name == "href":
                self.links.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def mixed() -> ReportView:
    return view(b.mixed(), b.recipe(), b.head(), b.provenance())


@pytest.fixture(scope="module")
def charts(mixed: ReportView) -> dict[str, str]:
    return {chart.id: draw(chart) for chart in charts_of(mixed)}


@pytest.fixture(scope="module")
def html(mixed: ReportView, charts: dict[str, str]) -> str:
    return page(mixed, charts)


def test_it_is_well_formed_and_every_link_lands(html: str) -> None:
    outline = Outline()
    outline.feed(html)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.ids)


def test_nothing_but_our_script_runs_and_nothing_is_fetched(html: str) -> None:
    outline = Outline()
    outline.feed(html)
    assert not outline.tags & {"img", "iframe", "object", "embed", "link", "form"}
    assert not {name for name in outline.attributes if name.startswith("on")}
    (script,) = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    assert html.count("<script") == 1
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    for address in re.findall(r"url\(([^)]{0,60})", html):
        assert address.startswith(('"data:font/woff2', "#")), address


def test_a_models_text_is_text(html: str) -> None:
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "[U+202E]" in html
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert "日本語の文 العربية" in html


def test_print_writes_what_its_fonts_lack_by_number(
    mixed: ReportView, charts: dict[str, str]
) -> None:
    made = print_page(mixed, charts, "Letter")
    assert "[U+65E5]" in made
    assert "size: Letter" in made
    assert 'src="specbundle:charts/chart-speed-code-concurrent-requests.svg"' in made
    assert "data:" not in made
    assert "<script" not in made


def test_an_endless_line_is_cut_with_its_length_said(charts: dict[str, str]) -> None:
    finding = msgspec.structs.replace(b.mixed().findings[0], evidence="y" * 100_000)
    results = msgspec.structs.replace(b.mixed(), findings=(finding,))
    made = page(view(results, b.recipe(), b.head(), b.provenance()), charts)
    assert "[... 99,400 more characters]" in made


def test_every_kind_of_run_has_a_page() -> None:
    recipe = b.recipe(("ngram", "eagle3"))
    for results in (b.all_ship(), b.all_invalid()):
        made = view(results, recipe, b.head(), b.provenance())
        drawn = {chart.id: "<svg></svg>" for chart in charts_of(made)}
        assert page(made, drawn).rstrip().endswith("</html>")
