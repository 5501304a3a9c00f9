"""The user's cache folder, and locks over its parts.

What lies there can always be made again: engine environments, converted models. A part is
complete only when its marker says so, and whoever makes one holds its lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from bundle.errors import HostError

Report = Callable[[str], None]
GIB = 1 << 30


def cache_root() -> Path:
    """The tool's cache folder of this user, made if absent.

    Raises:
        HostError: it cannot be made or written.
    """
    root = platformdirs.user_cache_path("specbundle")
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(root, error) from error
    if not os.access(root, os.W_OK | os.X_OK):
        raise HostError(
            "expected a cache folder that can be written, found one that cannot",
            where=str(root),
            next_step="mend its permissions, or set XDG_CACHE_HOME to another folder",
        )
    return root


def unwritable(path: Path, error: OSError) -> HostError:
    """The error for a failed write: no space left is told apart from everything else."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return no_space(path, "")
    return HostError(
        f"expected a writable place, found: {error.strerror or error}",
        where=str(path),
        next_step="mend its permissions, or set XDG_CACHE_HOME to another folder",
    )


def no_space(path: Path, detail: str) -> HostError:
    """The error for a full disk; ``detail`` says what was needed, where that is known."""
    found = f": {detail}" if detail else ""
    return HostError(
        f"no space left{found}",
        where=str(path),
        next_step="free some space, or set XDG_CACHE_HOME (HF_HOME for Hub models) elsewhere",
    )


def require_space(path: Path, needed: int, what: str) -> None:
    """Refuse early where ``needed`` bytes do not fit on the file system of ``path``.

    Raises:
        HostError: too little space; says how much is needed and free.
    """
    place = next(p for p in (path, *path.parents) if p.exists())
    free = shutil.disk_usage(place).free
    if free < needed:
        raise no_space(place, f"{what} needs {needed / GIB:.1f} GiB, {free / GIB:.1f} GiB are free")


@contextmanager
def exclusive(path: Path, *, report: Report, what: str) -> Iterator[int]:
    """Hold an advisory lock on ``path`` (made if absent); waits for the holder and says so.

    Yields the file descriptor. A child that inherits it (``pass_fds``) keeps the lock after the
    tool was killed, so nobody removes a folder that an orphaned installer still writes to.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"{what}: somebody else is making it, waiting")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def remove_tree(path: Path) -> None:
    """Remove a folder that may be absent; if that fails, the error being handled stays visible.

    Raises:
        HostError: it is still there. Any error being handled is its ``__context__``.
    """
    try:
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            shutil.rmtree(path)
    except OSError as error:
        cause = sys.exc_info()[1]
        raise HostError(
            f"expected to remove a half-made folder, found: {error.strerror or error}",
            where=str(path),
            next_step="remove it by hand",
        ) from cause
