"""Names and manifest lines of a bag, as rules over strings.

The four tools that must accept a bundle (coreutils, bagit, an RO-Crate reader, a DSSE verifier)
read awkward names differently: coreutils escapes a backslash, bagit strips blanks and decodes
``%0A`` but not ``%25``, some file systems fold case or change the Unicode normal form. A name on
which they could disagree is refused, when packing as when verifying.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

import msgspec

MAX_COMPONENT_BYTES = 255
MAX_PATH_BYTES = 512

#: Hexadecimal digits of each digest that a manifest of a bag may use.
DIGEST_DIGITS: Mapping[str, int] = {
    "md5": 32,
    "sha1": 40,
    "sha224": 56,
    "sha256": 64,
    "sha384": 96,
    "sha512": 128,
}

_LINE = re.compile(r"([0-9a-f]+)[ \t]+(\S.*)")


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One manifest as read: ``entries`` maps path to lower-case hex digest.

    ``problems`` says in words, with line numbers, what was not usable; a manifest with problems
    is never to be trusted in part.
    """

    entries: dict[str, str]
    problems: tuple[str, ...]


def name_problem(path: str) -> str | None:
    """Why a relative path with ``/`` between its parts is not acceptable, or None."""
    if not path:
        return "empty name"
    if path.startswith("/"):
        return "absolute path"
    if not _is_utf8(path):
        return "not UTF-8"
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"longer than {MAX_PATH_BYTES} bytes"
    if unicodedata.normalize("NFC", path) != path:
        return "not in Unicode normal form C"
    for part in path.split("/"):
        problem = _part_problem(part)
        if problem:
            return problem
    return None


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _part_problem(part: str) -> str | None:
    if part == "..":
        return "a part is '..', which leads out of the folder"
    if part in {"", "."}:
        return "an empty or '.' part"
    if len(part.encode()) > MAX_COMPONENT_BYTES:
        return f"a part longer than {MAX_COMPONENT_BYTES} bytes"
    if part != part.strip():
        return "a part begins or ends with a blank"
    if part.startswith(("~", "*")):
        return "a part begins with '~' or '*', which tools expand or strip"
    for char in part:
        # C: control, format, unassigned; Zl and Zp: line and paragraph separators.
        if char in "\\%" or unicodedata.category(char)[0] == "C" or char in "\u2028\u2029":
            return f"holds {char!a}, which tools read differently"
    return None


def fold(path: str) -> str:
    """The key under which two names are the same on a file system that ignores case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def clash_problems(files: Iterable[str]) -> tuple[str, ...]:
    """Names that would be one and the same, or file and folder at once, on another machine.

    Args:
        files: relative file paths; the folders follow from them.
    """
    seen: dict[str, tuple[str, bool]] = {}
    problems: list[str] = []
    for path in sorted(files):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            name = "/".join(parts[:depth])
            is_file = depth == len(parts)
            other, other_is_file = seen.setdefault(fold(name), (name, is_file))
            if other != name:
                problems.append(f"{name}: differs from {other} only in case")
            elif is_file != other_is_file:
                problems.append(f"{name}: is both a file and a folder")
    return tuple(dict.fromkeys(problems))


def parse_manifest(text: str, *, algorithm: str) -> Manifest:
    """Read a manifest: one ``digest  path`` a line, nothing else (RFC 8493, section 2.1.3).

    Stricter than the RFC where tools differ: no comments, no blank lines, lower-case digests of
    the right length, a last line that ends, no path twice.
    """
    digits = DIGEST_DIGITS[algorithm]
    entries: dict[str, str] = {}
    problems: list[str] = []
    if text and not text.endswith("\n"):
        problems.append("the last line does not end: cut short?")
    for number, line in enumerate(text.split("\n")[: text.count("\n")], start=1):
        match = _LINE.fullmatch(line)
        if match is None or len(match[1]) != digits:
            problems.append(f"line {number}: expected {digits} hexadecimal digits and a path")
            continue
        digest, path = match.groups()
        problem = name_problem(path)
        if problem:
            problems.append(f"line {number}: {path!a}: {problem}")
        elif path in entries:
            problems.append(f"line {number}: {path} is listed twice")
        else:
            entries[path] = digest
    return Manifest(entries=entries, problems=tuple(problems))


def render_manifest(entries: Mapping[str, str]) -> str:
    """The manifest as ``sha256sum`` writes it, sorted by path: two blanks, one line a file."""
    return "".join(f"{entries[path]}  {path}\n" for path in sorted(entries))
