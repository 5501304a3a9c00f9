"""Equality of computed documents: everything exactly, floats to the digits that all machines share.

The last digits of a sum or a matrix product depend on the processor's instructions, so a number
computed again elsewhere may differ there and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

RELATIVE = 1e-9
"""A thousandth of the smallest digit that any report prints, and a million roundings."""


def apart(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two decoded JSON documents differ, as dotted paths with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            yield from _member(one, other, key, path)
    elif _sequences(one, other) and len(one) == len(other):
        for index, (x, y) in enumerate(zip(one, other, strict=True)):
            yield from apart(x, y, f"{path}[{index}]")
    elif not equal(one, other):
        yield f"{path or 'the document'} is {_shown(one)}, computed again {_shown(other)}"


def _sequences(one: Any, other: Any) -> bool:
    return isinstance(one, list | tuple) and isinstance(other, list | tuple)


def _member(one: dict[str, Any], other: dict[str, Any], key: str, path: str) -> Iterator[str]:
    name = f"{path}.{key}" if path else key
    if key not in one or key not in other:
        yield f"{name} is {'missing' if key not in one else 'not computed'}"
    else:
        yield from apart(one[key], other[key], name)


def equal(one: Any, other: Any) -> bool:
    """Whether two leaves are equal; of two floats, whether they agree to :data:`RELATIVE`."""
    if type(one) is float and type(other) is float:
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=1e-300)
    return type(one) is type(other) and bool(one == other)


def tables_apart(one: str, other: str) -> Iterator[str]:
    """Where two CSV tables differ, cell by cell, numbers as :func:`equal` has it."""
    rows, again = one.splitlines(), other.splitlines()
    if len(rows) != len(again):
        yield f"has {len(rows)} lines, computed again {len(again)}"
        return
    for number, (row, fresh) in enumerate(zip(rows, again, strict=True), start=1):
        cells, computed = row.split(","), fresh.split(",")
        same = len(cells) == len(computed) and all(map(_same_cell, cells, computed))
        if not same:
            yield f"line {number} is {_shown(row)}, computed again {_shown(fresh)}"


def _same_cell(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return equal(float(one), float(other))
    except ValueError:
        return False


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
