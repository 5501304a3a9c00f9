"""A watcher of a run that shows nothing."""

from __future__ import annotations

from bundle.core.design import PlannedRun


class Silent:
    """A watcher that shows nothing."""

    def message(self, text: str) -> None:
        """Ignore it."""

    def planned(self, runs: tuple[PlannedRun, ...]) -> None:
        """Ignore it."""

    def started(self, run: PlannedRun) -> None:
        """Ignore it."""

    def phase(self, run: PlannedRun, text: str) -> None:
        """Ignore it."""

    def finished(self, run: PlannedRun, *, failed: str | None, seconds: float) -> None:
        """Ignore it."""
