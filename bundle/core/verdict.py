"""The verdict on one group and task: SHIP, ABANDON, INCONCLUSIVE or INVALID, with its reasons.

The rule is an intersection-union test: a SHIP needs every deciding metric's lower bound above the
margin, every limit shown and quality shown, so no correction among the metrics is due. An ABANDON
needs one metric's upper bound at or below the margin, so that bound is taken at alpha / 2 / K.
A check that did not run never counts as passed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from bundle.core.bare import BareEvidence, judge_bare
from bundle.core.layout import Effect
from bundle.core.power import Plan, further_blocks
from bundle.core.verdict_parts import (
    bounds,
    checks,
    deciding,
    decision_alpha,
    error_left,
    gain_range,
    holds,
    limits,
    measured,
    range_notes,
    ship_p,
    ship_range,
)
from bundle.core.verdict_records import (
    Evidence,
    Kind,
    Limit,
    LimitState,
    LoadEvidence,
    Looks,
    MetricEvidence,
    QualityState,
    Verdict,
    VerdictName,
    limit_of_count,
    limit_of_effect,
    limit_of_percentile,
    limit_of_range,
    limit_state,
)
from bundle.core.wording import apart, limit_words, metric_words

__all__ = [
    "BareEvidence",
    "Evidence",
    "Limit",
    "LimitState",
    "LoadEvidence",
    "Looks",
    "MetricEvidence",
    "QualityState",
    "Verdict",
    "VerdictName",
    "decision_alpha",
    "holm",
    "judge",
    "judge_bare",
    "limit_of_count",
    "limit_of_effect",
    "limit_of_percentile",
    "limit_of_range",
    "limit_state",
]

_MOST_UNDECLARED = 2


def judge(evidence: Evidence) -> Verdict:
    """Judge one group on one task.

    The order is: a comparison that is none (INVALID), findings and looks that forbid a decision,
    ABANDON, SHIP, and INCONCLUSIVE with what is missing.
    """
    if evidence.voiding:
        found = ", ".join(evidence.voiding)
        return _verdict(evidence, "INVALID", (f"this is not a valid comparison: {found}",))
    forbidden = _forbidden(evidence)
    if forbidden:
        return _verdict(evidence, "INCONCLUSIVE", forbidden)
    kind, reasons = _abandon(evidence)
    if kind is not None:
        return _verdict(evidence, "ABANDON", (*reasons, *_gain_note(evidence)), kind)
    missing = _missing(evidence)
    if missing:
        return _verdict(evidence, "INCONCLUSIVE", missing, plan=_plan(evidence))
    return _verdict(evidence, "SHIP", (*_shown(evidence), *range_notes(evidence)))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust one-sided p values over a family of verdicts (Holm 1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    scaled = (min(1.0, (len(p_values) - rank) * p_values[i]) for rank, i in enumerate(order))
    adjusted = dict(zip(order, accumulate(scaled, max), strict=True))
    return tuple(adjusted[i] for i in range(len(p_values)))


def _forbidden(e: Evidence) -> tuple[str, ...]:
    """Say what forbids any decision: blocking findings, or more looks than were declared."""
    reasons = [f"no decision may rest on this comparison: {finding}" for finding in e.blocking]
    if not _allowed(e.looks):
        reasons.append(
            f"look number {e.looks.taken} at growing data, {e.looks.declared} declared beforehand: "
            "a decision found by looking on is not one; start a new run"
        )
    if reasons and e.quality == "BROKEN":
        reasons.append(_quality_words(e))
    return tuple(reasons)


def _abandon(e: Evidence) -> tuple[Kind | None, tuple[str, ...]]:
    """ABANDON: quality broken, or some metric's one-sided upper bound at or below the margin."""
    if e.quality == "BROKEN":
        return "quality", (_quality_words(e),)
    m = math.log1p(e.margin)
    count = len(deciding(e, e.target))
    found: dict[Kind, list[str]] = {}
    for name, effect in measured(e, e.target):
        upper = bounds(e, effect, metrics=count)[1]
        if upper <= m:
            kind = _kind(upper, bounds(e, effect)[0])
            words = _short_of_margin(e, name, effect, "upper bound for this decision", upper)
            found.setdefault(kind, []).append(f"{kind}: {words}")
    order: tuple[Kind, ...] = ("slower", "no useful gain", "small gain")
    worst = next((k for k in order if k in found), None)
    return worst, tuple(r for k in order for r in found.get(k, []))


