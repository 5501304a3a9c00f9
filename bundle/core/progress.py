"""What the stages tell whoever watches; the watcher is handed in and does the printing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from bundle.core.design import PlannedRun


class Progress(Protocol):
    """Receives the events of a run in order."""

    def message(self, text: str) -> None:
        """One line about what happens now."""

    def planned(self, runs: tuple[PlannedRun, ...]) -> None:
        """The whole order of runs, before the first."""

    def started(self, run: PlannedRun) -> None:
        """A run starts."""

    def phase(self, run: PlannedRun, text: str) -> None:
        """The run entered a phase: starting, warming, quality, a cell, stopping."""

    def finished(self, run: PlannedRun, *, failed: str | None, seconds: float) -> None:
        """A run ended; ``failed`` is its cause. ``seconds`` is 0 for a run found finished."""


def remaining(seconds: Mapping[str, float], runs: tuple[PlannedRun, ...]) -> float | None:
    """Seconds the runs still to do will take, by the mean of what took time so far.

    Args:
        seconds: seconds by run folder; 0 for a run found finished.
        runs: the whole plan.

    Returns:
        None before the first run ended.
    """
    timed = [s for s in seconds.values() if s > 0]
    if not timed:
        return None
    return sum(timed) / len(timed) * sum(1 for run in runs if run.folder not in seconds)
