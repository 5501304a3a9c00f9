"""The policy's limits, measured: KV capacity, tails, failed requests."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from bundle.core.design import baseline
from bundle.core.effects import CellFit, Key
from bundle.core.evidence import Evidence
from bundle.core.results import LimitRow, LimitState
from bundle.core.verdict_records import (
    Limit,
    limit_of_count,
    limit_of_percentile,
    limit_of_range,
    limit_unknown,
)

_TAILS = (("tail-tpot", "tpot"), ("tail-ttft", "ttft"))


def kv_tokens(evidence: Evidence, group: str) -> tuple[int, ...]:
    """KV capacity of every start of a group that stated it, in tokens."""
    found = (s.facts.kv_cache_tokens for s in evidence.of(group) if s.facts is not None)
    return tuple(tokens for tokens in found if tokens)


def kv_needed(evidence: Evidence) -> int | None:
    """Tokens that the target load takes at full context; None where the recipe does not say."""
    length = evidence.recipe.serve.flags.get("max-model-len")
    target = evidence.recipe.design.target.concurrency
    if target is None or not isinstance(length, int):
        return None
    return target * length


def group_limits(evidence: Evidence, group: str) -> tuple[Limit, ...]:
    """Limits that belong to no load: KV capacity."""
    if "kv-capacity" in evidence.recipe.policy.limits_off:
        return ()
    return (_kv(evidence, group),)


def _kv(evidence: Evidence, group: str) -> Limit:
    """The smallest pool of the method against the largest baseline's, and the other way round.

    All measured starts find the compile cache in one state, so that their pools may be compared.
    """
    allowed = evidence.recipe.policy.kv_capacity_loss
    before = kv_tokens(evidence, baseline(evidence.recipe).name)
    after = kv_tokens(evidence, group)
    if not before or not after:
        return limit_unknown("kv-capacity", allowed, "KV capacity is not known for both sides")
    # A loss of exactly 30 % is the fraction 0.3; 1 - 0.7 would lie above it.
    worst = (max(before) - min(after)) / max(before)
    best = (min(before) - max(after)) / min(before)
    found = limit_of_range("kv-capacity", best, worst, allowed)
    needed = kv_needed(evidence)
    if needed is not None and min(after) < needed:
        reason = f"{min(after)} tokens left, the target load at full context needs {needed}"
        return replace(found, state="BROKEN", reason=reason)
    return found


def load_limits(
    evidence: Evidence, fits: Mapping[Key, CellFit], group: str, task: str, load: str
) -> tuple[Limit, ...]:
    """Limits at one load: the tails, and failed requests."""
    policy = evidence.recipe.policy
    found: list[Limit] = []
    for name, metric in _TAILS:
        if name not in policy.limits_off:
            key = (task, load, f"p{policy.tail_percentile}_{metric}")
            found.append(_tail(name, fits.get(key), group, policy.tail_worsening, key[2]))
    if "failed-requests" not in policy.limits_off:
        found.append(_failed(evidence, group, task, load))
    return tuple(found)


def _tail(name: str, one: CellFit | None, group: str, allowed: float, metric: str) -> Limit:
    effect = one.effect(group) if one else None
    if one is None or effect is None:
        return limit_unknown(name, allowed, f"no {metric} on both sides")
    return limit_of_percentile(
        name, effect, allowed, percentile=int(metric[1:3]), fewest_requests=one.fewest
    )


def _failed(evidence: Evidence, group: str, task: str, load: str) -> Limit:
    found = [s.cell(task, load) for s in evidence.of(group)]
    benches = [c.bench for c in found if c is not None and c.bench is not None]
    if not benches:
        return limit_unknown("failed-requests", 0, "no cell of this load was measured")
    lost = sum(max(b.failed, b.planned - b.completed) for b in benches)
    return limit_of_count("failed-requests", lost)


def limit_rows(limits: tuple[Limit, ...], off: tuple[str, ...]) -> tuple[LimitRow, ...]:
    """The limits for the report, with those that the recipe switched off."""
    rows = [
        LimitRow(
            name=x.name,
            state=_shown_state(x),
            limit=x.limit,
            worsening=x.estimate,
            lower=x.lower,
            upper=x.upper,
            reason=x.reason,
        )
        for x in limits
    ]
    rows += [
        LimitRow(
            name=name,
            state="OFF",
            limit=None,
            worsening=None,
            lower=None,
            upper=None,
            reason="switched off by the recipe",
        )
        for name in off
    ]
    return tuple(rows)


def _shown_state(limit: Limit) -> LimitState:
    return "NOT MEASURED" if limit.estimate is None else limit.state
