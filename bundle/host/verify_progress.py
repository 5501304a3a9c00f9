"""Showing how far a verification is: a moving line on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import DownloadColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.progress import TransferSpeedColumn as SpeedColumn

from bundle.core.bag import human_size
from bundle.core.levels import TITLES

#: A small archive is unpacked before anybody would read a line.
QUIET_SECONDS = 5.0
#: The level that takes its time without counting bytes.
_SLOW = "V3"


class VerifyLines:
    """Plain lines for logs and pipes: at most one in five seconds, and one for the slow level."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._said = clock()
        self._level = ""
        self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        return None

    def __call__(self, level: str, count: int) -> None:
        """Add bytes to a level."""
        begins = level != self._level
        if begins:
            self._level, self._bytes = level, 0
        self._bytes += count
        now = self._clock()
        waited = bool(count) and now - self._said >= QUIET_SECONDS
        if waited or (begins and level == _SLOW):
            self._said = now
            done = f", {human_size(self._bytes)}" if self._bytes else ""
            self._console.print(f"{level} {TITLES[level]}{done} ...", markup=False)


class VerifyBar(VerifyLines):
    """One moving line: the level, its bytes, its speed; it is gone at the end."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            DownloadColumn(),
            SpeedColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, level: str, count: int) -> None:
        """Add bytes to a level; another level takes the line."""
        if level != self._level or self._task is None:
            self._level = level
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._task = self._progress.add_task(f"{level} {TITLES[level]}", total=None)
        self._progress.advance(self._task, count)


def verify_progress(console: Console) -> VerifyLines:
    """The moving line on a terminal, plain lines elsewhere."""
    return VerifyBar(console) if console.is_terminal else VerifyLines(console)
