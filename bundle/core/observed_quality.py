"""Quality from two totals: how many items passed on each side, without saying which.

A paired test needs to know which items were lost. Totals leave a range: the fewest discordant
items make the difference most certain, the most make it least. BROKEN must hold over the whole
range.
"""

from __future__ import annotations

from bundle.core.findings.subject import QualityFacts
from bundle.core.observed import ObservedArm
from bundle.core.paired import NET_LOSS_ALLOWED, SIGNIFICANT, mcnemar, sign_test
from bundle.core.verdict_records import QualityState


def bare_quality(baseline: ObservedArm, method: ObservedArm) -> QualityFacts | None:
    """The state of quality as far as totals allow; None where nothing was reported."""
    state, reason = _totals(
        (baseline.quality_passed, method.quality_passed),
        (baseline.quality_total, method.quality_total),
    )
    if method.empty_replies and not baseline.empty_replies:
        note = f"{method.empty_replies} empty or one-token replies, none known of the baseline"
        state, reason = "BROKEN", f"{note}; {reason}"
    known = (
        baseline.quality_passed,
        method.quality_passed,
        method.truncated,
        method.outputs_compared,
        method.empty_replies,
    )
    if all(value is None for value in known):
        return None
    differ, wavering = method.outputs_differ, baseline.outputs_differ
    return QualityFacts(
        state=state,
        reason=reason,
        truncated=method.truncated,
        replies=method.quality_total,
        diverged=differ,
        comparable=method.outputs_compared,
        aa_diverged=wavering,
        aa_comparable=baseline.outputs_compared,
        outputs_p=None if differ is None or wavering is None else sign_test(differ, wavering),
    )


def _totals(
    passed: tuple[int | None, int | None], totals: tuple[int | None, int | None]
) -> tuple[QualityState, str]:
    a, b = passed
    n = totals[0]
    if a is None or b is None or n is None or totals[1] is None:
        return "NOT MEASURED", "passed and total items are not known for both sides"
    if n != totals[1] or not n or a > n or b > n:
        found = f"{a} of {n} and {b} of {totals[1]}"
        return "NOT MEASURED", f"the sides did not answer the same items: {found}"
    net = a - b
    most_won = min(b, n - a)
    surest = mcnemar(max(net, 0), max(-net, 0))
    least = mcnemar(net + most_won, most_won)
    said = f"baseline passes {a} of {n}, method {b}; exact p between {surest:.2g} and {least:.2g}"
    if least <= SIGNIFICANT:
        return "BROKEN", said
    if net <= NET_LOSS_ALLOWED * n and surest > SIGNIFICANT:
        return "SHOWN", said
    return "NOT SHOWN", said
