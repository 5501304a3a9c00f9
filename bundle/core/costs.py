"""Capacity of every group, and every planned run or cell that gave no numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from bundle.core.design import baseline, expanded_groups
from bundle.core.evidence import Evidence, Start
from bundle.core.limits import kv_tokens
from bundle.core.records import ServerFacts
from bundle.core.results import CapacityRow, FailedRun

T = TypeVar("T")


def capacity_rows(evidence: Evidence) -> tuple[CapacityRow, ...]:
    """Memory, engine path and preemptions of every group."""
    base = baseline(evidence.recipe).name
    before = kv_tokens(evidence, base)
    return tuple(
        _capacity(evidence, group.name, before if group.name != base else ())
        for group in expanded_groups(evidence.recipe)
    )


def _capacity(evidence: Evidence, group: str, before: tuple[int, ...]) -> CapacityRow:
    starts = evidence.of(group)
    after = kv_tokens(evidence, group)
    loss = None
    if before and after:
        loss = 1 - (sum(after) / len(after)) / (sum(before) / len(before))
    counted = [c.counters.preemptions for s in starts for c in s.cells if c.counters]
    return CapacityRow(
        group=group,
        kv_tokens=after,
        kv_loss=loss,
        weights_gib=_fact(starts, lambda f: f.weights_gib),
        graph_gib=_fact(starts, lambda f: f.graph_gib),
        runner=_fact(starts, lambda f: f.runner),
        async_scheduling=_fact(starts, lambda f: f.async_scheduling),
        preemptions=sum(counted) if counted else None,
    )


def _fact(starts: Sequence[Start], of: Callable[[ServerFacts], T | None]) -> T | None:
    """The first start's word on a fact."""
    found = (of(s.facts) for s in starts if s.facts is not None)
    return next((value for value in found if value is not None), None)


def failed_runs(evidence: Evidence) -> tuple[FailedRun, ...]:
    """Failed starts and failed cells, primers included, in the order of runs."""
    return tuple(row for start in evidence.starts for row in _failed(start))


def _failed(start: Start) -> Iterator[FailedRun]:
    cause = start.run.cause
    if cause is not None:
        yield FailedRun(
            folder=start.folder,
            group=start.run.group,
            cell=None,
            cause=cause.id,
            text=cause.text,
            line=cause.line,
        )
    for cell in start.cells:
        if cell.failed is not None:
            yield FailedRun(
                folder=start.folder,
                group=start.run.group,
                cell=f"{cell.task}-{cell.load}",
                cause="failed-requests",
                text=cell.failed,
                line=None,
            )
