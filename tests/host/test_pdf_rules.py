"""The rules of PDF/A-3u and of a document that a screen reader can read, as far as pikepdf shows.

ISO 19005-3 in the words of its clauses: nothing outside the file is needed, nothing in it acts,
fonts are embedded with a way back to Unicode, attachments say what they are.
"""

import io
from collections.abc import Iterator
from typing import Any

import pikepdf
import pytest

from bundle.core.report.view import view
from bundle.host.charts import draw
from bundle.host.html import print_page
from bundle.host.pdf import write_pdf
from bundle.stages.report import charts_of
from tests import builders_report as b

DATA = {"results.json": b'{"a": 1}', "bundle.json": b"{}", "comparison.json": b"[]"}
ACTIVE = (
    "/JavaScript",
    "/JS",
    "/Launch",
    "/ImportData",
    "/SubmitForm",
    "/Movie",
    "/Sound",
    "/GoToR",
)


@pytest.fixture(scope="module")
def opened() -> Iterator[pikepdf.Pdf]:
    made = view(b.rerun(), b.recipe(), b.head(), b.provenance(), b.RERUN)
    charts = {chart.id: draw(chart) for chart in charts_of(made)}
    pdf = write_pdf(
        print_page(made, charts, "Letter"),
        charts=charts,
        attachments=DATA,
        created=made.created,
        identifier=b"0123456789abcdef",
    )
    with pikepdf.open(io.BytesIO(pdf)) as document:
        yield document


def dictionaries(document: pikepdf.Pdf) -> Iterator[Any]:
    for one in document.objects:
        if isinstance(one, pikepdf.Dictionary):
            yield one
        elif isinstance(one, pikepdf.Stream):
            yield one.stream_dict


def test_metadata_names_part_and_level_and_agrees_with_the_document(opened: pikepdf.Pdf) -> None:
    with opened.open_metadata() as meta:
        assert (meta["pdfaid:part"], meta["pdfaid:conformance"]) == ("3", "U")
        assert meta["dc:title"] == str(opened.docinfo["/Title"])
        assert meta["xmp:CreateDate"].startswith("2026-11-30T21:04:05")
        assert str(opened.docinfo["/CreationDate"]).startswith("D:20261130210405")
    assert "/Filter" not in opened.Root.Metadata.stream_dict


def test_the_output_intent_carries_its_profile(opened: pikepdf.Pdf) -> None:
    (intent,) = opened.Root.OutputIntents
    assert str(intent.S) == "/GTS_PDFA1"
    assert str(intent.OutputConditionIdentifier)
    profile = intent.DestOutputProfile
    assert int(profile.N) == 3
    assert profile.read_bytes()[36:40] == b"acsp"


def test_nothing_in_it_acts_or_lies_outside(opened: pikepdf.Pdf) -> None:
    assert not opened.is_encrypted
    assert "/OpenAction" not in opened.Root
    assert "/AA" not in opened.Root
    assert "/AcroForm" not in opened.Root
    for one in dictionaries(opened):
        assert str(one.get("/S", "")) not in ACTIVE
        assert "/JS" not in one
        assert "/URI" not in one
        assert str(one.get("/Filter", "")) not in ("/LZWDecode", "/Crypt")


def test_every_font_is_embedded_and_leads_back_to_unicode(opened: pikepdf.Pdf) -> None:
    fonts = [one for one in dictionaries(opened) if str(one.get("/Subtype", "")) == "/Type0"]
    assert fonts
    for font in fonts:
        assert "/ToUnicode" in font
        (child,) = font.DescendantFonts
        assert any(name in child.FontDescriptor for name in ("/FontFile2", "/FontFile3"))


def test_attachments_say_what_they_are(opened: pikepdf.Pdf) -> None:
    named = {str(spec.UF): spec for spec in opened.Root.AF}
    assert set(named) == set(DATA)
    for name, spec in named.items():
        assert str(spec.Type) == "/Filespec"
        assert str(spec.AFRelationship) == "/Data"
        assert str(spec.Desc) == f"{name} of the run"
        stream = spec.EF.F
        assert str(stream.Subtype) == "/application/json"
        assert str(stream.Params.ModDate).startswith("D:20261130210405")
        assert stream.read_bytes() == DATA[name]


def test_a_screen_reader_finds_language_title_order_and_tables(opened: pikepdf.Pdf) -> None:
    assert str(opened.Root.Lang) == "en"
    assert bool(opened.Root.MarkInfo.Marked)
    assert bool(opened.Root.ViewerPreferences.DisplayDocTitle)
    assert "/ParentTree" in opened.Root.StructTreeRoot
    assert all("/StructParents" in page for page in opened.pages)
    tags = [str(one.S) for one in dictionaries(opened) if "/P" in one and "/S" in one]
    for tag in ("/Document", "/H1", "/H2", "/H3", "/P", "/Table", "/TR", "/TH", "/TD", "/Figure"):
        assert tag in tags, tag
    headers = [one for one in dictionaries(opened) if str(one.get("/S", "")) == "/TH"]
    assert headers
    assert tags.count("/H1") == 1


def test_every_link_inside_lands(opened: pikepdf.Pdf) -> None:
    known = {str(name) for name in opened.Root.Names.Dests.Names[::2]}
    links = [
        annotation
        for page in opened.pages
        for annotation in page.get("/Annots", [])
        if str(annotation.Subtype) == "/Link"
    ]
    assert len(links) >= 10
    for link in links:
        assert str(link.A.D if "/A" in link else link.Dest) in known


def test_pages_are_letter_and_named_in_the_outline(opened: pikepdf.Pdf) -> None:
    boxes = {tuple(round(float(x)) for x in page.mediabox) for page in opened.pages}
    assert boxes == {(0, 0, 612, 792)}
    with opened.open_outline() as outline:
        titles = [item.title for root in outline.root for item in root.children]
    assert titles[:3] == ["1 Decision", "Ten questions", "Against the parent"]
    assert titles[-1] == "10 Limits"
