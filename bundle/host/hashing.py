"""Digests of files: several files at once, one read for all digests, flat memory."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bundle.errors import BundleError

BLOCK = 1 << 20

#: Called with the number of bytes just read; from several threads, one at a time.
Progress = Callable[[int], None]


def sha256_of(path: Path) -> str:
    """Hex sha256 of one file.

    Raises:
        BundleError: the file cannot be read.
    """
    return _digest(path, ("sha256",), bytearray(BLOCK), _no_progress)["sha256"]


def digest_files(
    files: Mapping[str, Path],
    *,
    algorithms: Sequence[str] = ("sha256",),
    workers: int | None = None,
    progress: Progress | None = None,
) -> dict[str, dict[str, str]]:
    """Digests of many files: name -> algorithm -> lower-case hex digest, in the order given.

    hashlib lets go of the interpreter lock while it works, so threads use all cores. The largest
    files start first, or one of them could run alone at the end. Memory: one block per worker.

    Args:
        files: any name -> the file to read.
        algorithms: names of :mod:`hashlib`.
        workers: threads; default: the cores this process may use.
        progress: told the bytes read.

    Raises:
        BundleError: a file cannot be read.
    """
    local = threading.local()
    lock = threading.Lock()

    def advance(count: int) -> None:
        if progress is not None:
            with lock:
                progress(count)

    def work(name: str) -> tuple[str, dict[str, str]]:
        if not hasattr(local, "block"):
            local.block = bytearray(BLOCK)
        return name, _digest(files[name], algorithms, local.block, advance)

    largest_first = sorted(files, key=lambda name: -_size(files[name]))
    with ThreadPoolExecutor(max_workers=workers or usable_cores()) as pool:
        found = dict(pool.map(work, largest_first))
    return {name: found[name] for name in files}


def usable_cores() -> int:
    """The cores this process may run on (a container's share, not the machine's count)."""
    return len(os.sched_getaffinity(0))


def _no_progress(_count: int) -> None:
    """Nobody asked to be told."""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from error


def _digest(
    path: Path, algorithms: Sequence[str], block: bytearray, advance: Progress
) -> dict[str, str]:
    hashers = {name: hashlib.new(name, usedforsecurity=False) for name in algorithms}
    view = memoryview(block)
    try:
        with path.open("rb", buffering=0) as stream:
            while count := stream.readinto(view):
                for hasher in hashers.values():
                    hasher.update(view[:count])
                advance(count)
    except OSError as error:
        raise _unreadable(path, error) from error
    return {name: hasher.hexdigest() for name, hasher in hashers.items()}


def _unreadable(path: Path, error: OSError) -> BundleError:
    return BundleError(
        f"expected a readable file, found: {error.strerror or error}",
        where=str(path),
        next_step="check the file and its permissions",
    )
