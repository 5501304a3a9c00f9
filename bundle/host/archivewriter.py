"""Writing the archive: the same files give the same bytes, and no half one keeps its name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec
import zstandard

from bundle.core.tarheader import BLOCK, padding, render_header
from bundle.errors import BundleError, HostError
from bundle.host.archive import CHUNK, disk_errors

#: zstd's level 9 keeps a window of a few MiB, so every reader opens the archive by default.
LEVEL = 9


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One regular file to store.

    ``source`` is a file to read or the bytes themselves; ``sha256`` and ``size`` are what the
    manifest says of it, and what is written is held against them.
    """

    name: str
    source: Path | bytes
    size: int
    sha256: str


def write_archive(members: Sequence[Member], target: Path, *, top: str, mtime: int) -> str:
    """Write ``target`` and its ``.sha256`` sidecar; returns the archive's sha256.

    Both are made under temporary names and renamed when they are whole and on the disk; the
    archive comes last, so an archive under its final name always has its sidecar.

    Args:
        members: files below ``top``, in any order.
        target: the archive's final path.
        top: name of the one top folder.
        mtime: seconds since 1970 for every member.

    Raises:
        BundleError: a file changed while it was being packed.
        HostError: the disk is full or cannot be written.
    """
    sidecar = sidecar_of(target)
    with disk_errors(target.parent), temporary(target) as archive, temporary(sidecar) as side:
        with archive.open("xb") as out:
            digest = _write(members, out, top=top, mtime=mtime)
            _flush(out)
        with side.open("xb") as out:
            out.write(f"{digest}  {target.name}\n".encode())
            _flush(out)
        side.replace(sidecar)
        archive.replace(target)
        _flush_folder(target.parent)
    return digest


def sidecar_of(archive: Path) -> Path:
    """The file beside an archive that ``sha256sum -c`` reads."""
    return archive.with_name(f"{archive.name}.sha256")


@contextmanager
def temporary(final: Path) -> Iterator[Path]:
    """A hidden name beside ``final``, removed on the way out unless it was renamed.

    Raises:
        HostError: both the work and the clean-up failed; it carries both.
    """
    path = final.with_name(f".{final.name}.partial")
    path.unlink(missing_ok=True)  # left by a tool that was killed
    try:
        yield path
    except BaseException as error:
        _clean_up(path, error)
        raise
    path.unlink(missing_ok=True)


def _clean_up(path: Path, reason: BaseException) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise HostError(
            f"{reason}; and the unfinished file could not be removed: {error}",
            where=str(path),
            next_step="remove it by hand",
        ) from reason


class _HashingWriter:
    """Passes bytes on and keeps their digest, so the archive is never read again."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        return self._out.write(data)


def _write(members: Sequence[Member], out: IO[bytes], *, top: str, mtime: int) -> str:
    hashing = _HashingWriter(out)
    # Content size is left out of the frame: it is not known before, and nothing needs it.
    packer = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=False)
    by_name = {f"{top}/{member.name}": member for member in members}
    with packer.stream_writer(hashing, closefd=False) as plain:  # type: ignore[arg-type]
        for name in sorted({*by_name, *_folders(by_name)}):
            member = by_name.get(name)
            size = member.size if member else 0
            plain.write(render_header(name=name, size=size, folder=member is None, mtime=mtime))
            if member:
                _copy(member, plain)
        plain.write(bytes(2 * BLOCK))
    return hashing.sha256.hexdigest()


def _folders(names: Mapping[str, Member]) -> set[str]:
    found: set[str] = set()
    for name in names:
        parts = name.split("/")
        found.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
    return found


def _copy(member: Member, plain: IO[bytes]) -> None:
    """Write the data of one member and hold it against what its manifest will say."""
    digest, size = hashlib.sha256(), 0
    for data in _chunks(member.source):
        digest.update(data)
        size += len(data)
        plain.write(data)
    if (digest.hexdigest(), size) != (member.sha256, member.size):
        raise BundleError(
            "the file changed while it was being packed",
            where=member.name,
            next_step="make sure nothing still writes in the run folder, then pack again",
        )
    plain.write(padding(size))


def _chunks(source: Path | bytes) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as stream:
        while data := stream.read(CHUNK):
            yield data


def _flush(out: IO[bytes]) -> None:
    out.flush()
    os.fsync(out.fileno())


def _flush_folder(folder: Path) -> None:
    """A rename is safe against lost power only when its folder is on the disk too."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
