"""Pooling of acceptance counters: sums first, ratios last (MEASUREMENT: definitions).

C are accepted draft tokens without the bonus token, D proposed draft tokens, R verification
rounds that had a draft. Addition knows no order and no grouping, so how requests are split or
sorted never changes a ratio; an average of per-request percentages would.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bundle.core.evidence import CellEvidence, Counters, Start
from bundle.core.records import Reply, SpecStats
from bundle.core.results import Acceptance

QUALITY = "quality"
"""The scope of sums over the requests of the quality pass."""


class Crosscheck(Struct, frozen=True, kw_only=True):
    """Two counts of one thing held against each other. ``problems`` is empty where they agree."""

    compared: tuple[str, ...]
    problems: tuple[str, ...]


def histogram_to_positions(histogram: Sequence[int]) -> tuple[int, ...]:
    """Rounds that accepted at least i + 1 tokens, from rounds that accepted exactly j."""
    return tuple(sum(histogram[i + 1 :]) for i in range(len(histogram) - 1))


def add_columns(rows: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Element-wise sum of rows that may differ in length; a short row counts as zeros."""
    total: list[int] = []
    for row in rows:
        total += [0] * (len(row) - len(total))
        for i, value in enumerate(row):
            total[i] += value
    return tuple(total)


def pool_requests(
    stats: Iterable[SpecStats], *, group: str, task: str, k: int, runner: str | None
) -> Acceptance:
    """Sum the per-request figures of one group and task.

    Decode rounds are not part of a request's figures, so coverage and effective tokens stay None.
    """
    stats = tuple(stats)
    histogram = add_columns(s.histogram for s in stats)
    return Acceptance(
        group=group,
        task=task,
        scope=QUALITY,
        k=k,
        accepted=sum(s.accepted for s in stats),
        drafted=sum(s.drafted for s in stats),
        rounds=sum(s.rounds for s in stats),
        requests=len(stats),
        histogram=histogram,
        per_position_counts=histogram_to_positions(histogram),
        runner=runner,
    )


def of_cell(cell: CellEvidence, *, group: str, k: int, runner: str | None) -> Acceptance | None:
    """One cell's ``/metrics`` increase as acceptance; None where there are no such counters."""
    counters = cell.counters
    if counters is None or counters.rounds is None:
        return None
    return Acceptance(
        group=group,
        task=cell.task,
        scope=cell.load,
        k=k,
        accepted=counters.accepted or 0,
        drafted=counters.drafted or 0,
        rounds=counters.rounds,
        requests=counters.requests_finished,
        per_position_counts=counters.per_position,
        decode_rounds=counters.decode_rounds,
        output_tokens=counters.generation_tokens,
        runner=runner,
    )


def pool(parts: Iterable[Acceptance]) -> tuple[Acceptance, ...]:
    """Add what belongs together: same group, task, scope, k and model runner.

    Runners are never pooled over: V2 counts a draft on nearly every decode round of ngram, V1
    only on a match, so that their rates and lengths mean different things.
    """
    pooled: dict[tuple[str, str, str, int, str], Acceptance] = {}
    for part in parts:
        key = (part.group, part.task, part.scope, part.k, part.runner or "")
        pooled[key] = _add(pooled[key], part) if key in pooled else part
    return tuple(pooled[key] for key in sorted(pooled))


def _add(a: Acceptance, b: Acceptance) -> Acceptance:
    return replace(
        a,
        accepted=a.accepted + b.accepted,
        drafted=a.drafted + b.drafted,
        rounds=a.rounds + b.rounds,
        requests=a.requests + b.requests,
        histogram=_both_columns(a.histogram, b.histogram),
        per_position_counts=_both_columns(a.per_position_counts, b.per_position_counts),
        decode_rounds=_both(a.decode_rounds, b.decode_rounds),
        output_tokens=_both(a.output_tokens, b.output_tokens),
    )


def _both(a: int | None, b: int | None) -> int | None:
    """The sum, or None when one part was not measured: half a sum is a wrong denominator."""
    return None if a is None or b is None else a + b


def _both_columns(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if a is None or b is None else add_columns((a, b))


def acceptance_of_starts(starts: Iterable[Start], *, k: int) -> tuple[Acceptance, ...]:
    """Everything one group accepted: the quality pass and every cell, pooled over its starts."""
    parts: list[Acceptance] = []
    for start in starts:
        runner = start.facts.runner if start.facts else None
        group = start.run.group
        for task in sorted({r.task for r in start.replies}):
            stats = [r.speculative for r in start.replies if r.task == task and r.speculative]
            if stats:
                parts.append(pool_requests(stats, group=group, task=task, k=k, runner=runner))
        found = (of_cell(cell, group=group, k=k, runner=runner) for cell in start.cells)
        parts += [one for one in found if one is not None]
    return pool(parts)


def trimmed(counters: Counters) -> int | None:
    """Tokens that were accepted and never delivered: T = N + decode rounds + C - output tokens.

    The engine counts acceptance before it trims a reply at its end, so 0 <= T <= N k.
    """
    if counters.accepted is None:
        return None
    return (
        counters.requests_finished
        + counters.decode_rounds
        + counters.accepted
        - counters.generation_tokens
    )


def check_trimming(counters: Counters, *, k: int) -> Crosscheck:
    """Hold accepted tokens against delivered ones, up to the documented trimming."""
    over = trimmed(counters)
    if over is None:
        return Crosscheck(compared=(), problems=())
    most = counters.requests_finished * k
    said = f"{over} accepted tokens not delivered, possible 0 to {most}"
    return Crosscheck(compared=(said,), problems=() if 0 <= over <= most else (said,))


def check_requests(replies: Iterable[Reply], counters: Counters | None) -> Crosscheck:
    """Hold per-request sums against the ``/metrics`` increase over the same requests.

    Both count the same rounds, so they must be equal where every request has its figures.
    """
    replies = tuple(replies)
    stats = [r.speculative for r in replies if r.speculative is not None]
    if counters is None or counters.rounds is None or not stats or len(stats) < len(replies):
        return Crosscheck(compared=(), problems=())
    pairs = (
        ("accepted", sum(s.accepted for s in stats), counters.accepted),
        ("proposed", sum(s.drafted for s in stats), counters.drafted),
        ("rounds", sum(s.rounds for s in stats), counters.rounds),
    )
    said = [(a, b, f"{name}: {a} by request, {b} in /metrics") for name, a, b in pairs]
    return Crosscheck(
        compared=tuple(text for _, _, text in said),
        problems=tuple(text for a, b, text in said if a != b),
    )
