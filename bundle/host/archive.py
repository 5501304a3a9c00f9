"""Reading an archive strictly and writing it deterministically; both stream.

The standard ``tarfile`` filter is no protection on 3.11.7, 3.12.1 and 3.13.0, and its reader takes
a whole pax header into memory. Extraction here is a loop of its own: it knows regular files and
folders only, creates every file exclusively in a folder it made itself, and counts as it goes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
import zstandard

from bundle.core.manifest import fold, name_problem
from bundle.core.tarheader import (
    BLOCK,
    MAX_PAX_BYTES,
    Header,
    TarError,
    padding,
    parse_header,
    parse_pax,
)
from bundle.errors import BundleError, HostError
from bundle.host.zstd import read_frame

CHUNK = 1 << 18

#: Told the unpacked bytes as they are written.
Progress = Callable[[int], None]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Caps on what an archive may ask for.

    ``ratio`` (unpacked over packed bytes) counts only beyond ``ratio_floor`` unpacked bytes, since
    a small archive of repetitive text is harmless. ``window`` is what the zstd command itself
    accepts by default. ``tail`` is the padding after the last member.
    """

    members: int = 50_000
    total_bytes: int = 256 << 30
    ratio: int = 1000
    ratio_floor: int = 64 << 20
    window: int = 128 << 20
    tail: int = 1 << 16


class Extracted(msgspec.Struct, frozen=True, kw_only=True):
    """What extraction made: the one top ``folder``, its files and their bytes."""

    folder: Path
    files: int
    size: int


def extract(
    archive: Path,
    into: Path,
    *,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Extracted:
    """Unpack ``archive`` into ``into``, a folder that must exist and be empty.

    Raises:
        BundleError: anything the archive may not be or hold.
        HostError: the disk is full or cannot be written.
    """
    limits = limits or Limits()
    if any(into.iterdir()):
        raise BundleError("expected an empty folder to unpack into", where=str(into))
    frame = read_frame(archive)
    if frame.window > limits.window:
        raise _refused(archive, f"its zstd window is {frame.window} bytes, over {limits.window}")
    with archive.open("rb") as packed, disk_errors(into):
        decoder = zstandard.ZstdDecompressor(max_window_size=limits.window)
        with decoder.stream_reader(packed, closefd=False) as plain:
            source = _Source(plain, packed_bytes=frame.size, limits=limits)
            try:
                return _Extraction(source, into, limits, progress or _no_progress).run()
            except TarError as error:
                raise _refused(archive, str(error)) from error
            except zstandard.ZstdError as error:
                raise _refused(archive, f"its zstd data is damaged ({error})") from error


class _Source:
    """Counted bytes of the unpacked stream."""

    def __init__(self, plain: BinaryIO, *, packed_bytes: int, limits: Limits) -> None:
        self._plain = plain
        self._packed = packed_bytes
        self._limits = limits
        self.count = 0

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes, fewer only at the end."""
        data = self._plain.read(size)
        while 0 < len(data) < size and (more := self._plain.read(size - len(data))):
            data += more
        self.count += len(data)
        if self.count > self._limits.total_bytes:
            raise TarError(f"it unpacks to more than {self._limits.total_bytes} bytes")
        cap = max(self._limits.ratio_floor, self._packed * self._limits.ratio)
        if self.count > cap:
            raise TarError(f"it unpacks to more than {self._limits.ratio} times its size: a bomb?")
        return data

    def exactly(self, size: int) -> bytes:
        """``size`` bytes; an early end is an error."""
        data = self.read(size)
        if len(data) != size:
            raise TarError("the tar data ends early")
        return data

    def skip_padding(self, size: int) -> None:
        """The zeros after ``size`` bytes of data; anything else there is an error."""
        if self.exactly(len(padding(size))).strip(b"\0"):
            raise TarError("data hidden in the padding of a member")


class _Extraction:
    """One pass over the members."""

    def __init__(self, source: _Source, into: Path, limits: Limits, progress: Progress) -> None:
        self._source = source
        self._into = into
        self._limits = limits
        self._progress = progress
        self._top = ""
        self._seen: set[str] = set()
        self._folders: set[str] = set()
        self._files = 0
        self._bytes = 0

    def run(self) -> Extracted:
        for header in self._headers():
            self._accept(header)
            target = self._into / header.name
            if header.kind == "folder":
                target.mkdir(mode=0o700)
                self._folders.add(header.name)
            else:
                self._write(target, header.size)
        if not self._top:
            raise TarError("it holds nothing")
        return Extracted(folder=self._into / self._top, files=self._files, size=self._bytes)

    def _headers(self) -> Iterator[Header]:
        """Headers of files and folders, pax records already applied."""
        while True:
            block = self._source.exactly(BLOCK)
            if not block.strip(b"\0"):
                return self._end()
            header = parse_header(block)
            if header.kind == "pax":
                header = self._with_pax(header)
            yield msgspec.structs.replace(header, name=header.name.removesuffix("/"))

    def _with_pax(self, pax: Header) -> Header:
        if pax.size > MAX_PAX_BYTES:
            raise TarError(f"a pax header of {pax.size} bytes, over {MAX_PAX_BYTES}")
        records = parse_pax(self._source.exactly(pax.size))
        self._source.skip_padding(pax.size)
        header = parse_header(self._source.exactly(BLOCK))
        if header.kind == "pax":
            raise TarError("a pax header follows a pax header")
        size = int(records.get("size", header.size))
        if header.kind == "folder" and size:
            raise TarError("a folder carries data")
        return Header(kind=header.kind, name=records.get("path", header.name), size=size)

    def _end(self) -> None:
        """After the first block of zeros: one more, then nothing but a little padding."""
        tail = self._source.exactly(BLOCK) + self._source.read(self._limits.tail)
        if tail.strip(b"\0") or self._source.read(1):
            raise TarError("data after the end of the tar archive")

    def _accept(self, header: Header) -> None:
        name, shown = header.name, ascii(header.name)
        problem = name_problem(name)
        if problem:
            raise TarError(f"{shown}: {problem}")
        if fold(name) in self._seen:
            raise TarError(f"{shown}: a member of this name, but for case, came before")
        self._seen.add(fold(name))
        if len(self._seen) > self._limits.members:
            raise TarError(f"it holds more than {self._limits.members} members")
        parent, _, _ = name.rpartition("/")
        if not parent and (self._top or header.kind != "folder"):
            raise TarError(f"{shown}: expected one top folder and everything in it")
        if parent and parent not in self._folders:
            raise TarError(f"{shown}: comes before its folder")
        self._top = self._top or name

    def _write(self, target: Path, size: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(target, flags, 0o600), "wb", buffering=0) as out:
            left = size
            while left:
                data = self._source.exactly(min(left, CHUNK))
                out.write(data)
                left -= len(data)
                self._progress(len(data))
        self._source.skip_padding(size)
        self._files += 1
        self._bytes += size


@contextmanager
def disk_errors(where: Path) -> Iterator[None]:
    """Turn what the file system refuses into :class:`HostError` with what to do about it."""
    try:
        yield
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        raise HostError(
            "no space left on the disk" if full else f"cannot read or write: {error}",
            where=str(where),
            next_step="free space there or choose another folder"
            if full
            else "check that the folder exists and may be written",
        ) from error


def _no_progress(_count: int) -> None:
    """Nobody asked to be told."""


def _refused(archive: Path, message: str) -> BundleError:
    return BundleError(
        message, where=archive.name, next_step="do not use it; get it again from its maker"
    )
