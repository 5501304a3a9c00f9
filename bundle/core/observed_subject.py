"""A report's cells as subjects of the checklist, with the assumed noise as their bounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from bundle.core.findings.subject import (
    Arm,
    LoadPoint,
    QualityFacts,
    Subject,
)
from bundle.core.log_words import LogFacts, read_log
from bundle.core.observed import (
    Observation,
    ObservedAcceptance,
    ObservedArm,
    ObservedCell,
    Scalar,
)
from bundle.core.observed_acceptance import rates_of
from bundle.core.observed_facts import (
    NO_METHOD,
    answered,
    beyond,
    cache_off,
    config_differences,
    engine_differences,
    facts_of,
    first,
    is_eager,
    is_plain,
    method_of,
    preemptions,
    prompt_differences,
    speculates,
    stated,
    throttled,
    tokens_of,
    work_of,
)
from bundle.core.observed_metrics import (
    deciding_of,
    effects_of,
    noise_of,
    percentiles_of,
    spreads_of,
    values_of,
)
from bundle.core.observed_quality import bare_quality


def subjects_of(report: Observation, *, assume_noise: float, margin: float) -> tuple[Subject, ...]:
    """One subject per cell, in order; one without a task where the report has no cells."""
    log = read_log(report.log_lines)
    cells = report.cells or (ObservedCell(task="none"),)
    subjects = [_subject(report, cell, log, assume_noise, margin) for cell in cells]
    named = _told_apart([_with_loads(s, report.cells, subjects) for s in subjects])
    worst = max((s.quality for s in named if s.quality), key=_severity, default=None)
    return tuple(replace(s, quality=_graver(s.quality, worst)) for s in named)


def _graver(own: QualityFacts | None, worst: QualityFacts | None) -> QualityFacts | None:
    """Quality is the group's: a defect found on one task is one on every other."""
    if worst is not None and (own is None or worst.state == "BROKEN"):
        return worst
    return own


def _severity(quality: QualityFacts) -> int:
    return ("NOT MEASURED", "SHOWN", "NOT SHOWN", "BROKEN").index(quality.state)


def _told_apart(subjects: list[Subject]) -> list[Subject]:
    """Cells that share task and load get a number, so that each is judged."""
    seen: Counter[tuple[str | None, str | None]] = Counter()
    named = []
    for s in subjects:
        seen[s.task, s.load] += 1
        count = seen[s.task, s.load]
        named.append(s if count == 1 else replace(s, load=f"{s.load} ({count})"))
    return named


def _subject(
    report: Observation, cell: ObservedCell, log: LogFacts, assumed: float, margin: float
) -> Subject:
    facts = facts_of(report, cell)
    cell = _with_logged(cell, log)
    method, k = method_of(report.method), report.num_speculative_tokens
    noise = noise_of(cell, assumed)
    baseline = _arm((cell.baseline, cell.speculative), facts, 0, log, report.kv_launches[0])
    arm = _arm((cell.speculative, cell.baseline), facts, 1, log, report.kv_launches[1])
    ran = answered(cell, log)
    arm = replace(arm, died=log.died if ran else None, hits_logged=log.hits)
    if baseline.eager is None:
        baseline = replace(baseline, eager=is_eager(report.reference))
    effects = effects_of(baseline, arm, noise, assumed, spreads_of(cell))
    deciding = deciding_of(cell, effects)
    slower = any(effects[m].worse for m in deciding if m in effects)
    identical = _identical(method, k, slower)
    runner = _text(facts.get("runner", (None, None))[1])
    missing = first(cell.speculative.metrics_missing, log.no_figures or None)
    return Subject(
        group=report.method or "speculative",
        task=cell.task,
        load=cell.load,
        method=method,
        k=k,
        margin=math.log1p(margin),
        deciding=deciding,
        baseline=baseline,
        arm=arm,
        effects=effects,
        acceptance=rates_of(cell, method=method, k=k, windows=log.windows, runner=runner),
        quality=bare_quality(cell.baseline, cell.speculative),
        started=_started(ran, log),
        log_causes=tuple(c for c in log.causes if not ran or c[0] == "out-of-memory"),
        reference=report.reference,
        reference_plain=(
            False if speculates(facts) else is_plain(report.reference, alike=identical is True)
        ),
        identical=identical,
        config_differences=config_differences(facts),
        engine_differences=engine_differences(facts, log),
        synthetic=stated(facts, "rejection_sample_method", "synthetic", log.synthetic),
        prompt_differences=prompt_differences(cell),
        dummy=stated(facts, "load_format", "dummy", log.dummy),
        prefix_cache_off=cache_off(facts),
        metrics_missing=missing,
        metrics_expected=_expected(missing, arm.requests),
        percentiles=percentiles_of(cell),
    )


