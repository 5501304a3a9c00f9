"""Acceptance of a judged report as one small object, for JSON: None where nothing was drafted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from bundle.core.findings.subject import Rates, Subject

_NOTHING = Rates()


def acceptance_view(subjects: Sequence[Subject]) -> dict[str, Any]:
    """The figures of the one task there is, pooled over its loads, and of every task by name.

    Tasks are never pooled: with several of them the flat figures are None.
    """
    by_task: dict[str, list[Rates]] = {}
    for subject in subjects:
        if subject.acceptance is not None:
            by_task.setdefault(subject.task or "unspecified", []).append(subject.acceptance)
    tasks = {task: _view(_pooled(rates)) for task, rates in by_task.items()}
    flat = next(iter(tasks.values())) if len(tasks) == 1 else _view(_NOTHING)
    return {**flat, "by_task": tasks}


def _pooled(rates: Sequence[Rates]) -> Rates:
    """Sums first, ratios last; ratios without counts cannot be pooled."""
    if len(rates) == 1:
        return rates[0]
    accepted, drafted, rounds = (_sum(rates, n) for n in ("accepted", "drafted", "rounds"))
    return replace(
        _NOTHING,
        accepted=accepted,
        drafted=drafted,
        rounds=rounds,
        rate=accepted / drafted if accepted is not None and drafted else None,
        length=1 + accepted / rounds if accepted is not None and rounds else None,
    )


def _sum(rates: Sequence[Rates], name: str) -> int | None:
    values = [getattr(r, name) for r in rates]
    return None if None in values else sum(values)


def _view(r: Rates) -> dict[str, Any]:
    return {
        "accepted": r.accepted,
        "drafted": r.drafted,
        "rounds": r.rounds,
        "acceptance_rate": r.rate,
        "mean_acceptance_length": r.length,
        "per_position": None if r.per_position is None else list(r.per_position),
        "histogram": None if r.histogram is None else list(r.histogram),
        "coverage": r.coverage,
        "effective_tokens_per_round": r.effective,
        "estimated": list(r.estimated),
    }
