"""The time account of a run: where its wall time went.

The clock is handed in, so the account itself is pure. Phases do not nest; what no phase claims is
the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

PACKING = "report and packing"
PHASES = ("preparing", "servers", "quality", "cells", "judging", PACKING)
REST = "rest"


class Account:
    """Seconds per phase over every start of the tool that worked on one run folder.

    Args:
        clock: seconds, monotonic.
        began: the clock's reading when the tool's process began.
        earlier: the account of earlier, interrupted starts.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        began: float,
        earlier: Mapping[str, float] | None = None,
    ) -> None:
        self._clock = clock
        self._began = began
        self._seconds = dict.fromkeys((*PHASES, REST), 0.0) | dict(earlier or {})
        self._claimed = 0.0

    def begin(self, name: str) -> None:
        """Claim the time since the tool's process began: starting Python, importing, reading."""
        self.add({name: self._clock() - self._began})

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Claim the time of the block for one of :data:`PHASES`."""
        start = self._clock()
        try:
            yield
        finally:
            self.add({name: self._clock() - start})

    def add(self, seconds: Mapping[str, float]) -> None:
        """Claim seconds that something else measured, by phase."""
        for name, amount in seconds.items():
            self._seconds[name] += amount
            self._claimed += amount

    def seconds(self) -> dict[str, float]:
        """Seconds per phase, the rest included, rounded to milliseconds."""
        now = dict(self._seconds)
        now[REST] += max(0.0, self._clock() - self._began - self._claimed)
        return {name: round(amount, 3) for name, amount in now.items()}


def account_lines(seconds: Mapping[str, float]) -> list[str]:
    """The account as lines: phase, seconds, share of the wall time in percent."""
    total = sum(seconds.values())
    return [
        f"{name:<20} {amount:8.1f} s {100 * amount / total if total else 0:5.1f} %"
        for name, amount in [*seconds.items(), ("total", total)]
    ]
