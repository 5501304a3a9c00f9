"""Column widths from content, so that a fixed table layout fits a page and costs no time.

Letting the PDF's layout engine measure every cell takes most of its time; these widths are the
same on every machine.
"""

from __future__ import annotations

import math

import msgspec

from bundle.core.report.parts import LONGEST_WORD, Cell, Column, Table

LONGEST_ON_PAPER = 24
"""Rows; of a longer table a short form is printed, if it has one."""

_SMALL = 0.82


def widths(table: Table) -> tuple[float, ...]:
    """The share of the width that each column gets, in per cent with one decimal."""
    wants = [
        _want(column, [row[i] for row in table.rows]) for i, column in enumerate(table.columns)
    ]
    total = sum(wants)
    return tuple(round(100 * want / total, 1) for want in wants)


def for_paper(table: Table) -> tuple[Table, ...]:
    """The table as it is printed: whole, or what stands for it with a word on where the rest is."""
    if len(table.rows) <= LONGEST_ON_PAPER:
        return (table,)
    if table.paper:
        return table.paper
    if not table.short:
        return (table,)
    said = (
        f"{len(table.short)} of {len(table.rows)} rows, {table.short_words}; all of them are "
        "in the HTML report and in the attached data."
    )
    return (
        msgspec.structs.replace(
            table,
            rows=tuple(table.rows[i] for i in table.short),
            note=f"{table.note} {said}".strip(),
        ),
    )


def _want(column: Column, cells: list[Cell]) -> float:
    """Room for the longest word; more where much text has to be wrapped."""
    words = [_word(column.label) * _SMALL, 5.0]
    words += [_main(cell, column) for cell in cells]
    words += [_word(cell.sub) * _SMALL for cell in cells]
    amount = max((len(cell.text) + _SMALL * len(cell.sub) for cell in cells), default=0.0)
    return max(min(max(words), LONGEST_WORD), 2.6 * math.sqrt(min(amount, 400))) + 1.5


def _main(cell: Cell, column: Column) -> float:
    if cell.badge:
        return len(cell.text) + 1.0
    return float(len(cell.text)) if column.numeric else float(_word(cell.text))


def _word(text: str) -> int:
    return max((len(word) for word in text.split(" ")), default=0)
