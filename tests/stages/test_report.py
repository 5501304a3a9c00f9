"""The stage: files whole or not at all, the same bytes wherever it runs."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bundle.errors import BundleError, UsageError
from bundle.stages import report as stage
from bundle.stages.report import read_report, render
from tests import builders_report as b
from tests.run_folder import full_run_folder, run_folder

ROOT = Path(__file__).resolve().parents[2]
RENDER = "import sys; from pathlib import Path; from bundle.stages.report import render; "
RENDER += "render(Path(sys.argv[1]))"


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / "report").rglob("*"))
        if path.is_file()
    }


def render_elsewhere(folder: Path, **env: str) -> dict[str, str]:
    """Render in a process of its own, with its own folder, zone, locale and hash seed."""
    subprocess.run(
        [sys.executable, "-c", RENDER, str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        check=True,
    )
    return digests(folder)


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    one = render_elsewhere(
        full_run_folder(tmp_path / "one"), TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="1"
    )
    two = render_elsewhere(
        full_run_folder(tmp_path / "a folder" / "two"),
        TZ="America/New_York",
        LC_ALL="C.UTF-8",
        PYTHONHASHSEED="2",
        SOURCE_DATE_EPOCH="1",
        MPLCONFIGDIR=str(tmp_path / "mpl"),
    )
    assert one == two
    assert {"report/report.html", "report/report.pdf"} <= set(one)
    assert sum(name.startswith("report/charts/") for name in one) == 6


def test_what_is_missing_is_an_error_with_its_place(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    (folder / "results" / "results.json").unlink()
    with pytest.raises(BundleError, match=r"results\.json"):
        render(folder)


def test_only_two_papers(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="A4 or Letter"):
        render(run_folder(tmp_path), paper="A3")


def test_a_failed_pdf_leaves_no_half_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> bytes:
        raise RuntimeError("no more memory")

    monkeypatch.setattr(stage, "write_pdf", broken)
    folder = run_folder(tmp_path)
    with pytest.raises(RuntimeError):
        render(folder)
    assert not (folder / "report").exists()


def test_letter_is_letter(tmp_path: Path) -> None:
    import pikepdf

    made = render(run_folder(tmp_path, b.all_invalid()), paper="letter")
    with pikepdf.open(made.pdf) as document:
        box = [float(x) for x in document.pages[0].mediabox]
    assert box[2:] == pytest.approx([612, 792], abs=1)
    assert made.html.exists()
    assert made.charts == ()


def test_the_view_names_what_the_folder_lacks(tmp_path: Path) -> None:
    made = read_report(run_folder(tmp_path)).view
    said = [text for s in made.sections for k in s.blocks for text in k.paragraphs]
    assert any("Not in the run folder: locks/models.lock.json" in text for text in said)