def _kind(upper: float, lower: float) -> Kind:
    if upper < 0:
        return "slower"
    return "small gain" if lower > 0 else "no useful gain"


def _missing(e: Evidence) -> tuple[str, ...]:
    """Everything that stands between this evidence and a SHIP, in plain words."""
    reasons: list[str] = []
    for metric in deciding(e, e.target):
        effect = metric.effect
        if effect is None:
            reasons.append(f"{metric.metric} at {e.target.label}: {metric.reason or 'no timing'}")
        elif effect.se is None:
            reasons.append(f"{metric_words(metric.metric, effect, error_left(e))}: {effect.reason}")
        elif (low := bounds(e, effect)[0]) <= math.log1p(e.margin):
            reasons.append(_short_of_margin(e, metric.metric, effect, "lower bound", low))
    reasons += [limit_words(x) for x in limits(e) if x.state != "SHOWN"]
    if not limits(e) and not e.limits_off:
        reasons.append("no limit was judged, and none was switched off: that is not a pass")
    if e.quality not in ("SHOWN", "OFF"):
        reasons.append(_quality_words(e))
    return tuple(reasons)


def _short_of_margin(e: Evidence, name: str, effect: Effect, which: str, bound: float) -> str:
    asked = 1 + e.margin
    return (
        f"{metric_words(name, effect, error_left(e))} at {e.target.label}; its {which}, "
        f"{apart(math.exp(bound), asked)}, does not exceed the {asked:g} asked for"
    )


def _quality_words(e: Evidence) -> str:
    return f"quality is {e.quality}" + (f": {e.quality_note}" if e.quality_note else "")


def _shown(e: Evidence) -> tuple[str, ...]:
    """The numbers a SHIP rests on."""
    speed = [
        f"{metric_words(name, x, error_left(e))} at {e.target.label}, above the {1 + e.margin:g} "
        "asked for"
        for name, x in measured(e, e.target)
    ]
    off = [f"limit {name} is switched off by the recipe: not judged" for name in e.limits_off]
    return (*speed, *(limit_words(x) for x in limits(e)), *off, _quality_words(e))


def _gain_note(e: Evidence) -> tuple[str, ...]:
    gains = [label for label in gain_range(e) if label != e.target.label]
    return (f"it does gain at {', '.join(gains)}",) if gains else ()


def _plan(e: Evidence) -> Plan:
    """Plan further blocks, or say that what is missing is not a matter of blocks."""
    effects = [m.effect for m in deciding(e, e.target)]
    known = [x for x in effects if x is not None]
    if len(known) < len(effects):
        note = "a deciding metric is missing: more blocks of the same kind do not bring it"
        return Plan(further=None, towards=None, note=note)
    if holds(e, e.target, math.log1p(e.margin)):
        note = "speed is decided; what is missing is named above and is not a matter of speed"
        return Plan(further=None, towards="SHIP", note=note)
    ahead = Looks(declared=e.looks.declared, taken=e.looks.taken + 1)
    left = _allowed(ahead)
    plan = further_blocks(
        known,
        margin_log=math.log1p(e.margin),
        blocks=e.blocks,
        methods=e.methods,
        alpha=decision_alpha(e.alpha, ahead) if left else e.alpha,
    )
    if left or plan.further is None:
        return plan
    total = e.blocks + plan.further
    note = f"no look is left in this run; a new run should plan {total} blocks from the start"
    return Plan(further=None, towards=plan.towards, note=note)


def _allowed(looks: Looks) -> bool:
    """One extension may come unannounced; more must have been declared beforehand."""
    return looks.taken <= max(looks.declared, _MOST_UNDECLARED)


def _verdict(
    e: Evidence,
    name: VerdictName,
    reasons: tuple[str, ...],
    kind: Kind | None = None,
    plan: Plan | None = None,
) -> Verdict:
    run, not_run = checks(e)
    judged = name != "INVALID"
    return Verdict(
        group=e.group,
        task=e.task,
        verdict=name,
        kind=kind,
        reasons=reasons,
        target=e.target.label,
        margin=e.margin,
        ship_range=ship_range(e) if name == "SHIP" else (),
        gain_range=gain_range(e) if judged else (),
        limits=limits(e),
        checks_run=run,
        checks_not_run=not_run,
        further_blocks=plan.further if plan else None,
        further_note=plan.note if plan else "",
        alpha=error_left(e),
        ship_p=ship_p(e) if judged else None,
    )
