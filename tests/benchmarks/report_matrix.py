"""The report of 6 groups, 6 loads and 5 blocks at 1, 2 and 4 tasks: seconds, pages, bytes.

Every measurement is the whole command ``specbundle report FOLDER --format html,pdf`` in a process
of its own, from its start to its end. Prints a Markdown table with the median of the seconds.

    python -m tests.benchmarks.report_matrix [--repeat 3]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pikepdf

from tests.run_folder import matrix_folder

TASKS = (1, 2, 4)


def seconds(folder: Path, into: Path) -> float:
    """One run of the command."""
    words = ["report", str(folder), "--into", str(into), "--format", "html,pdf"]
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "bundle", *words], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def row(place: Path, tasks: int, repeat: int) -> str:
    """One line of the table."""
    folder = matrix_folder(place / f"matrix-{tasks}", tasks)
    taken = [seconds(folder, place) for _ in range(repeat)]
    html, pdf = (place / f"{folder.name}.{ending}" for ending in ("html", "pdf"))
    with pikepdf.open(pdf) as document:
        pages = len(document.pages)
    sizes = [f"{path.stat().st_size / 1e6:.2f} MB" for path in (html, pdf)]
    cells = 6 * tasks * 6
    told = f"{statistics.median(taken):.1f} s ({min(taken):.1f} to {max(taken):.1f})"
    return f"| {tasks} | {cells} | {told} | {pages} | {' | '.join(sizes)} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    print("| tasks | cells | HTML and PDF together | pages | HTML | PDF |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for tasks in TASKS:
            print(row(Path(scratch), tasks, repeat), flush=True)


if __name__ == "__main__":
    main()
