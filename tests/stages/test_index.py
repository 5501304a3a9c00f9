"""The index page: every archive of a folder, sound, damaged, foreign, signed or not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bundle.errors import HostError, UsageError
from bundle.stages import index as stage
from bundle.stages.index import index, refresh
from bundle.stages.pack import pack
from bundle.stages.sign import sign
from tests import builders_report as b
from tests.bundles import honest, member, ship, tar_members
from tests.host.test_html import Outline
from tests.host.test_signature import keypair, never
from tests.run_folder import full_run_folder, write

ROOT = Path(__file__).resolve().parents[2]


def packed(place: Path, reports: Path, stem: str, **changes: object) -> Path:
    folder = full_run_folder(place)
    recipe = b.recipe(**changes) if changes else b.recipe()
    write(folder / "recipes" / "recipe.json", recipe)
    (folder / "README.md").write_text("# x\n")
    reports.mkdir(exist_ok=True)
    return pack(folder, reports, stem=stem, known_secrets=()).archive


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    return tmp_path / "reports"


def read(reports: Path) -> str:
    html = index(reports).read_text()
    outline = Outline()
    outline.feed(html)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    for link in outline.links:
        assert link.startswith("./")
    return html


def test_a_sound_bundle_is_listed_with_links_to_what_is_there(
    tmp_path: Path, reports: Path
) -> None:
    archive = packed(tmp_path / "run", reports, "qwen")
    stem = archive.name.removesuffix(".tar.zst")
    (reports / f"{stem}.html").write_text("x")
    html = read(reports)
    assert "1 bundle in this folder." in html
    assert "2026-11-30 21:04 UTC" in html
    assert ">2 SHIP</span>" in html
    assert "Ship eagle3: shown at 8 concurrent requests." in html
    assert "UNSIGNED" in html
    assert f'<a href="./{stem}.html">Speculative decoding for Qwen3-8B</a>' in html
    assert f'href="./{stem}.tar.zst"' in html
    assert f"{stem}.pdf" not in html
    assert "default-src 'none'" in html


def test_damaged_archives_are_listed_as_that(tmp_path: Path, reports: Path) -> None:
    whole = packed(tmp_path / "run", reports, "qwen")
    data = whole.read_bytes()
    (reports / "cut.tar.zst").write_bytes(data[: len(data) // 2])
    (reports / "empty.tar.zst").write_bytes(b"")
    ship(tar_members([member("../evil", b"x")]), reports, name="evil-000000000000")
    (reports / "folder.tar.zst").mkdir()
    html = read(reports)
    assert "4 bundles in this folder; 3 archives could not be read." in html
    assert html.count(">DAMAGED</span>") == 3
    assert not (tmp_path / "evil").exists()


def test_a_sound_bag_with_other_records_is_listed_as_damaged(tmp_path: Path, reports: Path) -> None:
    packed_one = honest(tmp_path / "honest")
    html = read(packed_one.archive.parent)
    assert ">DAMAGED</span><small>cannot read: No such file" in html


def test_records_that_fit_nothing_are_no_crash(
    tmp_path: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed(tmp_path / "run", reports, "qwen")

    def odd(_: Path) -> None:
        raise KeyError("eagle9")

    monkeypatch.setattr(stage, "read_report", odd)
    assert "its records do not fit together: KeyError: &#39;eagle9&#39;" in read(reports)


def test_foreign_text_is_text(tmp_path: Path, reports: Path) -> None:
    title = "<script>alert(1)</script> \u202eevil"
    packed(tmp_path / "run", reports, "odd", title=title)
    (reports / "odd name & <b>.tar.zst").write_bytes(b"x")
    html = read(reports)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; [U+202E]evil" in html
    assert html.count("<script") == 1
    assert "./odd%20name%20%26%20%3Cb%3E.tar.zst" in html


def test_signatures_by_the_readers_own_trust_file(tmp_path: Path, reports: Path) -> None:
    archive = packed(tmp_path / "run", reports, "qwen")
    private = keypair(tmp_path, "ana")
    trust = tmp_path / "trust"
    trust.write_text(private.with_suffix(".pub").read_text())
    sign(archive, private, passphrase=never)
    assert "UNSIGNED by anyone you trust" in read(reports)
    assert "SIGNED BY ana" in index(reports, trust=trust).read_text()


def test_a_rerun_names_its_parent_and_an_empty_folder_has_a_page(
    tmp_path: Path, reports: Path
) -> None:
    reports.mkdir()
    assert "No bundles in this folder." in read(reports)
    folder = full_run_folder(tmp_path / "run")
    write(folder / "bundle.json", b.head(parent="feedc0ffee12"))
    (folder / "README.md").write_text("# x\n")
    pack(folder, reports, stem="again", known_secrets=())
    assert "rerun of feedc0ffee12" in read(reports)


def test_no_folder_is_an_error_and_a_run_does_not_fail_for_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="expected a folder"):
        index(tmp_path / "nowhere")
    assert refresh(tmp_path) == str(tmp_path / "index.html")

    def full(*_: object) -> None:
        raise HostError("no space is left on the disk")

    monkeypatch.setattr(stage, "write_whole", full)
    assert refresh(tmp_path) == "the index was not made anew: no space is left on the disk"


def test_the_same_folder_gives_the_same_page(tmp_path: Path, reports: Path) -> None:
    packed(tmp_path / "run", reports, "qwen")
    once = index(reports).read_bytes()
    code = "import sys; from pathlib import Path; from bundle.stages.index import index; "
    code += "index(Path(sys.argv[1]))"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "3"}
    subprocess.run([sys.executable, "-c", code, str(reports)], check=True, env=env, cwd=tmp_path)
    assert (reports / "index.html").read_bytes() == once
