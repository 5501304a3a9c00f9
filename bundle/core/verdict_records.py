"""What a verdict is made from and what it says: the records of :mod:`bundle.core.verdict`."""

from __future__ import annotations

import math
from typing import Literal

from msgspec import Struct

from bundle.core.layout import Effect

LimitState = Literal["BROKEN", "SHOWN", "NOT SHOWN"]
QualityState = Literal["SHOWN", "NOT SHOWN", "BROKEN", "NOT MEASURED", "OFF"]
VerdictName = Literal["SHIP", "ABANDON", "INCONCLUSIVE", "INVALID"]
Kind = Literal["slower", "small gain", "no useful gain", "quality"]

CLOSED_LOOP = ("tpot", "output_throughput")
"""Deciding metrics where the client keeps a fixed number of requests in flight."""

OPEN_LOOP = ("tpot", "e2el")
"""Deciding metrics at a finite request rate, where arrivals fix the throughput."""

REQUESTS_NEEDED = {95: 200, 99: 1000}
"""Requests a start must bring before a percentile may decide anything."""


class MetricEvidence(Struct, frozen=True, kw_only=True):
    """The effect on one metric at one load; ``effect`` None means it was not measured."""

    metric: str
    effect: Effect | None
    reason: str = ""


class Limit(Struct, frozen=True, kw_only=True):
    """A cost that the policy caps. Figures are fractions (0.10 is ten percent worse) or counts.

    What was not measured is None; ``limit`` is None only where not even the cap was handed in.
    """

    name: str
    state: LimitState
    estimate: float | None
    lower: float | None
    upper: float | None
    limit: float | None
    reason: str = ""
    unit: Literal["share", "count"] = "share"


class LoadEvidence(Struct, frozen=True, kw_only=True):
    """One load: its label, its place on the axis, its deciding metrics and its own limits."""

    label: str
    load: float
    metrics: tuple[MetricEvidence, ...]
    limits: tuple[Limit, ...] = ()


class Looks(Struct, frozen=True, kw_only=True):
    """How often the verdict was to be looked at (said before the first) and was so far."""

    declared: int = 1
    taken: int = 1


class Evidence(Struct, frozen=True, kw_only=True):
    """Everything that decides one group on one task.

    ``others`` holds the loads of the target's own kind (concurrencies with a concurrency, rates
    with a rate). ``limits`` holds those that belong to no load, such as KV capacity.
    ``limits_expected`` names those the policy asks for: one that is neither given nor switched off
    counts as not shown. ``voiding`` and ``blocking`` are ids of triggered findings.
    """

    group: str
    task: str
    target: LoadEvidence
    blocks: int
    methods: int
    others: tuple[LoadEvidence, ...] = ()
    closed_loop: bool = True
    limits: tuple[Limit, ...] = ()
    limits_expected: tuple[str, ...] = ()
    limits_off: tuple[str, ...] = ()
    voiding: tuple[str, ...] = ()
    blocking: tuple[str, ...] = ()
    quality: QualityState = "NOT MEASURED"
    quality_note: str = ""
    margin: float = 0.05
    alpha: float = 0.05
    looks: Looks = Looks()
    checks_run: tuple[str, ...] = ()
    checks_not_run: tuple[str, ...] = ()


class Verdict(Struct, frozen=True, kw_only=True):
    """The judgement of one group on one task.

    ``ship_range`` holds the labels of the loads, in order, over which a SHIP holds; ``gain_range``
    those with a real gain of whatever size. ``ship_p`` is the one-sided p that Holm's correction
    takes; ``alpha`` the two-sided error the bounds were taken at; ``assumed_noise`` the standard
    deviation that was assumed where none was measured.
    """

    group: str
    task: str
    verdict: VerdictName
    kind: Kind | None
    reasons: tuple[str, ...]
    target: str
    margin: float
    ship_range: tuple[str, ...] = ()
    gain_range: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()
    checks_run: tuple[str, ...] = ()
    checks_not_run: tuple[str, ...] = ()
    further_blocks: int | None = None
    further_note: str = ""
    alpha: float | None = None
    ship_p: float | None = None
    assumed_noise: float | None = None


def limit_state(lower: float | None, upper: float | None, limit: float) -> LimitState:
    """BROKEN if surely beyond the limit, SHOWN if surely within it, otherwise NOT SHOWN."""
    if lower is not None and lower > limit:
        return "BROKEN"
    return "SHOWN" if upper is not None and upper <= limit else "NOT SHOWN"


def limit_of_effect(name: str, effect: Effect, limit: float) -> Limit:
    """Judge a cost by its effect: performance falling to a ratio r is a worsening of 1/r - 1.

    ``effect`` is on the log performance (-log of a latency).
    """
    lower = None if effect.upper is None else math.expm1(-effect.upper)
    upper = None if effect.lower is None else math.expm1(-effect.lower)
    return Limit(
        name=name,
        state=limit_state(lower, upper, limit),
        estimate=math.expm1(-effect.log_effect),
        lower=lower,
        upper=upper,
        limit=limit,
        reason=effect.reason or "",
    )


def limit_of_percentile(
    name: str, effect: Effect, limit: float, *, percentile: int, fewest_requests: int
) -> Limit:
    """Judge a tail: a percentile over too few requests a start is unstable and decides nothing."""
    needed = REQUESTS_NEEDED[percentile]
    if fewest_requests >= needed:
        return limit_of_effect(name, effect, limit)
    found = f"unstable: {fewest_requests} requests a start, {needed} needed for P{percentile}"
    return limit_unknown(name, limit, found)


def limit_of_range(name: str, best: float, worst: float, limit: float) -> Limit:
    """Judge a cost that is read off, not estimated: its range over the starts is its interval.

    For KV capacity ``worst`` is the loss of the method's smallest pool against the baseline's
    largest, ``best`` that of its largest against the baseline's smallest.
    """
    return Limit(
        name=name,
        state=limit_state(best, worst, limit),
        estimate=(best + worst) / 2,
        lower=best,
        upper=worst,
        limit=limit,
    )


def limit_of_count(name: str, found: int, limit: int = 0) -> Limit:
    """Judge a number of events, such as failed requests: a count is known exactly."""
    return Limit(
        name=name,
        state=limit_state(found, found, limit),
        estimate=found,
        lower=found,
        upper=found,
        limit=limit,
        unit="count",
    )


def limit_unknown(name: str, limit: float | None, reason: str) -> Limit:
    """A limit that could not be judged: NOT SHOWN, with its reason."""
    return Limit(
        name=name,
        state="NOT SHOWN",
        estimate=None,
        lower=None,
        upper=None,
        limit=limit,
        reason=reason,
    )
