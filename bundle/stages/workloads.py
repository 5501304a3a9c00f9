"""Makes the shipped prompts and checks that a folder still holds exactly them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from bundle.core.jsonl import decode_text, to_jsonl
from bundle.core.quality_items import parse_acceptance, parse_quality
from bundle.core.quality_set import acceptance_rows, quality_rows
from bundle.core.workloads import chat_rows, code_rows, parse_workload
from bundle.errors import HostError, InputError

SUMS = "SHA256SUMS"
MAKERS: dict[str, Callable[[], Iterable[msgspec.Struct]]] = {
    "acceptance.jsonl": acceptance_rows,
    "chat.jsonl": chat_rows,
    "code.jsonl": code_rows,
    "quality.jsonl": quality_rows,
}
PARSERS: dict[str, Callable[[str, str], tuple[msgspec.Struct, ...]]] = {
    "acceptance.jsonl": parse_acceptance,
    "chat.jsonl": parse_workload,
    "code.jsonl": parse_workload,
    "quality.jsonl": parse_quality,
}
REMAKE = "make the files again with `specbundle workloads --make`, or point the recipe at your own"


class PromptFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of prompts: its name in the folder, its sha256, how many rows it has."""

    name: str
    sha256: str
    rows: int


def make(folder: Path) -> tuple[PromptFile, ...]:
    """Writes every file of prompts and SHA256SUMS; other files in the folder stay as they are.

    Each file appears under its name only when it is complete.

    Raises:
        HostError: the folder cannot be made or written to.
    """
    contents = {name: to_jsonl(rows()) for name, rows in MAKERS.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in contents.items():
            _replace(folder / name, data)
        _replace(folder / SUMS, _sums(contents).encode())
    except OSError as error:
        raise HostError(
            f"expected to write the prompts, found: {error.strerror}",
            where=str(folder),
            next_step="choose a folder that you may write to",
        ) from error
    return check(folder)


def check(folder: Path) -> tuple[PromptFile, ...]:
    """Holds every file against what the generators make, and SHA256SUMS against both.

    Raises:
        InputError: a file is missing, unreadable or another one; names both hashes.
    """
    contents = {name: to_jsonl(rows()) for name, rows in MAKERS.items()}
    files = tuple(_check_file(folder / name, data) for name, data in contents.items())
    expected, found = _sums(contents), _read(folder / SUMS).decode(errors="replace")
    if found != expected:
        raise InputError(
            f"expected the sums of the prompts:\n{expected}found:\n{found}",
            where=str(folder / SUMS),
            next_step=REMAKE,
        )
    return files


def _check_file(path: Path, made: bytes) -> PromptFile:
    data = _read(path)
    if data != made:
        raise InputError(
            f"expected sha256 {_sha256(made)}, found {_sha256(data)}",
            where=str(path),
            next_step=REMAKE,
        )
    rows = PARSERS[path.name](decode_text(data, str(path)), str(path))
    return PromptFile(name=path.name, sha256=_sha256(data), rows=len(rows))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"expected a file of prompts, found: {error.strerror}",
            where=str(path),
            next_step=REMAKE,
        ) from error


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _sums(contents: dict[str, bytes]) -> str:
    """The text that ``sha256sum`` writes and ``sha256sum -c`` reads."""
    return "".join(f"{_sha256(contents[name])}  {name}\n" for name in sorted(contents))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
