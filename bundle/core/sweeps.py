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

_VARIABLES = {
    "num_speculative_tokens": ("-k", {"num_speculative_tokens"}),
    "prompt_lookup": ("-w", {"prompt_lookup_min", "prompt_lookup_max"}),
}
"""How the names of a sweep's variants go on, and the keys of the configuration that it moves."""

_SHARED = ("model", "lock", "flags", "env")
"""What the members of a sweep have in common beside the rest of that configuration."""


class Family(Struct, frozen=True, kw_only=True):
    """A group and the variants of one variable; the group itself is among ``members``."""

    group: str
    variable: str
    members: tuple[Group, ...]


def families(evidence: Evidence) -> tuple[Family, ...]:
    """Every sweep that ran: groups that differ in one variable and are named after it."""
    groups = {g.name: g for g in expanded_groups(evidence.recipe) if g.speculative}
    found = []
    for name, group in groups.items():
        for variable, (mark, keys) in _VARIABLES.items():
            named = [g for n, g in groups.items() if n.startswith(name + mark)]
            variants = [g for g in named if _changed(group, g) <= keys]
            if variants:
                found.append(Family(group=name, variable=variable, members=(group, *variants)))
    return tuple(found)


def confused(evidence: Evidence) -> tuple[Advice, ...]:
    """Groups of one method that no other group of it comes close to: two variables moved at once.

    The difference between such groups explains nothing, so it is named as such.
    """
    groups = [g for g in expanded_groups(evidence.recipe) if g.speculative]
    found = []
    for i, group in enumerate(groups):
        kin = [g for g in groups if g is not group and _method(g) == _method(group)]
        moved = {g.name: _variables(_changed(g, group)) for g in kin}
        before = [g.name for g in groups[:i] if g.name in moved]
        if before and all(len(names) > 1 for names in moved.values()):
            other = min(before, key=lambda name: len(moved[name]))
            found.append(_two_at_once(group.name, other, moved[other]))
    return tuple(found)


def _method(group: Group) -> str | None:
    return group.speculative.method if group.speculative else None


def _variables(keys: set[str]) -> list[str]:
    """What moved: both ends of the ngram window are one variable."""
    names = {key: name for name, (_, own) in _VARIABLES.items() for key in own}
    return sorted({names.get(key, key) for key in keys})


def _two_at_once(group: str, other: str, moved: Sequence[str]) -> Advice:
    return Advice(
        id="two-variables-at-once",
        group=group,
        task=None,
        text=(
            f"{group} differs from {other} in {' and '.join(moved)} at once: what lies between "
            "them explains neither; run one with a single one of these changed"
        ),
        measured=False,
    )


def _changed(a: Group, b: Group) -> set[str]:
    """What two speculative groups differ in beside their names."""
    keys = Speculative.__struct_fields__
    return {
        *(key for key in keys if getattr(a.speculative, key) != getattr(b.speculative, key)),
        *(key for key in _SHARED if getattr(a, key) != getattr(b, key)),
    }


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
        parts.append(one + _accepted(*rows) if len(rows) == 1 else one)
    return f"at {load} {winner} decodes fastest on {task}: " + "; ".join(parts)


def _accepted(row: Acceptance) -> str:
    if row.length is None:
        return ""
    coverage = "" if row.coverage is None else f", coverage {100 * row.coverage:.0f} %"
    return f", length {row.length:.2f}{coverage}"


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
