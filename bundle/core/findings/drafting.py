"""What the drafts are worth: acceptance, coverage, positions."""

from __future__ import annotations

from bundle.core.findings.rule import (
    Outcome,
    Rule,
    clear,
    either,
    rule,
    samples,
    share,
    triggered,
    unknown,
)
from bundle.core.findings.subject import Rates, Subject

NEAR_ZERO = 0.02
ENOUGH_DRAFTS = 100
ENOUGH_ROUNDS = 100
FEWEST_ZERO = 30
LOW_LENGTH = 1.5
LOW_RATE = 0.30
LOW_COVERAGE = 0.5
WEAK_POSITION = 0.10
# 1.96 * sqrt(0.25 / 385) = 0.05: fewer rounds leave a position's share wider than +-5 points.
SAMPLE_ROUNDS = 385
SAMPLES_FOR = {"p95": 200, "p99": 1000}


def _counts(a: Rates) -> str:
    if a.accepted is None or a.drafted is None:
        return "stated, without counts"
    rounds = "" if a.rounds is None else f" in {a.rounds} rounds"
    return f"{a.accepted} of {a.drafted} proposed tokens{rounds}"


@rule(
    "metrics-missing",
    "voids acceptance",
    "group",
    first="the flag for per-request acceptance metrics, and that a request asks for one reply",
    then="`include_usage` where replies are streamed; requests ended by a stop text carry none",
)
def metrics_missing(s: Subject) -> Outcome:
    """A speculative server answered without its per-request acceptance figures."""
    if s.metrics_missing is None or not s.metrics_expected:
        return unknown("no requests with per-request figures were expected")
    said = f"{s.metrics_missing} of {s.metrics_expected} replies without figures"
    return either(s.metrics_missing > 0, said)


@rule(
    "acceptance-mismatch",
    "warns",
    "cell",
    first="foreign traffic, aborted requests and stop texts between the two counts",
    then="known counting defects of this engine version",
)
def acceptance_mismatch(s: Subject) -> Outcome:
    """Two counts of the same acceptance disagree beyond the documented trimming."""
    if s.acceptance is None or s.acceptance.mismatches is None:
        return unknown("acceptance was counted in one way only")
    if s.acceptance.mismatches:
        return triggered("; ".join(s.acceptance.mismatches))
    return clear("every count agrees with the others")


@rule(
    "zero-acceptance",
    "warns",
    "cell",
    first="that vocabulary, chat template and thinking switch are those of the helper's training",
    then="a quantised target, length limits, NaN in the helper, graph capture; engine version",
)
def zero_acceptance(s: Subject) -> Outcome:
    """Acceptance is 0, under 2 % of at least 100 proposed tokens, or always the maximum.

    That is a defect (wrong helper, length limit, NaN, graph capture), not a weak draft.
    """
    a = s.acceptance
    if a is None or (a.rate is None and a.length is None):
        drafts = a is not None and a.no_drafts
        return unknown("no drafts: nothing was proposed" if drafts else "acceptance is not known")
    rate = a.rate if a.rate is not None else (0.0 if a.length == 1 else None)
    figure = f"length {a.length:.2f}" if rate is None else f"acceptance rate {share(rate)}"
    said = f"{figure}, {_counts(a)}"
    if rate == 0 and a.drafted is not None and a.drafted < FEWEST_ZERO:
        return unknown(f"{said}: too few to tell")
    enough = a.drafted is None or a.drafted >= ENOUGH_DRAFTS
    if rate is not None and (rate == 0 or (rate < NEAR_ZERO and enough)):
        return triggered(said)
    counts = (n for n in (a.rounds, a.drafted) if n is not None)
    pinned = _at_maximum(a, s.k) and any(n >= ENOUGH_ROUNDS for n in counts)
    return either(pinned, f"{said}: always the maximum" if pinned else said)


@rule(
    "low-acceptance",
    "none",
    "cell",
    first="whether the text is new content that this helper was not trained on",
    then="the template and thinking switch; another method for this kind of text",
)
def low_acceptance(s: Subject) -> Outcome:
    """The acceptance length is near 1 and the histogram plausible: a weak draft."""
    a = s.acceptance
    if a is None or a.length is None:
        return unknown("the acceptance length is not known")
    said = f"acceptance length {a.length:.2f}"
    said += "" if a.rate is None else f", rate {share(a.rate)}"
    if zero_acceptance.check(s).state == "TRIGGERED":
        return clear(f"{said}: a defect rather than a weak draft")
    weak = a.rate < LOW_RATE if a.rate is not None else a.length < 1 + LOW_RATE
    return either(a.length < LOW_LENGTH and weak, said)