def _identical(method: str | None, k: int | None, slower: bool) -> bool | None:
    """Whether both sides are one configuration; None where the method is not known.

    A method that proposes nothing (a schedule that has come to 0) can gain nothing and can still
    cost: it is another server only as far as it is slower.
    """
    return None if method is None else method in NO_METHOD or (k == 0 and not slower)


def _expected(missing: int | None, answered: int | None) -> int | None:
    """Replies that should have figures: all that came, but no fewer than those without."""
    if missing is None or answered is None:
        return missing
    return max(missing, answered)


def _with_logged(cell: ObservedCell, log: LogFacts) -> ObservedCell:
    """Acceptance as the log lines tell it alike, where the cell and the log have no other."""
    told = set(log.ratios)
    if cell.acceptance != ObservedAcceptance() or log.windows or len(told) != 1:
        return cell
    length, rate = told.pop()
    alike = ObservedAcceptance(mean_acceptance_length=length, acceptance_rate=rate)
    return replace(cell, acceptance=alike)


def _arm(
    sides: tuple[ObservedArm, ObservedArm],
    facts: Mapping[str, tuple[Scalar, Scalar]],
    at: int,
    log: LogFacts,
    launches: tuple[int, ...],
) -> Arm:
    """The first of two sides, as it compares with the other."""
    side = sides[0]
    tokens, tolerance = work_of(*sides)
    eager = facts.get("enforce_eager", (None, None))[at]
    kv = facts.get("kv_cache_tokens", (None, None))[at]
    told = log.kv_tokens if at and kv is None else kv
    capacity = launches or ((int(told),) if isinstance(told, int | float) and told > 0 else ())
    requests = side.completed if side.completed is not None else side.requests
    missing = None
    if side.requests is not None and side.completed is not None:
        missing = max(0, side.requests - side.completed - (side.failed or 0))
    return Arm(
        values=values_of(*sides),
        peak_throughput=side.metrics.get("peak_output_throughput") or None,
        tokens=tokens,
        expected_tokens=side.expected_output_tokens if tokens == tokens_of(side)[0] else None,
        token_tolerance=tolerance,
        requests=requests,
        missing=missing,
        failed=side.failed,
        preemptions=preemptions(side, facts, at, log),
        prefix_hits=first(side.prefix_hits, facts.get("prefix_hits", (None, None))[at]),
        eager=bool(eager) if eager is not None else (True if log.eager else None),
        kv_tokens=capacity,
        kv_launches={"": capacity},
        excess_tokens=beyond(side.server_output_tokens, side.output_tokens),
        excess_requests=beyond(side.server_requests, requests),
        mean_length=side.mean_output_tokens,
        throttled=throttled(facts.get("throttled", (None, None))[at], log.throttled, at),
        denied=log.denied if at else None,
    )


def _with_loads(
    subject: Subject, cells: tuple[ObservedCell, ...], subjects: list[Subject]
) -> Subject:
    """Add the effects of the same task at every load of the same kind."""
    return replace(subject, loads=tuple(_points(subject, cells, subjects)))


def _points(
    subject: Subject, cells: tuple[ObservedCell, ...], subjects: list[Subject]
) -> Iterator[LoadPoint]:
    for cell, other in zip(cells, subjects, strict=False):
        size = cell.concurrency if cell.concurrency is not None else cell.request_rate
        if other.task == subject.task and other.deciding == subject.deciding and size:
            for metric, band in other.effects.items():
                if metric in other.deciding:
                    yield LoadPoint(label=cell.load, size=size, metric=metric, band=band)


def _started(ran: bool, log: LogFacts) -> bool | None:
    if ran:
        return True
    return False if log.causes else None


def _text(value: Scalar) -> str | None:
    return None if value is None else str(value)
