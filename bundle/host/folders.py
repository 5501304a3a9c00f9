"""The run folder: where it lies, who holds it, and how files get into it whole.

A run folder is ``reports/work/<recipe>-<digest8>``. Names that begin with a dot or end in
``.partial`` are working state and never part of a bundle.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bundle.errors import BundleError, HostError, UsageError

T = TypeVar("T")

PARTIAL = ".partial"


@contextmanager
def host_errors(path: Path) -> Iterator[None]:
    """Turn a full disk or an unwritable folder into a :class:`HostError` that names it."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise HostError(
                "no space is left on the disk",
                where=str(path),
                next_step="free some and start again",
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            raise HostError(
                f"cannot write there: {error.strerror}",
                where=str(path),
                next_step="make the folder writable or name another",
            ) from error
        raise


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file so that it is either there in full or not at all."""
    data = content.encode() if isinstance(content, str) else content
    half = path.with_name(path.name + PARTIAL)
    with host_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with half.open("wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            half.replace(path)
        except OSError:
            half.unlink(missing_ok=True)
            raise


def write_json(path: Path, value: object) -> None:
    """Write a record or plain value as indented JSON with a final newline."""
    write_whole(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def read_json(path: Path, kind: type[T]) -> T:
    """Read a JSON file into a record.

    Raises:
        BundleError: the file is missing or not such a record.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise BundleError(f"cannot read: {error.strerror}", where=str(path)) from error
    except msgspec.MsgspecError as error:
        raise BundleError(f"not the record expected there: {error}", where=str(path)) from error


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """``.state.json``: what the next start must know and a bundle must not."""

    started: str
    rounds: int
    finished: bool = False
    looks: tuple[int, ...] = ()
    seconds: dict[str, float] = {}
    archive: str | None = None


class RunFolder:
    """One run folder, held by one tool at a time."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    def state(self) -> RunState | None:
        """The state an earlier start left, or None."""
        path = self.path / ".state.json"
        return read_json(path, RunState) if path.exists() else None

    def save(self, state: RunState) -> None:
        """Keep the state for the next start."""
        write_json(self.path / ".state.json", state)

    def release(self) -> None:
        """Let another tool have the folder."""
        os.close(self._lock)


def open_run_folder(path: Path, *, fresh: bool, rounds: int, now: str) -> tuple[RunFolder, bool]:
    """Open the run folder, resuming an unfinished run or one that gets more rounds.

    Returns:
        The folder, and whether it resumes. A finished run of as many rounds, or any run when
        ``fresh`` is asked for, is moved aside first; nothing that finished is deleted.
    """
    with host_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        folder = RunFolder(path, _hold(path))
        state = folder.state()
        if state is not None and (fresh or (state.finished and rounds <= state.rounds)):
            _move_aside(path, state)
            state = None
    if state is None:
        folder.save(RunState(started=now, rounds=rounds))
        return folder, False
    return folder, True


def _hold(path: Path) -> int:
    lock = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise UsageError(
            "another specbundle works on this run",
            where=str(path),
            next_step="wait for it or end it",
        ) from None
    return lock


def _move_aside(path: Path, state: RunState) -> None:
    stamp = state.started.translate(str.maketrans("", "", "-:")).partition(".")[0]
    aside = path.parent / "earlier" / f"{path.name}-{stamp}"
    aside.mkdir(parents=True, exist_ok=True)
    for child in path.iterdir():
        if child.name != ".lock":
            target = aside / child.name
            if target.exists():
                _remove(target)
            child.rename(target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def remove_partial(folder: Path) -> None:
    """Remove the half outputs that an interrupted start left below a folder."""
    for half in sorted(folder.rglob(f"*{PARTIAL}"), reverse=True):
        _remove(half)


def records(path: Path, kind: type[T]) -> tuple[T, ...]:
    """Read a JSON-lines file into records; an absent file is no records."""
    if not path.exists():
        return ()
    decoder: Any = msgspec.json.Decoder(kind)
    return tuple(decoder.decode(line) for line in path.read_bytes().splitlines() if line)
