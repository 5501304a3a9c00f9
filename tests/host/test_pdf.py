"""The PDF: archival, tagged, its data attached, nothing fetched."""

import builtins
import gc
import io
from typing import Any

import pikepdf
import pytest

from bundle.core.report.view import view
from bundle.errors import HostError
from bundle.host.charts import draw
from bundle.host.html import print_page
from bundle.host.pdf import load_weasyprint, write_pdf
from bundle.stages.report import charts_of
from tests import builders_report as b

DATA = {"results.json": b'{"a": 1}', "bundle.json": b"{}"}


@pytest.fixture(scope="module")
def pdf() -> bytes:
    made = view(b.all_ship(), b.recipe(("ngram", "eagle3")), b.head(), b.provenance())
    charts = {chart.id: draw(chart) for chart in charts_of(made)}
    return write_pdf(
        print_page(made, charts, "A4"),
        charts=charts,
        attachments=DATA,
        created=made.created,
        identifier=b"0123456789abcdef",
    )


@pytest.fixture
def opened(pdf: bytes) -> Any:
    with pikepdf.open(io.BytesIO(pdf)) as document:
        yield document


def test_it_is_pdf_a_3_with_an_output_intent(opened: pikepdf.Pdf) -> None:
    with opened.open_metadata() as meta:
        assert meta.pdfa_status == "3U"
        assert meta["dc:title"] == "Speculative decoding for Qwen3-8B: report"
    (intent,) = opened.Root.OutputIntents
    assert str(intent.S) == "/GTS_PDFA1"


def test_it_is_tagged_with_a_language_and_bookmarks(opened: pikepdf.Pdf) -> None:
    assert bool(opened.Root.MarkInfo.Marked)
    assert "/StructTreeRoot" in opened.Root
    assert str(opened.Root.Lang) == "en"
    with opened.open_outline() as outline:
        titles = [item.title for root in outline.root for item in root.children]
    assert "1 Decision" in titles
    assert "10 Limits" in titles


def test_its_data_is_attached(opened: pikepdf.Pdf) -> None:
    found = {name: spec.get_file().read_bytes() for name, spec in opened.attachments.items()}
    assert sorted(found.values()) == sorted(DATA.values())
    relations = {str(spec.AFRelationship) for spec in opened.Root.AF}
    assert relations == {"/Data"}


def test_its_only_date_is_the_runs(opened: pikepdf.Pdf) -> None:
    assert str(opened.docinfo["/CreationDate"]) == "D:20261130210405Z"
    assert bytes(opened.trailer.ID[0]) == b"0123456789abcdef"


def test_every_font_is_ours_and_embedded(opened: pikepdf.Pdf) -> None:
    names = set()
    for obj in opened.objects:
        if isinstance(obj, pikepdf.Dictionary) and obj.get("/Type") == "/FontDescriptor":
            names.add(str(obj.FontName).rpartition("+")[2])
            assert "/FontFile2" in obj or "/FontFile3" in obj
    assert names
    assert all(name.startswith(("Inter", "JetBrains")) for name in names), names


def test_every_chart_has_a_text_alternative(opened: pikepdf.Pdf) -> None:
    figures = [
        obj
        for obj in opened.objects
        if isinstance(obj, pikepdf.Dictionary) and obj.get("/S") == "/Figure"
    ]
    assert figures
    assert all(len(str(figure.Alt)) > 40 for figure in figures)


@pytest.mark.parametrize(
    "address", ["http://example.invalid/x.png", "file:///etc/hostname", "data:image/png;base64,AA"]
)
def test_an_address_outside_ends_the_rendering(address: str) -> None:
    with pytest.raises(HostError, match="something outside itself"):
        write_pdf(
            f'<html lang="en"><title>t</title><p>x</p><img src="{address}" alt="x">',
            charts={},
            attachments={},
            created="2026-11-30T21:04:05Z",
            identifier=b"0" * 16,
        )


@pytest.mark.parametrize("on", [True, False])
def test_the_cycle_collector_is_left_as_it_was(on: bool) -> None:
    before = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        write_pdf(
            '<html lang="en"><title>t</title><p>x</p>',
            charts={},
            attachments={},
            created="2026-11-30T21:04:05Z",
            identifier=b"0" * 16,
        )
        assert gc.isenabled() is on
    finally:
        (gc.enable if before else gc.disable)()


def test_without_pango_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "weasyprint":
            raise OSError("cannot load library 'libpango-1.0-0'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(HostError, match="needs Pango") as caught:
        load_weasyprint()
    assert "apt-get install libpango-1.0-0" in caught.value.next_step
