"""The records that a report is made of: tables, charts, questions. All text, nothing computed."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

NOT_RECORDED = "not recorded"
LONGEST_WORD = 24
"""Letters of a word that is still kept whole."""
Tone = Literal["plain", "good", "bad", "unsure", "void", "muted"]


class Part(Struct, frozen=True, kw_only=True):
    """Base of every part of a report."""


class Cell(Part, frozen=True, kw_only=True):
    """One table cell: a main line, a smaller second one, and how it is meant."""

    text: str
    sub: str = ""
    tone: Tone = "plain"
    code: bool = False
    badge: bool = False

    @property
    def breaks(self) -> bool:
        """Whether a word is so long that it must be broken, unlike the words of a language."""
        words = [*self.text.split(), *self.sub.split()]
        return any(len(word) > LONGEST_WORD for word in words)


class Column(Part, frozen=True, kw_only=True):
    """One table column."""

    label: str
    numeric: bool = False


class Table(Part, frozen=True, kw_only=True):
    """A table; the first cell of a row is its header. ``cards`` stacks rows on narrow screens.

    ``short`` are the indices of the rows that paper shows where the whole table is too long for
    it, and ``short_words`` says which they are; ``paper`` are tables that say the same in less room
    instead. With neither, every row is printed.
    """

    id: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    cards: bool = False
    short: tuple[int, ...] = ()
    short_words: str = "those at the target load"
    paper: tuple[Table, ...] = ()

    @property
    def sortable(self) -> bool:
        """Whether another order of the rows could tell a reader something."""
        return len(self.columns) > 2 and len(self.rows) > 2


class Point(Part, frozen=True, kw_only=True):
    """One mark of a chart at the category ``at`` (its index), with an interval where it has one."""

    at: int
    value: float
    lower: float | None = None
    upper: float | None = None


class Series(Part, frozen=True, kw_only=True):
    """One group's marks. ``style`` picks colour and marker, the same in every chart."""

    name: str
    style: int
    points: tuple[Point, ...]


class Panel(Part, frozen=True, kw_only=True):
    """One set of axes. ``band`` is the half width of the noise floor per category."""

    title: str
    y_label: str
    x_label: str
    categories: tuple[str, ...]
    series: tuple[Series, ...]
    band: tuple[float | None, ...] = ()
    lines: tuple[tuple[float, str], ...] = ()
    percent: bool = True


class Chart(Part, frozen=True, kw_only=True):
    """One figure of one or more panels with its text alternative.

    The numbers stand in the table ``table``.
    """

    id: str
    title: str
    alt: str
    panels: tuple[Panel, ...]
    kind: Literal["lines", "pairs"] = "lines"
    table: str
    note: str = ""


class Question(Part, frozen=True, kw_only=True):
    """A reviewer's question, answered in one line, with the place that says more."""

    question: str
    answer: str
    href: str


class Block(Part, frozen=True, kw_only=True):
    """A stretch of a section under its own heading: sentences, charts, tables, commands."""

    id: str
    title: str
    paragraphs: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    commands: tuple[str, ...] = ()


class Section(Part, frozen=True, kw_only=True):
    """One of the ten sections; number 0 is a further one that only some runs have."""

    id: str
    number: int
    title: str
    lead: tuple[str, ...]
    blocks: tuple[Block, ...]


def columns(*labels: str) -> tuple[Column, ...]:
    """Columns out of labels; one that starts with ``#`` is numeric."""
    return tuple(Column(label=x.removeprefix("#"), numeric=x.startswith("#")) for x in labels)


def cells(*texts: str | Cell) -> tuple[Cell, ...]:
    """Cells out of texts."""
    return tuple(x if isinstance(x, Cell) else Cell(text=x) for x in texts)


def pairs(anchor: str, caption: str, rows: list[tuple[str, str]]) -> Table:
    """A table of labels and values; an empty value was not recorded."""
    return Table(
        id=anchor,
        caption=caption,
        columns=columns("What", "Value"),
        rows=tuple(cells(label, value or NOT_RECORDED) for label, value in rows),
    )
