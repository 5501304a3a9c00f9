"""Charts drawn beside the rest: a process of their own, since drawing takes as long as reading.

The process gets the charts by its standard input and answers with their SVG elements, so whoever
reports can lay out text on the other core meanwhile.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

import bundle
from bundle.core.report.parts import Chart
from bundle.errors import HostError


class Drawing(Mapping[str, str]):
    """Every chart as an SVG element, by its id; the first look at one waits for all.

    Args:
        charts: what to draw; without any, no process is started.
    """

    def __init__(self, charts: Sequence[Chart]) -> None:
        self._names = tuple(chart.id for chart in charts)
        self._made: dict[str, str] | None = None if charts else {}
        self._answer: tuple[bytes, bytes] = (b"", b"")
        if charts:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bundle.host.drawing"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": _import_path()},
            )
            # Both ends are served from here on: a full pipe would stop the other process.
            sent = msgspec.msgpack.encode(charts)
            self._reader = threading.Thread(target=self._talk, args=(sent,), daemon=True)
            self._reader.start()

    def _talk(self, sent: bytes) -> None:
        self._answer = self._process.communicate(sent)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> str:
        """One chart.

        Raises:
            HostError: the process that draws ended without an answer.
        """
        if self._made is None:
            self._reader.join()
            self._made = self._read()
        return self._made[name]

    def _read(self) -> dict[str, str]:
        output, errors = self._answer
        if self._process.returncode:
            lines = errors.decode(errors="replace").strip().splitlines()
            raise HostError(
                f"expected charts, found that drawing them ended with {self._process.returncode}"
                f" ({lines[-1] if lines else 'it said nothing'})",
                next_step="install the tool again; if that does not help, report it",
            )
        return msgspec.msgpack.decode(output, type=dict[str, str])


def _import_path() -> str:
    """Where this very tool is imported from comes first, then what the user has set."""
    own = str(Path(bundle.__file__).parents[1])
    return os.pathsep.join(filter(None, (own, os.environ.get("PYTHONPATH", ""))))


def _main() -> None:
    from bundle.host.charts import draw

    charts = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[Chart])
    drawn = {chart.id: draw(chart) for chart in charts}
    sys.stdout.buffer.write(msgspec.msgpack.encode(drawn))


if __name__ == "__main__":
    _main()
