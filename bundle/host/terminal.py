"""Showing progress: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bundle.core.design import PRIMER_BLOCK, PlannedRun
from bundle.core.progress import remaining


def clock_text(seconds: float) -> str:
    """Seconds as minutes and seconds, such as ``3:07``."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Lines:
    """Plain lines, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._runs: tuple[PlannedRun, ...] = ()
        self._seconds: dict[str, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        return None

    def message(self, text: str) -> None:
        """Print the line with the time that has passed."""
        passed = clock_text(time.monotonic() - self._began)
        self._console.print(f"[{passed}] {text}", markup=False, highlight=False, soft_wrap=True)

    def planned(self, runs: tuple[PlannedRun, ...]) -> None:
        """Say how many starts there are."""
        self._runs = runs
        self.message(f"{len(runs)} server starts: " + ", ".join(run.folder for run in runs))

    def started(self, run: PlannedRun) -> None:
        """Say which run starts."""
        self.message(f"{run.folder}: starting the server")

    def phase(self, run: PlannedRun, text: str) -> None:
        """Say what the run does."""
        self.message(f"{run.folder}: {text}")

    def finished(self, run: PlannedRun, *, failed: str | None, seconds: float) -> None:
        """Say how the run ended and what is left."""
        self._seconds[run.folder] = seconds
        word = "found finished" if not seconds else f"done in {clock_text(seconds)}"
        word = f"FAILED ({failed})" if failed else word
        left = remaining(self._seconds, self._runs)
        rest = "" if left is None else f", about {clock_text(left)} of runs to go"
        self.message(f"{run.folder}: {word}{rest}")


class LiveTable(Lines):
    """A table of blocks and groups that follows the run."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._now: dict[str, str] = {}
        self._live = Live(console=console, get_renderable=self._table, refresh_per_second=2)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._live.stop()

    def planned(self, runs: tuple[PlannedRun, ...]) -> None:
        """Keep the plan for the table."""
        self._runs = runs

    def started(self, run: PlannedRun) -> None:
        """Mark the run as started."""
        self._now[run.folder] = "starting"

    def phase(self, run: PlannedRun, text: str) -> None:
        """Show the phase in the run's place."""
        self._now[run.folder] = text

    def finished(self, run: PlannedRun, *, failed: str | None, seconds: float) -> None:
        """Show how the run ended."""
        self._seconds[run.folder] = seconds
        self._now[run.folder] = f"failed: {failed}" if failed else clock_text(seconds) + " ✓"

    def _table(self) -> Table:
        left = remaining(self._seconds, self._runs)
        passed = clock_text(time.monotonic() - self._began)
        rest = "" if left is None else f", about {clock_text(left)} of runs to go"
        table = Table(title=f"{passed} passed{rest}", title_justify="left", expand=False)
        blocks = sorted({run.block for run in self._runs})
        table.add_column("group")
        for block in blocks:
            table.add_column("primer" if block == PRIMER_BLOCK else f"block {block}")
        for group in dict.fromkeys(run.group for run in self._runs):
            table.add_row(group, *(self._cell(block, group) for block in blocks))
        return table

    def _cell(self, block: int, group: str) -> Text:
        mine = [r for r in self._runs if r.block == block and r.group == group]
        return Text(" / ".join(self._now.get(r.folder, "·") for r in mine), overflow="fold")


def progress_for(console: Console) -> Lines:
    """The live table on a terminal, plain lines elsewhere."""
    return LiveTable(console) if console.is_terminal else Lines(console)
