"""What the verdict rule asks of its evidence: deciding metrics, bounds, ranges, checks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bundle.core.layout import Effect
from bundle.core.verdict_records import (
    CLOSED_LOOP,
    OPEN_LOOP,
    Evidence,
    Limit,
    LoadEvidence,
    Looks,
    MetricEvidence,
    limit_unknown,
)


def decision_alpha(alpha: float, looks: Looks) -> float:
    """Divide the two-sided error by the looks: those declared, or those taken if they are more.

    No look is free: an extension judged again at the full error gave up to 4 % of false verdicts
    where 2.5 % are allowed (docs/simulation.md).
    """
    return alpha / max(looks.declared, looks.taken, 1)


def error_left(e: Evidence) -> float:
    """Two-sided error of this look."""
    return decision_alpha(e.alpha, e.looks)


def deciding(e: Evidence, load: LoadEvidence) -> tuple[MetricEvidence, ...]:
    """The deciding metrics of a load; one that was not handed in counts as not measured."""
    given = {m.metric: m for m in load.metrics}
    names = CLOSED_LOOP if e.closed_loop else OPEN_LOOP
    return tuple(given.get(n, MetricEvidence(metric=n, effect=None)) for n in names)


def measured(e: Evidence, load: LoadEvidence) -> list[tuple[str, Effect]]:
    """Deciding metrics of a load that have an interval."""
    pairs = [(m.metric, m.effect) for m in deciding(e, load)]
    return [(name, x) for name, x in pairs if x is not None and x.se is not None]


def bounds(e: Evidence, effect: Effect, *, metrics: int = 1) -> tuple[float, float]:
    """Bounds of an effect that has an interval, at the error left for each look and metric."""
    found = effect.bounds(error_left(e) / metrics)
    assert found is not None
    return found


def limits(e: Evidence) -> tuple[Limit, ...]:
    """The limits that count at the target load."""
    given = e.limits + e.target.limits
    named = {*e.limits_off, *(x.name for x in given)}
    absent = (name for name in e.limits_expected if name not in named)
    return given + tuple(limit_unknown(name, None, "not measured") for name in absent)


def holds(e: Evidence, load: LoadEvidence, above: float) -> bool:
    """Every deciding metric of this load lies above a log effect, with its interval."""
    found = measured(e, load)
    enough = len(found) == len(deciding(e, load))
    return enough and all(bounds(e, x)[0] > above for _, x in found)


def ladder(e: Evidence) -> list[LoadEvidence]:
    """All loads in order."""
    return sorted((*e.others, e.target), key=lambda x: x.load)


def ship_range(e: Evidence) -> tuple[str, ...]:
    """Loads outward from the target, each way up to the first that fails."""
    loads = ladder(e)
    at = loads.index(e.target)
    m = math.log1p(e.margin)

    def reach(outward: Sequence[LoadEvidence]) -> list[str]:
        labels: list[str] = []
        for load in outward:
            if not holds(e, load, m) or any(x.state == "BROKEN" for x in load.limits):
                break
            labels.append(load.label)
        return labels

    below, above = reach(loads[:at][::-1]), reach(loads[at + 1 :])
    return (*below[::-1], e.target.label, *above)


def range_notes(e: Evidence) -> tuple[str, ...]:
    """Name the loads of the range where only speed, not every limit of the target, was shown."""
    labels = ship_range(e)
    names = {x.name for x in e.target.limits}
    bare = [
        load.label
        for load in ladder(e)
        if load.label in labels and not names <= {x.name for x in load.limits if x.state == "SHOWN"}
    ]
    if not bare:
        return ()
    return (f"at {', '.join(bare)} the range rests on speed: not every limit was shown there",)


def gain_range(e: Evidence) -> tuple[str, ...]:
    """Loads with a real gain, whatever its size."""
    return tuple(load.label for load in ladder(e) if holds(e, load, 0.0))


def ship_p(e: Evidence) -> float | None:
    """Largest one-sided p over the deciding metrics, for the effect to exceed the margin."""
    m = math.log1p(e.margin)
    found = [None if x.effect is None else x.effect.p_not_above(m) for x in deciding(e, e.target)]
    known = [p for p in found if p is not None]
    return max(known) if len(known) == len(found) else None


def checks(e: Evidence) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the checks of this verdict into those that ran and those that did not, with reasons."""
    run, not_run = list(e.checks_run), list(e.checks_not_run)
    for m in deciding(e, e.target):
        if m.effect is None:
            not_run.append(f"speed:{m.metric} ({m.reason or 'no timing'})")
        elif m.effect.se is None:
            not_run.append(f"speed:{m.metric} ({m.effect.reason})")
        else:
            run.append(f"speed:{m.metric}")
    for x in limits(e):
        if x.upper is None:
            not_run.append(f"limit:{x.name} ({x.reason})")
        else:
            run.append(f"limit:{x.name}")
    not_run += [f"limit:{name} (switched off by the recipe)" for name in e.limits_off]
    if e.quality == "NOT MEASURED":
        not_run.append(f"quality ({e.quality_note or 'not measured'})")
    elif e.quality == "OFF":
        not_run.append("quality (switched off by the recipe)")
    else:
        run.append("quality")
    return tuple(run), tuple(not_run)
