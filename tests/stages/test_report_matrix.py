"""A large matrix: it renders, the PDF stays small, pages grow with the tasks. Nothing is timed."""

from pathlib import Path

import pikepdf
import pytest

from bundle.stages.rerender import rerender
from tests.run_folder import matrix_folder

MOST_BYTES = 3_000_000


@pytest.mark.slow
def test_pages_grow_linearly_and_the_pdf_stays_small(tmp_path: Path) -> None:
    pages = {}
    for tasks in (1, 2, 4):
        folder = matrix_folder(tmp_path / f"matrix-{tasks}", tasks)
        (pdf,) = rerender(folder, tmp_path, formats=("pdf",))
        assert pdf.stat().st_size <= MOST_BYTES
        with pikepdf.open(pdf) as document:
            pages[tasks] = len(document.pages)
    per_task = (pages[4] - pages[1]) / 3
    # Breaks before charts and tables cost up to a page here and there; that is no other slope.
    assert pages[2] == pytest.approx(pages[1] + per_task, abs=2)
    assert pages[4] < 40


def test_the_page_of_the_matrix_holds_every_cell(tmp_path: Path) -> None:
    folder = matrix_folder(tmp_path / "matrix", 4)
    html, csv = rerender(folder, tmp_path, formats=("html", "csv"))
    # Five methods at six loads on each of four tasks, and the heading.
    for task in ("code", "chat", "json", "long-text"):
        table = html.read_text().split(f'<table id="speed-table-{task}"')[1].split("</table>")[0]
        assert table.count("<tr") == 31
    starts, cells = (6 + 1) * 5, 4 * 6
    assert csv.read_bytes().count(b"\n") == 1 + starts * cells
