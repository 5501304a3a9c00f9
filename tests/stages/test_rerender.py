"""Every form of the report, from a folder and from an archive."""

import json
from pathlib import Path

import pikepdf
import pytest

from bundle.core.comparison import Comparison
from bundle.errors import BundleError, UsageError
from bundle.stages.pack import pack
from bundle.stages.rerender import FORMATS, formats_named, rerender
from tests import builders_report as b
from tests.bundles import TAR_STEM
from tests.run_folder import full_run_folder, run_folder, write

LIGHT = ("md", "json", "csv", "parquet")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = full_run_folder(tmp_path / "run")
    (folder / "README.md").write_text("# x\n")
    out = tmp_path / "out"
    out.mkdir()
    return pack(folder, out, stem=TAR_STEM, known_secrets=()).archive


def test_an_archive_gives_every_form_under_its_name(archive: Path, tmp_path: Path) -> None:
    made = rerender(archive, tmp_path / "new" / "place", formats=tuple(FORMATS))
    stem = archive.name.removesuffix(".tar.zst")
    assert [path.name for path in made] == [f"{stem}.{name}" for name in FORMATS]
    texts = {path.suffix: path.read_bytes() for path in made}
    assert texts[".html"].startswith(b"<!doctype html>")
    assert texts[".pdf"].startswith(b"%PDF")
    assert texts[".parquet"].startswith(b"PAR1")
    assert f"specbundle verify {archive.name}".encode() in texts[".md"]
    document = json.loads(texts[".json"])
    assert document["schema"] == "specbundle.report/1"
    assert document["results"]["verdicts"][0]["verdict"] == "SHIP"
    assert document["comparison"] is None


def test_a_folder_is_read_and_never_written(tmp_path: Path) -> None:
    folder = full_run_folder(tmp_path / "run")
    before = sorted(folder.rglob("*"))
    made = rerender(folder, tmp_path / "into", formats=LIGHT)
    assert [path.name for path in made] == [f"run.{name}" for name in LIGHT]
    assert sorted(folder.rglob("*")) == before


def test_an_unpacked_bundle_is_read_in_its_data(tmp_path: Path) -> None:
    run_folder(tmp_path / "bag" / "data")
    (tmp_path / "bag" / "bagit.txt").write_text("BagIt-Version: 1.0\n")
    (made,) = rerender(tmp_path / "bag", tmp_path, formats=("md",))
    assert made.name == "bag.md"


def test_the_same_records_give_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    once, twice = (rerender(archive, tmp_path / name, formats=LIGHT) for name in ("a", "b"))
    assert [p.read_bytes() for p in once] == [p.read_bytes() for p in twice]


def test_a_reruns_comparison_is_shown_and_attached(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", b.all_invalid())
    record = Comparison(parent="feedc0ffee12", differences=(), claims=())
    write(folder / "results" / "comparison.json", record)
    html, pdf, text = rerender(folder, tmp_path, formats=("html", "pdf", "json"))
    assert "This is a rerun of bundle feedc0ffee12" in html.read_text()
    assert json.loads(text.read_bytes())["comparison"]["parent"] == "feedc0ffee12"
    with pikepdf.open(pdf) as document:
        assert set(document.attachments) == {"results.json", "bundle.json", "comparison.json"}


def test_letter_on_request(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", b.all_invalid())
    (made,) = rerender(folder, tmp_path, paper="letter", formats=("pdf",))
    with pikepdf.open(made) as document:
        box = [float(x) for x in document.pages[0].mediabox]
    assert box[2:] == pytest.approx([612, 792], abs=1)


def test_names_of_forms() -> None:
    assert formats_named("html, PDF,html,") == ("html", "pdf")
    for wrong in ("", "html,doc", ","):
        with pytest.raises(UsageError, match="html, pdf, md, json, csv, parquet"):
            formats_named(wrong)


def test_a_damaged_archive_gives_nothing(archive: Path, tmp_path: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(BundleError, match="sha256"):
        rerender(archive, tmp_path / "into")
    assert not (tmp_path / "into").exists()
