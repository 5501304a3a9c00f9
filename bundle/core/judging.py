"""The judge: from a run folder's evidence to everything the report shows. Pure, and in order.

Acceptance, effects, quality; then the checklist; then one verdict per method and task; then what
explains it (break-even, splits) and what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from bundle.core.acceptance import acceptance_of_starts
from bundle.core.advice import advise
from bundle.core.costs import capacity_rows, failed_runs
from bundle.core.decide import Decided, decide
from bundle.core.design import expanded_groups
from bundle.core.effects import aa_rows, cell_stats, effect_rows, fit_all
from bundle.core.evidence import Evidence
from bundle.core.explain import break_even_of
from bundle.core.findings import checklist
from bundle.core.notes import notes_of
from bundle.core.quality import judge_quality
from bundle.core.results import Acceptance, Results, VerdictRow
from bundle.core.splits import split_rows
from bundle.core.subjects import Context, subjects_of
from bundle.core.sweeps import confused, sweep_advice
from bundle.core.verdict import holm


def judge(evidence: Evidence) -> Results:
    """Judge one run folder.

    Raises:
        InputError: the evidence contradicts itself: two starts at one place of a block, a
            performance that is not a positive number.
    """
    fits = fit_all(evidence)
    acceptance = _acceptance(evidence)
    methods = [g.name for g in expanded_groups(evidence.recipe) if g.role == "method"]
    quality = {name: judge_quality(evidence, name) for name in methods}
    context = Context(fits=fits, acceptance=acceptance, quality=quality)
    subjects = subjects_of(evidence, context)
    findings = checklist(subjects)
    verdicts = decide(evidence, Decided(fits=fits, findings=findings, quality=quality))
    rows = tuple(one.row for one in quality.values())
    return Results(
        recipe=evidence.recipe.name,
        target=evidence.recipe.design.target.label,
        margin=evidence.recipe.policy.margin,
        narrowed=evidence.narrowed,
        verdicts=_with_holm(verdicts),
        effects=effect_rows(evidence, fits),
        cells=cell_stats(evidence, fits),
        acceptance=acceptance,
        break_even=break_even_of(evidence, fits, acceptance),
        findings=findings,
        advice=(
            *sweep_advice(evidence, fits, acceptance),
            *confused(evidence),
            *advise(subjects, findings),
        ),
        quality=rows,
        capacity=capacity_rows(evidence),
        failed=failed_runs(evidence),
        aa=aa_rows(evidence, fits),
        splits=split_rows(evidence, fits),
        lm_eval=tuple(one.lm_eval for one in quality.values() if one.lm_eval is not None),
        starts_per_group=_starts(evidence),
        notes=notes_of(evidence, verdicts, rows),
    )


def _acceptance(evidence: Evidence) -> tuple[Acceptance, ...]:
    return tuple(
        row
        for group in expanded_groups(evidence.recipe)
        if group.speculative is not None
        for row in acceptance_of_starts(
            evidence.of(group.name), k=group.speculative.num_speculative_tokens
        )
    )


def _with_holm(verdicts: Sequence[VerdictRow]) -> tuple[VerdictRow, ...]:
    """Add the p values adjusted over every verdict that has one."""
    known = [v.ship_p for v in verdicts if v.ship_p is not None]
    adjusted = iter(holm(known))
    return tuple(
        v if v.ship_p is None else replace(v, ship_p_holm=next(adjusted)) for v in verdicts
    )


def _starts(evidence: Evidence) -> dict[str, int]:
    """Starts that gave at least one cell, by group."""
    return {
        g.name: sum(any(c.bench for c in s.cells) for s in evidence.of(g.name))
        for g in expanded_groups(evidence.recipe)
    }
