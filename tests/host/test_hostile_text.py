"""Text of a model, a log or a foreign recipe, as bad as it gets, in every place of the report."""

import io
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pikepdf
import pytest

from bundle.core.comparison import Compared, Comparison, Difference
from bundle.core.report.context import Context
from bundle.core.report.markdown import markdown
from bundle.core.report.view import ReportView, view
from bundle.core.results import Divergence, FailedRun
from bundle.host.charts import draw
from bundle.host.html import LONGEST, page, print_page
from bundle.host.pdf import write_pdf
from bundle.stages.report import charts_of
from tests import builders_report as b
from tests.host.test_html import Outline

LINE = b.HOSTILE + "x" * 100_000
BREAKING = "</td></table></style></script><script>alert(2)</script><style>*{display:none}</style>"
ODD = f"{BREAKING} {{{{ 7 * 7 }}}} \u2028\u0000\ufeff\ud83d {LINE}"
replace = msgspec.structs.replace


def records() -> tuple[Any, ...]:
    """Records in which every free text is hostile."""
    base = b.rerun()
    results = replace(
        base,
        verdicts=tuple(
            replace(row, reasons=(ODD,), further_note=ODD, checks_not_run=(f"c ({ODD})",))
            for row in base.verdicts[::3]
        ),
        findings=tuple(
            replace(row, evidence=ODD, check_first=ODD, then_check=ODD)
            for row in base.findings[::3]
        ),
        advice=tuple(replace(row, text=ODD) for row in base.advice),
        quality=tuple(
            replace(
                row,
                reason=ODD,
                finish_reasons={ODD[:2000]: 1},
                first_divergences=(
                    Divergence(item=ODD, position=3, baseline_text=ODD, group_text=f"a{ODD}"),
                ),
            )
            for row in base.quality[:2]
        ),
        failed=(FailedRun(folder=ODD, group="mtp", cell=None, cause=ODD, text=ODD, line=ODD),),
        narrowed=(ODD,),
        notes=(ODD,),
    )
    recipe = b.recipe(title=ODD, represents=ODD)
    own = b.provenance()
    models = tuple(replace(m, source=ODD, licence=ODD, quantisation=ODD) for m in own.models)
    starts = tuple(replace(s, argv=(*s.argv, "--odd", ODD)) for s in own.starts[:2])
    provenance = replace(own, models=models, starts=starts, host=((ODD, ODD),), missing=(ODD,))
    claim = replace(b.RERUN.claims[0], reason=ODD)
    comparison = Comparison(
        parent=ODD,
        differences=(Difference(what=ODD, parent=ODD, own=ODD),),
        claims=(claim, Compared(**{**msgspec.structs.asdict(claim), "claim": f"ratio/{ODD}"})),
    )
    return results, recipe, b.head(notes=(ODD,)), provenance, comparison


@pytest.fixture(scope="module")
def made() -> ReportView:
    return view(*records())


@pytest.fixture(scope="module")
def charts(made: ReportView) -> dict[str, str]:
    return {chart.id: draw(chart) for chart in charts_of(made)}


@pytest.fixture(scope="module")
def html(made: ReportView, charts: dict[str, str]) -> str:
    return page(made, charts)


@pytest.fixture(scope="module")
def pdf(made: ReportView, charts: dict[str, str]) -> Iterator[bytes]:
    yield write_pdf(
        print_page(made, charts, "A4"),
        charts=charts,
        attachments={},
        created=made.created,
        identifier=b"0" * 16,
    )


def test_the_page_shows_it_as_text(html: str) -> None:
    outline = Outline()
    outline.feed(html)
    assert outline.open == []
    assert not outline.tags & {"iframe", "object", "embed", "link", "form", "img"}
    assert not {name for name in outline.attributes if name.startswith("on")}
    assert html.count("<script") == html.count("</script>") == 1
    assert html.count("<style>") == html.count("</style>") - html.count("<style type") == 1
    assert "&lt;script&gt;alert(2)&lt;/script&gt;" in html
    assert "{{ 7 * 7 }}" in html
    for hidden in "\u202e\u202c\x1b\x07\u2028\x00\ufeff":
        assert hidden not in html
    assert "日本語の文 العربية" in html
    html.encode()


def test_no_line_is_endless(html: str) -> None:
    assert max(len(run) for run in re.findall("x+", html)) <= LONGEST
    assert re.search(r"\[\.\.\. \d+,\d{3} more characters\]", html)


def test_the_pdf_still_renders_and_nothing_in_it_acts(pdf: bytes) -> None:
    with pikepdf.open(io.BytesIO(pdf)) as document:
        assert len(document.pages) > 10
        for one in document.objects:
            if isinstance(one, pikepdf.Dictionary):
                assert "/JS" not in one
                assert "/URI" not in one
                if one.get("/Type") == "/FontDescriptor":
                    family = str(one.FontName).rpartition("+")[2]
                    assert family.startswith(("Inter", "JetBrains"))


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs poppler-utils")
def test_the_pdf_has_it_as_text(pdf: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(pdf)
    text = subprocess.run(
        ["pdftotext", "-raw", str(file), "-"], check=True, capture_output=True, text=True
    ).stdout
    joined = "".join(text.split())
    assert "<script>alert(2)</script>" in joined
    assert "[U+202E]gnp.exe[U+202C]" in joined
    assert "[U+65E5][U+672C][U+8A9E]" in joined


def test_markdown_keeps_it_text() -> None:
    text = markdown(Context(*records()), archive="a.tar.zst")
    bare = re.sub(r"\\.", "", text)
    assert not re.search(
        r"[<`\[*]", bare.replace("```console", "").replace("```", "").replace("**", "")
    )
    assert not re.search(r"https?://", bare)
    assert not set(text) & set("\u202e\x1b\x00")
    assert all(
        line.count("|") - line.count(r"\|") == 9 for line in text.splitlines() if line[:1] == "|"
    )
