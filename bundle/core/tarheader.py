"""The one shape of tar header that a bundle may hold, read and written strictly.

POSIX ustar blocks (IEEE 1003.1, pax format) of regular files and folders; a pax record may carry
only ``path`` and ``size``. Links, devices, sparse files, GNU long names and global headers have no
reader here, so none of their tricks can be played.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

BLOCK = 512
MAX_PAX_BYTES = 8192

_MAGIC = b"ustar\x0000"
_KINDS: dict[bytes, Literal["file", "folder", "pax"]] = {
    b"0": "file",
    b"\0": "file",
    b"5": "folder",
    b"x": "pax",
}
_KIND_NAMES = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a pipe",
    b"7": "a contiguous file",
    b"g": "a global header",
    b"L": "a GNU long name",
    b"K": "a GNU long link",
    b"S": "a sparse file",
}
_MAX_OCTAL_SIZE = 8**11 - 1


class TarError(ValueError):
    """A header is not of the one accepted shape; the text says how."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """One header block: ``size`` bytes of data follow it, padded to whole blocks."""

    kind: Literal["file", "folder", "pax"]
    name: str
    size: int


def parse_header(block: bytes) -> Header:
    """Read one 512-byte header.

    Raises:
        TarError: not ustar, wrong checksum, a kind that is refused, numbers that are not octal.
    """
    _check_sum(block)
    if block[257:265] != _MAGIC:
        raise TarError("expected a POSIX (ustar) header, found another tar format")
    flag = block[156:157]
    prefix, name = _text(block[345:500]), _text(block[:100])
    path = f"{prefix}/{name}" if prefix else name
    kind = _KINDS.get(flag)
    if kind is None:
        raise TarError(f"{path!a} is {_KIND_NAMES.get(flag, f'of unknown kind {flag!r}')}")
    if block[157:257].strip(b"\0"):
        raise TarError(f"{path!a} carries a link target")
    size = _octal(block[124:136])
    if kind == "folder" and size:
        raise TarError(f"the folder {path!a} carries data")
    return Header(kind=kind, name=path, size=size)


def parse_pax(data: bytes) -> dict[str, str]:
    """Read pax records ``LENGTH KEY=VALUE\\n``; only ``path`` and ``size`` are accepted.

    Raises:
        TarError: malformed, another key, a key twice, not UTF-8.
    """
    found: dict[str, str] = {}
    while data:
        digits, blank, _ = data.partition(b" ")
        length = int(digits) if digits.isdigit() and len(digits) < 6 and blank else 0
        record, data = data[:length], data[length:]
        if not length or len(record) != length or not record.endswith(b"\n"):
            raise TarError("a pax header is malformed")
        key, equals, value = record[len(digits) + 1 : -1].partition(b"=")
        name = key.decode("ascii", "replace")
        if name not in {"path", "size"} or not equals or name in found:
            raise TarError(f"a pax header holds {name!a}, which is refused")
        found[name] = _utf8(value)
    if not re.fullmatch(r"[0-9]{1,18}", found.get("size", "0")):
        raise TarError("a pax header holds a size that is not a number")
    return found


def render_header(*, name: str, size: int, folder: bool, mtime: int) -> bytes:
    """Header block or blocks of one member: owner 0, fixed mode, no names of people.

    Args:
        name: path below the archive's root, without a closing slash.
        size: bytes of data; 0 for a folder.
        folder: folder or regular file.
        mtime: seconds since 1970, the same for every member.
    """
    stored = f"{name}/" if folder else name
    records: dict[str, str] = {}
    if len(stored) > 100 or not stored.isascii():
        records["path"] = stored
    if size > _MAX_OCTAL_SIZE:
        records["size"] = str(size)
    pax = b"".join(_pax_record(key, value) for key, value in sorted(records.items()))
    short = stored.encode("ascii", "replace")[:100]
    mode = 0o755 if folder else 0o644
    kind = b"5" if folder else b"0"
    head = _block(short, 0 if "size" in records else size, kind=kind, mode=mode, mtime=mtime)
    if not pax:
        return head
    extra = _block(b"pax_header", len(pax), kind=b"x", mode=0o644, mtime=mtime)
    return extra + pax + padding(len(pax)) + head


def padding(size: int) -> bytes:
    """The zeros that fill ``size`` bytes up to whole blocks."""
    return b"\0" * (-size % BLOCK)


def _pax_record(key: str, value: str) -> bytes:
    body = f" {key}={value}\n".encode()
    length = len(body)
    # The number counts its own digits, so it may have to grow once.
    while length != len(body) + len(str(length)):
        length = len(body) + len(str(length))
    return str(length).encode() + body


def _block(name: bytes, size: int, *, kind: bytes, mode: int, mtime: int) -> bytes:
    fields = (
        name.ljust(100, b"\0"),
        b"%07o\0" % mode,
        b"%07o\0" % 0,
        b"%07o\0" % 0,
        b"%011o\0" % size,
        b"%011o\0" % mtime,
        b" " * 8,
        kind,
        bytes(100),
        _MAGIC,
        bytes(64),
        b"%07o\0" % 0,
        b"%07o\0" % 0,
    )
    block = b"".join(fields).ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def _check_sum(block: bytes) -> None:
    expected = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    if _octal(block[148:156]) != expected:
        raise TarError("a header's checksum is wrong: damaged archive")


def _octal(field: bytes) -> int:
    digits = field.strip(b"\0 ")
    if not digits or digits.strip(b"01234567"):
        raise TarError("a header holds a number that is not octal")
    return int(digits, 8)


def _text(field: bytes) -> str:
    text, _, rest = field.partition(b"\0")
    if rest.strip(b"\0"):
        raise TarError("a header holds bytes after the end of a name")
    return _utf8(text)


def _utf8(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TarError("a name is not UTF-8") from error
