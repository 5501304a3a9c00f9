"""One verdict per method and task: the evidence brought into the form the verdict rule takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bundle.core.design import cells, expanded_groups
from bundle.core.effects import CellFit, Key
from bundle.core.evidence import Evidence
from bundle.core.findings.subject import QualityFacts
from bundle.core.limits import group_limits, limit_rows, load_limits
from bundle.core.quality import GroupQuality
from bundle.core.recipe import Group, Load, Target
from bundle.core.results import Finding, VerdictRow
from bundle.core.verdict import Looks, Verdict
from bundle.core.verdict import judge as judge_one
from bundle.core.verdict_records import (
    CLOSED_LOOP,
    OPEN_LOOP,
    LoadEvidence,
    MetricEvidence,
    QualityState,
)
from bundle.core.verdict_records import Evidence as VerdictEvidence


class Decided(Struct, frozen=True, kw_only=True):
    """What the verdicts rest on."""

    fits: Mapping[Key, CellFit]
    findings: Sequence[Finding]
    quality: Mapping[str, GroupQuality]


def decide(evidence: Evidence, known: Decided) -> tuple[VerdictRow, ...]:
    """A verdict for every method on every task that it was to measure."""
    return tuple(
        _row(judge_one(verdict_evidence(evidence, known, group, task)), evidence)
        for group in expanded_groups(evidence.recipe)
        if group.role == "method"
        for task in dict.fromkeys(c.task for c in cells(evidence.recipe, group))
    )


def verdict_evidence(
    evidence: Evidence, known: Decided, group: Group, task: str
) -> VerdictEvidence:
    """Everything that decides one group on one task, at the recipe's target load."""
    recipe = evidence.recipe
    target = recipe.design.target.label
    own = [f for f in known.findings if _counts(f, group.name, task, target)]
    fired = [f for f in own if f.state == "TRIGGERED"]
    closed = recipe.design.target.concurrency is not None
    loads = [x for x in recipe.loads if (x.concurrency is not None) == closed]
    state, note = _quality(evidence, known, group.name)
    asked, not_asked = _asked_again(known.quality[group.name].facts)
    evaluated, not_evaluated = _evaluated(known.quality[group.name])
    return VerdictEvidence(
        group=group.name,
        task=task,
        target=_load(evidence, known, group.name, task, recipe.design.target),
        others=tuple(
            _other(evidence, known, group.name, task, load)
            for load in loads
            if load.label != target and (not load.tasks or task in load.tasks)
        ),
        blocks=_blocks(known.fits, task, target),
        methods=max(1, len(expanded_groups(recipe)) - 1),
        closed_loop=closed,
        limits=group_limits(evidence, group.name),
        limits_expected=("kv-capacity", "tail-tpot", "tail-ttft", "failed-requests"),
        limits_off=tuple(name for name in recipe.policy.limits_off if name != "quality"),
        voiding=tuple(f"{f.id} ({f.evidence})" for f in fired if f.effect == "voids"),
        blocking=_blocking(fired, state),
        quality=state,
        quality_note=note,
        margin=recipe.policy.margin,
        looks=Looks(declared=recipe.design.looks, taken=len(evidence.looks) + 1),
        checks_run=(*(f.id for f in own if f.state != "NOT MEASURED"), *asked, *evaluated),
        checks_not_run=(
            *(f"{f.id} ({f.evidence})" for f in own if f.state == "NOT MEASURED"),
            *not_asked,
            *not_evaluated,
        ),
    )


def _counts(finding: Finding, group: str, task: str, target: str) -> bool:
    """A finding speaks to a verdict when it is of its group, task and target load, or wider."""
    return (
        finding.group == group and finding.task in (None, task) and finding.load in (None, target)
    )


def _blocking(fired: Sequence[Finding], quality: QualityState) -> tuple[str, ...]:
    """What forbids a decision. Broken quality is a defect by itself and needs no timing."""
    return tuple(
        f"{f.id} ({f.evidence})"
        for f in fired
        if f.effect == "blocks" and not (quality == "BROKEN" and f.id == "no-baseline-timing")
    )


def _load(
    evidence: Evidence, known: Decided, group: str, task: str, load: Load | Target
) -> LoadEvidence:
    names = CLOSED_LOOP if load.concurrency is not None else OPEN_LOOP
    size = load.concurrency if load.concurrency is not None else load.request_rate
    assert size is not None
    return LoadEvidence(
        label=load.label,
        load=float(size),
        metrics=tuple(_metric(known.fits, group, task, load.label, name) for name in names),
        limits=load_limits(evidence, known.fits, group, task, load.label),
    )


def _other(evidence: Evidence, known: Decided, group: str, task: str, load: Load) -> LoadEvidence:
    """A load beside the target. Where its comparison is void or blocked, it shows nothing."""
    found = _load(evidence, known, group, task, load)
    void = [
        f.id
        for f in known.findings
        if f.effect in ("voids", "blocks")
        and f.state == "TRIGGERED"
        and _counts(f, group, task, load.label)
    ]
    if not void:
        return found
    bare = (replace(m, effect=None, reason=f"void: {', '.join(void)}") for m in found.metrics)
    return replace(found, metrics=tuple(bare))


def _metric(
    fits: Mapping[Key, CellFit], group: str, task: str, load: str, metric: str
) -> MetricEvidence:
    one = fits.get((task, load, metric))
    effect = one.effect(group) if one else None
    reason = "" if effect is not None else "not measured at this load"
    if one is not None and effect is None:
        dropped = (p for p in one.fit.problems if p.startswith(f"{group}:"))
        reason = next(dropped, f"no start of {group} gave it")
    return MetricEvidence(metric=metric, effect=effect, reason=reason)


def _blocks(fits: Mapping[Key, CellFit], task: str, target: str) -> int:
    """Blocks behind the target's fits; the fewest of its metrics."""
    found = [one.fit.blocks for (t, load, _), one in fits.items() if (t, load) == (task, target)]
    return min(found, default=0)


def _quality(evidence: Evidence, known: Decided, group: str) -> tuple[QualityState, str]:
    if "quality" in evidence.recipe.policy.limits_off:
        return "OFF", ""
    row = known.quality[group].row
    return row.state, row.reason


def _asked_again(facts: QualityFacts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The check of near ties, as run or as not run; neither where no output diverged."""
    if not facts.divergences:
        return (), ()
    if facts.asked:
        return ("near-ties",), ()
    return (), ("near-ties (the baseline was not asked again at first divergences)",)


def _evaluated(quality: GroupQuality) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """lm-evaluation-harness, as run or as not run; neither where the recipe does not ask for it."""
    found = quality.lm_eval
    if found is None:
        return (), ()
    if found.state == "NOT MEASURED":
        return (), (f"lm-eval ({found.reason})",)
    return ("lm-eval",), ()


def _row(verdict: Verdict, evidence: Evidence) -> VerdictRow:
    return VerdictRow(
        group=verdict.group,
        task=verdict.task,
        load=verdict.target,
        verdict=verdict.verdict,
        kind=verdict.kind,
        reasons=verdict.reasons,
        ship_range=verdict.ship_range,
        gain_range=verdict.gain_range,
        limits=limit_rows(verdict.limits, evidence.recipe.policy.limits_off),
        checks_run=verdict.checks_run,
        checks_not_run=verdict.checks_not_run,
        further_blocks=verdict.further_blocks,
        further_note=verdict.further_note,
        alpha=verdict.alpha,
        ship_p=verdict.ship_p,
    )
