"""A matched baseline splits a method's effect in two: the engine's path, and the speculation.

ngram and suffix lose async scheduling, suffix the newer model runner as well. A baseline forced
onto the same path shows what that alone costs; the method against it is the speculation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bundle.core.design import expanded_groups
from bundle.core.effects import CellFit, Key, fit_all
from bundle.core.evidence import Evidence
from bundle.core.recipe import Group
from bundle.core.results_why import SplitRow

SPLIT_METRICS = ("tpot", "output_throughput", "e2el")


def matched(evidence: Evidence) -> dict[str, str]:
    """The matched baseline of every method that has one; a sweep's variants share it."""
    groups = expanded_groups(evidence.recipe)
    found: dict[str, str] = {}
    for group in groups:
        for name in group.matches if group.role == "matched-baseline" else ():
            for other in groups:
                if other.role == "method" and _is_of(other, name):
                    found[other.name] = group.name
    return found


def _is_of(group: Group, name: str) -> bool:
    return group.name == name or group.name.startswith((f"{name}-k", f"{name}-w"))


def split_rows(evidence: Evidence, fits: Mapping[Key, CellFit]) -> tuple[SplitRow, ...]:
    """One row per method with a matched baseline, per cell and deciding metric."""
    pairs = matched(evidence)
    against = {name: fit_all(evidence, reference=name) for name in sorted({*pairs.values()})}
    return tuple(_rows(pairs, fits, against))


def _rows(
    pairs: Mapping[str, str],
    fits: Mapping[Key, CellFit],
    against: Mapping[str, Mapping[Key, CellFit]],
) -> Iterator[SplitRow]:
    for key, one in fits.items():
        for group, reference in pairs.items():
            path = one.effect(reference)
            spec = against[reference][key].effect(group)
            if key[2] in SPLIT_METRICS and path is not None and spec is not None:
                yield SplitRow(
                    group=group,
                    task=one.task,
                    load=one.load,
                    metric=one.metric,
                    matched=reference,
                    path_ratio=path.ratio,
                    path_lower=path.lower_ratio,
                    path_upper=path.upper_ratio,
                    spec_ratio=spec.ratio,
                    spec_lower=spec.lower_ratio,
                    spec_upper=spec.upper_ratio,
                )
