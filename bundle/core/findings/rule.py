"""How a rule is written: one short function whose docstring states it, and its registration."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from bundle.core.findings.subject import Band, Subject
from bundle.core.results import Finding, FindingEffect, FindingState

Scope = Literal["group", "task", "cell"]


class Outcome(Struct, frozen=True):
    """What one rule says of one subject: its state, and the numbers it rests on."""

    state: FindingState
    evidence: str


Check = Callable[[Subject], Outcome]


class Rule(Struct, frozen=True, kw_only=True):
    """A registered rule. ``scope`` says whether it needs a task, and a load of that task."""

    id: str
    effect: FindingEffect
    scope: Scope
    check_first: str
    then_check: str
    check: Check

    def finding(self, subject: Subject) -> Finding:
        """Evaluate the rule on one subject."""
        outcome = self.check(subject)
        return Finding(
            id=self.id,
            group=subject.group,
            task=None if self.scope == "group" else subject.task,
            load=subject.load if self.scope == "cell" else None,
            state=outcome.state,
            effect=self.effect,
            evidence=outcome.evidence,
            check_first=self.check_first,
            then_check=self.then_check,
        )


def rule(
    name: str, effect: FindingEffect, scope: Scope, *, first: str, then: str
) -> Callable[[Check], Rule]:
    """Turn a check into a :class:`Rule`; the order of the tables is that of the source."""

    def register(check: Check) -> Rule:
        return Rule(
            id=name,
            effect=effect,
            scope=scope,
            check_first=first,
            then_check=then,
            check=check,
        )

    return register


def triggered(evidence: str) -> Outcome:
    """The rule fired."""
    return Outcome("TRIGGERED", evidence)


def clear(evidence: str) -> Outcome:
    """The rule was evaluated and did not fire."""
    return Outcome("CLEAR", evidence)


def unknown(evidence: str) -> Outcome:
    """A fact is missing: this check did not run."""
    return Outcome("NOT MEASURED", evidence)


def either(fired: bool, evidence: str) -> Outcome:
    """Triggered or clear, with the same numbers."""
    return triggered(evidence) if fired else clear(evidence)


def percent(log_ratio: float) -> str:
    """A log ratio as a signed change in per cent."""
    return f"{100 * math.expm1(log_ratio):+.1f} %"


def shown(metric: str, band: Band) -> str:
    """``tpot +12.3 % (+8.1 % to +16.9 %, 95 % interval over 6 starts)``."""
    spread = " to ".join(percent(b) for b in (band.lower, band.upper) if b is not None)
    known = f"{spread}, {band.basis}" if spread else band.basis
    return f"{metric} {percent(band.estimate)} ({known})"


def samples(name: str, found: int, needed: int) -> str:
    """``p95_tpot from 4 requests a start, 200 needed``; ITL is taken over pauses."""
    what = "pauses" if name.endswith("_itl") else "requests"
    return f"{name} from {found} {what} a start, {needed} needed"


def share(value: float) -> str:
    """A share in per cent; a value below 1 never prints as 100, above 0 never as 0."""
    if 0 < value < 0.001:
        return "<0.1 %"
    if 0.999 < value < 1:
        return ">99.9 %"
    return f"{100 * value:.1f} %"
