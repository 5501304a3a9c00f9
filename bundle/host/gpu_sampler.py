"""Samples of the GPUs while a cell runs, from a thread into a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bundle.host.gpu import Gpu

SAMPLE_SECONDS = 0.1


class Sampler:
    """A thread that samples the devices into a file while a cell runs. Nothing without devices."""

    def __init__(self, gpus: Sequence[Gpu], path: Path, *, seconds: float = SAMPLE_SECONDS) -> None:
        self._gpus = gpus
        self._path = path
        self._seconds = seconds
        self._cell: str | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Sampler:
        if self._gpus:
            self._thread = threading.Thread(target=self._work, name="gpu-samples", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    @contextmanager
    def during(self, cell: str) -> Iterator[None]:
        """Mark the samples of the block with the cell's key."""
        self._cell = cell
        try:
            yield
        finally:
            self._cell = None

    def _work(self) -> None:
        encode = msgspec.json.Encoder().encode
        with self._path.open("ab", buffering=0) as out:
            while not self._stop.wait(self._seconds):
                cell = self._cell
                if cell is not None:
                    lines = [encode(gpu.sample(cell)) + b"\n" for gpu in self._gpus]
                    out.write(b"".join(lines))
