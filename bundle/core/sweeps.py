"""Advice out of sweeps: the best k by load, a schedule by batch size, the ngram window.

Only one variable moves inside a sweep. What a sweep measured is advice from measurement; where
none ran, :mod:`bundle.core.advice` names the run to make next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from bundle.core.design import expanded_groups
from bundle.core.effects import CellFit, Key
from bundle.core.evidence import Evidence
from bundle.core.findings.rule import percent
from bundle.core.recipe import Group, Speculative
from bundle.core.results import Acceptance, Advice

Band = tuple[int, int, int]


class Family(Struct, frozen=True, kw_only=True):
    """A group and the variants of one variable; the group itself is among ``members``."""

    group: str
    variable: str
    members: tuple[Group, ...]


def families(evidence: Evidence) -> tuple[Family, ...]:
    """Every sweep that ran: groups whose speculative configurations differ in one variable."""
    groups = {g.name: g for g in expanded_groups(evidence.recipe) if g.speculative}
    found = []
    for name, group in groups.items():
        for variable, mark in (("num_speculative_tokens", "-k"), ("prompt_lookup", "-w")):
            variants = [g for n, g in groups.items() if n.startswith(name + mark)]
            if variants and all(_one_variable(group, v, variable) for v in variants):
                found.append(Family(group=name, variable=variable, members=(group, *variants)))
    return tuple(found)


def _one_variable(a: Group, b: Group, variable: str) -> bool:
    """Whether two groups differ in nothing but the swept variable."""
    if a.speculative is None or b.speculative is None or a.model != b.model or a.flags != b.flags:
        return False
    return all(
        field.startswith(variable)
        for field in Speculative.__struct_fields__
        if getattr(a.speculative, field) != getattr(b.speculative, field)
    )


def sweep_advice(
    evidence: Evidence, fits: Mapping[Key, CellFit], acceptance: Sequence[Acceptance]
) -> tuple[Advice, ...]:
    """Best value of every sweep, per task and load, and a schedule where the best k moves."""
    found: list[Advice] = []
    for family in families(evidence):
        for task in dict.fromkeys(work.task for work in evidence.recipe.workloads):
            found += _of_family(evidence, family, task, fits, acceptance)
    return tuple(found)


def _of_family(
    evidence: Evidence,
    family: Family,
    task: str,
    fits: Mapping[Key, CellFit],
    acceptance: Sequence[Acceptance],
) -> Iterator[Advice]:
    best: dict[int, int] = {}
    for load in evidence.recipe.loads:
        one = fits.get((task, load.label, "tpot"))
        gains = {g.name: e.log_effect for g in family.members if one and (e := one.effect(g.name))}
        if len(gains) < 2:
            continue
        winner = max(gains, key=lambda name: gains[name])
        text = _text(task, load.label, gains, winner, acceptance)
        yield Advice(
            id="best-k" if family.variable == "num_speculative_tokens" else "best-window",
            group=family.group,
            task=task,
            text=text,
            measured=True,
        )
        if load.concurrency is not None:
            k = _k(family, winner)
            best[load.concurrency] = k if gains[winner] > 0 else 0
    schedule = bands(best)
    if family.variable == "num_speculative_tokens" and schedule is not None:
        yield Advice(
            id="schedule-by-batch-size",
            group=family.group,
            task=task,
            text=(
                f"num_speculative_tokens_per_batch_size: {[list(b) for b in schedule]}, the best k "
                "at every measured load; measure it as a group of its own"
            ),
            measured=True,
            schedule=schedule,
        )


def _k(family: Family, name: str) -> int:
    return next(
        g.speculative.num_speculative_tokens
        for g in family.members
        if g.name == name and g.speculative
    )


def _text(
    task: str,
    load: str,
    gains: Mapping[str, float],
    winner: str,
    acceptance: Sequence[Acceptance],
) -> str:
    """TPOT and acceptance of every value, the best one first."""
    parts = []
    for name in sorted(gains, key=lambda n: -gains[n]):
        one = f"{name} {percent(gains[name])}"
        rows = [a for a in acceptance if (a.group, a.task, a.scope) == (name, task, load)]
        if len(rows) == 1 and rows[0].length is not None:
            one += f", length {rows[0].length:.2f}"
            one += "" if rows[0].coverage is None else f", coverage {100 * rows[0].coverage:.0f} %"
        parts.append(one)
    return f"at {load} {winner} decodes fastest on {task}: " + "; ".join(parts)


def bands(best: Mapping[int, int]) -> tuple[Band, ...] | None:
    """Bands of batch size out of the best k at each measured concurrency.

    Bands are inclusive, start at 1, touch each other and never overlap; 0 switches drafting off.
    vLLM 0.32.0 wants at least one positive k; None where the best k does not move.
    """
    sizes = sorted(best)
    if len({*best.values()}) < 2:
        return None
    found: list[Band] = []
    start = 1
    for i, size in enumerate(sizes):
        last = i == len(sizes) - 1
        if last or best[sizes[i + 1]] != best[size]:
            found.append((start, size, best[size]))
            start = size + 1
    return tuple(found)
