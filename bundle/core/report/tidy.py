"""The cells as one tidy table: a row for every planned cell of every server start.

What did not run or failed has its row too, without numbers and with the cause, so that a mean over
the table never hides a start. Units stand in the names of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from bundle.core.design import Cell, cells, expanded_groups, planned_runs
from bundle.core.effects import METRICS, UNITS
from bundle.core.recipe import Group, Recipe
from bundle.core.results import FailedRun, Results

Value = str | int | float | None
Place = tuple[str, str, str]
"""Start, task, load."""


class TidyColumn(Struct, frozen=True, kw_only=True):
    """One column: its name, its type, and what stands in it."""

    name: str
    kind: Literal["int", "float", "text"]
    about: str


class Tidy(Struct, frozen=True, kw_only=True):
    """The table; every row has a value or None for every column."""

    columns: tuple[TidyColumn, ...]
    rows: tuple[tuple[Value, ...], ...]


def _column(name: str, kind: Literal["int", "float", "text"], about: str) -> TidyColumn:
    return TidyColumn(name=name, kind=kind, about=about)


FIXED = (
    _column("block", "int", "the block, counted from 1"),
    _column("position", "int", "the place in the block, counted from 0, the first baseline"),
    _column("group", "text", "the group, as the recipe names it"),
    _column("role", "text", "baseline, matched-baseline or method"),
    _column("method", "text", "the speculative method; empty without speculation"),
    _column("num_speculative_tokens", "int", "k, the draft tokens asked for in a round"),
    _column("start", "text", "the start's folder below runs/"),
    _column("task", "text", "the workload"),
    _column("load", "text", "the load's label: c8 is 8 clients, r2.5 is 2.5 requests per second"),
    _column("concurrency", "int", "clients of a closed loop; empty for a request rate"),
    _column("request_rate_per_s", "float", "requests per second; empty for a closed loop"),
    _column("requests", "int", "requests planned for the cell"),
    _column("status", "text", "ok, failed, or no numbers"),
    _column("cause", "text", "why a failed cell failed: the finding's name"),
)
_ABOUT = {
    "tpot": "mean time per output token after the first",
    "output_throughput": "output tokens per second of the whole cell",
    "e2el": "mean end-to-end latency of a request",
    "ttft": "mean time to first token",
    "tpot_p": "percentile of the time per output token",
    "ttft_p": "percentile of the time to first token",
    "itl_p": "percentile of the pause between chunks, which is no speed under speculation",
}
_POWER = (
    ("power", "W", "mean power of the GPU during the cell"),
    ("energy", "J", "energy of the GPU during the cell"),
    ("energy per output token", "J/token", "energy over output tokens"),
)
_UNITS = {"tok/s": "tok_per_s", "J/token": "j"}


def _measured(metric: str, unit: str) -> str:
    """A metric's column: ``tpot_ms``, ``output_throughput_tok_per_s``."""
    return f"{metric.replace(' ', '_')}_{_UNITS.get(unit, unit.lower())}"


def _known() -> Iterator[TidyColumn]:
    for metric in METRICS:
        kind = f"{metric.partition('_')[2]}_p" if metric[0] == "p" else metric
        yield _column(_measured(metric, UNITS.get(metric, "ms")), "float", _ABOUT[kind])
    for metric, unit, about in _POWER:
        yield _column(_measured(metric, unit), "float", about)


MEASURED = tuple(_known())


def tidy(results: Results, recipe: Recipe) -> Tidy:
    """Every planned cell of every measured start, in the order of runs."""
    values: dict[Place, dict[str, float]] = {}
    for stat in results.cells:
        name = _measured(stat.metric, stat.unit)
        for start, value in zip(stat.starts, stat.values, strict=True):
            values.setdefault((start, stat.task, stat.load), {})[name] = value
    known = {column.name for column in MEASURED}
    further = dict.fromkeys(name for row in values.values() for name in row if name not in known)
    more = tuple(_column(name, "float", "measured") for name in further)
    plan = _Plan(recipe, results.failed)
    places = dict.fromkeys([*plan.places(), *values])
    return Tidy(
        columns=(*FIXED, *MEASURED, *more),
        rows=tuple(
            (
                *plan.about(place, measured=place in values),
                *(values.get(place, {}).get(c.name) for c in (*MEASURED, *more)),
            )
            for place in places
        ),
    )


class _Plan:
    """What was planned, by group and cell, and what of it failed."""

    def __init__(self, recipe: Recipe, failed: tuple[FailedRun, ...]) -> None:
        self._recipe = recipe
        self._groups: dict[str, Group] = {g.name: g for g in expanded_groups(recipe)}
        self._cells: dict[tuple[str, str, str], Cell] = {
            (g.name, c.task, c.load): c for g in self._groups.values() for c in cells(recipe, g)
        }
        self._causes = {(row.folder, row.cell): row.cause for row in failed}

    def places(self) -> Iterator[Place]:
        """Every cell of every planned measured start, in order."""
        if any(g.role == "baseline" for g in self._groups.values()):
            for run in planned_runs(self._recipe):
                for group, task, load in self._cells if run.block else ():
                    if group == run.group:
                        yield run.folder, task, load

    def about(self, place: Place, *, measured: bool) -> tuple[Value, ...]:
        """The fixed columns of one cell."""
        start, task, load = place
        block, position, name = _parts(start)
        group = self._groups.get(name)
        spec = group.speculative if group else None
        cell = self._cells.get((name, task, load))
        own = self._causes.get((start, f"{task}-{load}"))
        cause = own or (None if measured else self._causes.get((start, None)))
        return (
            block,
            position,
            name,
            group.role if group else None,
            spec.method if spec else None,
            spec.num_speculative_tokens if spec else None,
            start,
            task,
            load,
            cell.concurrency if cell else None,
            cell.request_rate if cell else None,
            cell.requests if cell else None,
            "failed" if cause else "ok" if measured else "no numbers",
            cause,
        )


def _parts(start: str) -> tuple[int | None, int | None, str]:
    """``2/5-ngram`` is block 2, position 5, group ngram."""
    block, _, rest = start.partition("/")
    position, _, group = rest.partition("-")
    return (
        int(block) if block.isdecimal() else None,
        int(position) if position.isdecimal() else None,
        group or start,
    )
