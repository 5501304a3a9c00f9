"""Strict JSON Lines: one record a line, and the number of the line that is not one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NoReturn, TypeVar

import msgspec

from bundle.errors import InputError

Row = TypeVar("Row", bound=msgspec.Struct)


def to_jsonl(rows: Iterable[msgspec.Struct]) -> bytes:
    """UTF-8, one object a line with a space after ``:`` and ``,``, every line ended by ``\\n``.

    These are the bytes of ``json.dumps(row, ensure_ascii=False)``, so that files made by a short
    script of one's own can be equal to the byte.
    """
    lines = (json.dumps(msgspec.to_builtins(row), ensure_ascii=False) + "\n" for row in rows)
    return "".join(lines).encode()


def decode_text(data: bytes, where: str) -> str:
    """The bytes as UTF-8 text.

    Raises:
        InputError: not UTF-8; names the line of the first bad byte.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"expected UTF-8 text, found the byte 0x{data[error.start]:02x}"
        raise InputError(found, where=_place(where, line), next_step="save as UTF-8") from None


def parse_rows(text: str, where: str, row_type: type[Row]) -> tuple[Row, ...]:
    """Every line as one ``row_type``; only the end of the last line may be missing.

    Lines end at ``\\n`` alone: the other line separators of Unicode may stand inside a JSON string.

    Raises:
        InputError: no rows; or a line that is empty, not JSON, or not such a record (its number).
    """
    lines = text.removesuffix("\n").split("\n")
    if lines == [""]:
        raise InputError(
            f"expected at least one row of {_fields(row_type)}, found an empty file", where=where
        )
    return tuple(
        _parse_line(line, _place(where, number), row_type) for number, line in enumerate(lines, 1)
    )


def load_json(text: str) -> object:
    """One JSON value: no NaN, no key twice in an object, no half of a surrogate pair.

    Raises:
        ValueError: the text is not such a value, and why.
    """
    try:
        value: object = json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_no_constant)
        # An escape such as "\\ud800" is well-formed, yet its text cannot be sent to a server.
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at column {error.colno}") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair, which no UTF-8 text can hold") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _parse_line(line: str, where: str, row_type: type[Row]) -> Row:
    fields = _fields(row_type)
    if not line.strip():
        raise InputError(
            f"expected a row of {fields}, found an empty line",
            where=where,
            next_step="delete the line",
        )
    try:
        return msgspec.convert(load_json(line), row_type, strict=True)
    except msgspec.ValidationError as error:
        found = f"expected a row of {fields}, found another shape: {error}"
    except ValueError as error:
        found = f"expected one JSON object a line, found something else: {error}"
    raise InputError(found, where=where, next_step="correct this line")


def _fields(row_type: type[msgspec.Struct]) -> str:
    return ", ".join(f"`{name}`" for name in row_type.__struct_encode_fields__)


def _place(where: str, line: int) -> str:
    return f"{where}, line {line}"


def _no_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # Readers disagree on which of two equal keys counts, so such a row has no single meaning.
    row = dict(pairs)
    if len(row) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key `{twice}` stands twice in one object")
    return row


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
