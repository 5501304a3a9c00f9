"""The frame of a zstd file, walked without unpacking it.

A decoder stops quietly at the end of a cut-off file, and after a first frame others may follow
that one tool reads and another does not. Walking the block headers (RFC 8878, section 3.1.1) costs
almost nothing and settles both, and shows the window's size before any memory is given to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import msgspec
import zstandard

from bundle.errors import BundleError

MAGIC = b"\x28\xb5\x2f\xfd"
_HEADER_MAX = 18
_CHECKSUM_BYTES = 4
_RLE = 1
_RESERVED = 3


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The one frame of a file: ``window`` bytes the decoder must keep, ``size`` bytes packed."""

    window: int
    size: int


def read_frame(path: Path) -> Frame:
    """Walk the one frame that ``path`` must consist of.

    Raises:
        BundleError: not readable, not zstd, cut off, damaged block headers, a dictionary, or
            another frame or other bytes after it.
    """
    try:
        return _read(path)
    except OSError as error:
        raise BundleError(
            f"expected an archive that can be read, found: {error.strerror}",
            where=str(path),
            next_step="check the path and its permissions",
        ) from error


def _read(path: Path) -> Frame:
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(_HEADER_MAX)
        if not head.startswith(MAGIC):
            raise _bad(path, "expected a zstd archive, found something else")
        try:
            params = zstandard.get_frame_parameters(head)
            stream.seek(zstandard.frame_header_size(head))
        except zstandard.ZstdError as error:
            raise _bad(path, f"the zstd header is damaged ({error})") from error
        if params.dict_id:
            raise _bad(path, "expected no zstd dictionary, found one is needed")
        end = _walk_blocks(stream, path)
    end += _CHECKSUM_BYTES if params.has_checksum else 0
    if end > size:
        raise _bad(path, "the archive is cut off: its zstd frame does not end")
    if end < size:
        raise _bad(path, f"{size - end} bytes follow the end of the zstd frame")
    return Frame(window=params.window_size, size=size)


def _walk_blocks(stream: BinaryIO, path: Path) -> int:
    """Position after the last block."""
    last = False
    while not last:
        header = stream.read(3)
        if len(header) < 3:
            raise _bad(path, "the archive is cut off inside its zstd frame")
        value = int.from_bytes(header, "little")
        last, kind, length = bool(value & 1), value >> 1 & 3, value >> 3
        if kind == _RESERVED:
            raise _bad(path, "the zstd frame holds a block of a reserved kind")
        stream.seek(1 if kind == _RLE else length, 1)
    return stream.tell()


def _bad(path: Path, message: str) -> BundleError:
    return BundleError(message, where=path.name, next_step="get the archive again from its maker")
