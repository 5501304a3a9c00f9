"""The debugging checklist: every rule, in order, evaluated on every group, task and load."""

from __future__ import annotations

from collections.abc import Iterable

from bundle.core.findings import comparison, cost, drafting, outputs, speed, startup
from bundle.core.findings.rule import Rule
from bundle.core.findings.subject import Subject
from bundle.core.results import Finding

RULES: tuple[Rule, ...] = (
    *startup.RULES,
    *comparison.RULES,
    *outputs.RULES,
    *drafting.COUNTING,
    *speed.RULES,
    *drafting.RULES,
    *speed.OVER_LOADS,
    *cost.RULES,
)


_WEIGHT = {"TRIGGERED": 2, "CLEAR": 1, "NOT MEASURED": 0}


def checklist(subjects: Iterable[Subject]) -> tuple[Finding, ...]:
    """Evaluate every rule once per place it speaks of: a group, a task of it, or a load of that.

    Where several subjects share a place, the rule is asked of each: one that fires counts, then
    one that could be evaluated.
    """
    found: dict[tuple[str, str, str | None, str | None], Finding] = {}
    for subject in subjects:
        for one in RULES:
            finding = one.finding(subject)
            key = (finding.id, finding.group, finding.task, finding.load)
            known = found.get(key)
            if known is None or _WEIGHT[finding.state] > _WEIGHT[known.state]:
                found[key] = finding
    return tuple(found.values())