@rule(
    "low-coverage",
    "none",
    "cell",
    first="coverage beside the acceptance rate: most rounds had no draft to verify",
    then="a wider window, or a method that always proposes",
)
def low_coverage(s: Subject) -> Outcome:
    """Fewer than half of the decode rounds had a draft."""
    a = s.acceptance
    if s.method in ("ngram", "ngram_gpu") and a is not None and a.runner == "V2":
        return unknown("under the V2 runner every round counts as drafted")
    if a is None or a.coverage is None:
        return unknown("decode rounds were not counted")
    estimated = " (estimated from output tokens)" if "coverage" in a.estimated else ""
    return either(
        a.coverage < LOW_COVERAGE, f"{share(a.coverage)} of decode rounds had a draft{estimated}"
    )


@rule(
    "weak-later-positions",
    "advice",
    "cell",
    first="acceptance by position: where it stops adding tokens",
    then="a sweep over k at the target load",
)
def weak_later_positions(s: Subject) -> Outcome:
    """A later position adds fewer than 0.1 tokens a round: shorten k."""
    a = s.acceptance
    if a is None or not a.per_position:
        return unknown("acceptance by position is not known")
    said = "by position: " + ", ".join(share(p) for p in a.per_position)
    first_works = a.per_position[0] >= WEAK_POSITION
    weak = [i + 1 for i, p in enumerate(a.per_position) if i and p < WEAK_POSITION]
    if weak and first_works:
        return triggered(f"{said}; from position {weak[0]} on almost nothing is added")
    return clear(said)


@rule(
    "implausible-acceptance",
    "warns",
    "cell",
    first="how many rounds it rests on, and whether prompts repeat",
    then="synthetic acceptance, a helper that copies the target, counting defects",
)
def implausible_acceptance(s: Subject) -> Outcome:
    """A position is accepted always, or the figures contradict what acceptance can be."""
    a = s.acceptance
    if a is None or (a.rate is None and not a.per_position and a.length is None):
        return unknown("acceptance is not known")
    faults = [*_impossible(a, s.k)]
    positions = a.per_position or ()
    faults += [f"position {i + 1} is accepted always" for i, p in enumerate(positions) if p >= 1]
    if not positions and _at_maximum(a, s.k):
        faults.append("every position is accepted always")
    return either(bool(faults), "; ".join(faults) if faults else f"plausible: {_counts(a)}")


def _at_maximum(a: Rates, k: int | None) -> bool:
    """Whether everything proposed was accepted, by the rate or by a length of k + 1."""
    if a.rate is not None:
        return a.rate >= 1
    return bool(a.length and k and a.length >= k + 0.995)


def _impossible(a: Rates, k: int | None) -> list[str]:
    """Figures that no count can give."""
    faults = []
    if a.rate is not None and a.rate > 1:
        faults.append(f"more accepted than proposed: {_counts(a)}")
    if a.length is not None and k and a.length > k + 1.005:
        faults.append(f"acceptance length {a.length:.2f} with at most {k} draft tokens")
    if a.length is not None and a.length < 1:
        faults.append(f"acceptance length {a.length:.2f}, which is below 1")
    if a.rounds is not None and a.drafted is not None:
        if a.rounds > a.drafted > 0:
            faults.append(f"more rounds than proposed tokens: {_counts(a)}")
        if k and a.drafted > k * a.rounds:
            faults.append(f"more than {k} proposed tokens a round: {_counts(a)}")
    positions = a.per_position or ()
    faults += [
        f"position {i + 1} is accepted more often than position {i}"
        for i in range(1, len(positions))
        if positions[i] > positions[i - 1] + 0.005
    ]
    return faults


@rule(
    "too-few-samples",
    "warns",
    "cell",
    first="how many rounds, requests and pauses the figures rest on",
    then="more requests a start: 200 for a P95, 1,000 for a P99",
)
def too_few_samples(s: Subject) -> Outcome:
    """Too few rounds for acceptance to within 5 points, or samples for a percentile shown."""
    few: list[str] = []
    enough: list[str] = []
    rounds = s.acceptance.rounds if s.acceptance else None
    if rounds is not None:
        (few if rounds < SAMPLE_ROUNDS else enough).append(
            f"{rounds} rounds, {SAMPLE_ROUNDS} give acceptance to within 5 points"
        )
    for name, found in s.percentiles.items():
        needed = SAMPLES_FOR[name[:3]]
        (few if found < needed else enough).append(samples(name, found, needed))
    if few:
        return triggered("; ".join(few))
    return clear("; ".join(enough)) if enough else unknown("sample sizes are not known")


COUNTING: tuple[Rule, ...] = (metrics_missing, acceptance_mismatch)
RULES: tuple[Rule, ...] = (
    zero_acceptance,
    low_acceptance,
    low_coverage,
    weak_later_positions,
    implausible_acceptance,
    too_few_samples,
)
