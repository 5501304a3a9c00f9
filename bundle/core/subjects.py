"""A run folder's evidence as subjects of the checklist: every group, task and load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from bundle.core import confounds
from bundle.core.acceptance import check_requests, check_trimming
from bundle.core.design import baseline, cells, expanded_groups
from bundle.core.effects import PERCENTILES, CellFit, Key, geometric_mean
from bundle.core.evidence import CellEvidence, Evidence, Start
from bundle.core.findings.subject import Arm, Band, LoadPoint, Rates, Subject
from bundle.core.limits import kv_needed, kv_tokens
from bundle.core.quality import GroupQuality, normal_lengths
from bundle.core.quality_pass import MISSING_STATS
from bundle.core.recipe import Group, Load
from bundle.core.results import Acceptance
from bundle.core.verdict_records import CLOSED_LOOP, OPEN_LOOP


class Context(Struct, frozen=True, kw_only=True):
    """What was computed before the rules are asked."""

    fits: Mapping[Key, CellFit]
    acceptance: Sequence[Acceptance]
    quality: Mapping[str, GroupQuality]


def subjects_of(evidence: Evidence, context: Context) -> tuple[Subject, ...]:
    """One subject per planned cell of every method, in the order of the recipe."""
    methods = [g for g in expanded_groups(evidence.recipe) if g.role == "method"]
    return tuple(s for group in methods for s in _of_group(evidence, context, group))


def _of_group(evidence: Evidence, context: Context, group: Group) -> Iterator[Subject]:
    base = evidence.of(baseline(evidence.recipe).name)
    mine = evidence.of(group.name)
    recipe = evidence.recipe
    quality = context.quality.get(group.name)
    sizes = {load.label: load for load in recipe.loads}
    missing, expected = missing_metrics(mine) if group.speculative else (None, None)
    for cell in cells(recipe, group):
        lengths = normal_lengths(base, mine, cell.task)
        yield Subject(
            group=group.name,
            task=cell.task,
            load=cell.load,
            method=group.speculative.method if group.speculative else None,
            k=group.speculative.num_speculative_tokens if group.speculative else None,
            margin=math.log1p(recipe.policy.margin),
            tail_limit=math.log1p(recipe.policy.tail_worsening),
            kv_limit=recipe.policy.kv_capacity_loss,
            deciding=CLOSED_LOOP if cell.concurrency is not None else OPEN_LOOP,
            baseline=_arm(evidence, context, base, cell.task, cell.load, lengths[0]),
            arm=_arm(evidence, context, mine, cell.task, cell.load, lengths[1]),
            effects=bands(context.fits, group.name, cell.task, cell.load),
            acceptance=_rates(evidence, context, group, cell.task, cell.load),
            quality=quality.facts if quality else None,
            started=_started(mine),
            log_causes=_causes(mine),
            reference=None if confounds.is_plain_decode(base) else "a speculative server",
            reference_plain=confounds.is_plain_decode(base),
            identical=confounds.identical(base, mine),
            config_differences=confounds.config_differences(base, mine),
            engine_differences=confounds.engine_differences(base, mine),
            eager_meant=bool(recipe.serve.flags.get("enforce-eager", False)),
            prefix_cache_off=prefix_cache_off(recipe.serve.flags),
            synthetic=_synthetic(group, mine),
            dummy=_dummy(evidence, mine),
            prompt_differences=prompt_differences(base, mine, cell.task),
            metrics_missing=missing,
            metrics_expected=expected,
            loads=tuple(_points(context.fits, group.name, cell.task, sizes, cell.load)),
            kv_needed=kv_needed(evidence),
            percentiles=_percentiles(context.fits, group.name, cell.task, cell.load),
        )


def bands(fits: Mapping[Key, CellFit], group: str, task: str, load: str) -> dict[str, Band]:
    """Effects of one cell that may support a rule: percentiles only where they are stable."""
    found = {}
    for (t, at, metric), one in fits.items():
        effect = one.effect(group)
        if (t, at) == (task, load) and effect is not None and not one.unstable:
            found[metric] = Band(
                estimate=effect.log_effect,
                lower=effect.lower,
                upper=effect.upper,
                basis=effect.reason or f"95 % interval, {effect.starts} starts",
            )
    return found


def _percentiles(fits: Mapping[Key, CellFit], group: str, task: str, load: str) -> dict[str, int]:
    return {
        metric: one.fewest
        for (t, at, metric), one in fits.items()
        if (t, at) == (task, load) and metric in PERCENTILES and group in one.values
    }


def _arm(
    evidence: Evidence,
    context: Context,
    starts: Sequence[Start],
    task: str,
    load: str,
    mean_length: float | None,
) -> Arm:
    found = [cell for s in starts if (cell := s.cell(task, load)) is not None]
    benches = [c.bench for c in found if c.bench is not None]
    counters = [c.counters for c in found if c.counters is not None]
    both = [(c.bench, c.counters) for c in found if c.bench and c.counters]
    group = starts[0].run.group if starts else ""
    expected = {b.expected_output_tokens for b in benches}
    return Arm(
        values=_values(context.fits, group, task, load),
        tokens=tuple(float(b.output_tokens) for b in benches),
        expected_tokens=expected.pop() if len(expected) == 1 else None,
        requests=sum(b.completed for b in benches) if benches else None,
        missing=_missing(found),
        failed=sum(b.failed for b in benches) if benches else None,
        preemptions=sum(c.preemptions for c in counters) if counters else None,
        prefix_hits=sum(c.prefix_hits for c in counters) if counters else None,
        excess_tokens=sum(max(0, c.generation_tokens - b.output_tokens) for b, c in both)
        if both
        else None,
        excess_requests=sum(max(0, c.requests_finished - b.completed) for b, c in both)
        if both
        else None,
        eager=_eager(starts),
        kv_tokens=kv_tokens(evidence, group),
        kv_launches=(kv_tokens(evidence, group),),
        mean_length=mean_length,
        throttled=_throttled(found),
        denied=next((c.gpu.denied for c in found if c.gpu and c.gpu.denied), None),
    )


def _values(fits: Mapping[Key, CellFit], group: str, task: str, load: str) -> dict[str, float]:
    found = {}
    for (t, at, metric), one in fits.items():
        if (t, at) == (task, load):
            value = geometric_mean(v for _, v in one.values.get(group, ()))
            if value is not None:
                found[metric] = value
    return found


def _missing(found: Sequence[CellEvidence]) -> int:
    """Requests that never came back: of the bench, or at least one for a cell without a result."""
    lost = 0
    for cell in found:
        if cell.bench is None:
            lost += 1
        else:
            lost += max(0, cell.bench.planned - cell.bench.completed - cell.bench.failed)
    return lost


def _eager(starts: Sequence[Start]) -> bool | None:
    known = [s.facts.enforce_eager for s in starts if s.facts is not None]
    stated = [eager for eager in known if eager is not None]
    return any(stated) if stated else None


def _throttled(found: Sequence[CellEvidence]) -> tuple[str, ...] | None:
    if not found or any(c.gpu is None or c.gpu.denied for c in found):
        return None
    reasons = [reason for c in found if c.gpu for reason in c.gpu.throttle_reasons]
    return tuple(dict.fromkeys(reasons))


def _rates(
    evidence: Evidence, context: Context, group: Group, task: str, load: str
) -> Rates | None:
    """Acceptance of the cell; of the quality pass where the cell has no counters."""
    for scope in (load, "quality"):
        wanted = (group.name, task, scope)
        rows = [a for a in context.acceptance if (a.group, a.task, a.scope) == wanted]
        if rows:
            row = max(rows, key=lambda a: a.rounds)
            return Rates(
                accepted=row.accepted,
                drafted=row.drafted,
                rounds=row.rounds,
                rate=row.rate,
                length=row.length,
                per_position=row.per_position,
                histogram=row.histogram,
                coverage=row.coverage,
                effective=row.effective,
                requests=row.requests,
                runner=row.runner,
                mismatches=_mismatches(evidence.of(group.name), group, task, load),
            )
    return None


def _mismatches(
    starts: Sequence[Start], group: Group, task: str, load: str
) -> tuple[str, ...] | None:
    """Counts that disagree: trimming of the cell, and the quality pass by request."""
    k = group.speculative.num_speculative_tokens if group.speculative else 0
    checks = [check_requests(s.replies, s.quality_counters) for s in starts]
    found = [s.cell(task, load) for s in starts]
    checks += [check_trimming(c.counters, k=k) for c in found if c and c.counters]
    if not any(check.compared for check in checks):
        return None
    return tuple(text for check in checks for text in check.problems)


def _started(starts: Sequence[Start]) -> bool | None:
    """False where any start of the group ended before it was ready; None where none was tried."""
    if not starts:
        return None
    return not any(s.run.status == "failed" and s.facts is None for s in starts)


def _causes(starts: Sequence[Start]) -> tuple[tuple[str, str], ...]:
    causes = [(s.folder, s.run.cause) for s in starts if s.run.cause is not None]
    return tuple(
        (cause.id, f"{folder}: {cause.text}" + (f" ({cause.line})" if cause.line else ""))
        for folder, cause in causes
    )


def prefix_cache_off(flags: Mapping[str, object]) -> bool:
    """Whether the recipe switches prefix caching off."""
    return bool(flags.get("no-enable-prefix-caching", False))


def _synthetic(group: Group, starts: Sequence[Start]) -> bool | None:
    """From the resolved configuration where it is known, else from the recipe."""
    if group.speculative is None:
        return False
    for start in starts:
        config = (start.facts.config or {}) if start.facts else {}
        resolved = config.get("speculative_config") or {}
        if resolved.get("rejection_sample_method") == "synthetic":
            return True
    return group.speculative.rejection_sample_method == "synthetic"


def _dummy(evidence: Evidence, starts: Sequence[Start]) -> bool:
    formats = [evidence.recipe.serve.flags.get("load-format")]
    for start in starts:
        config = (start.facts.config or {}) if start.facts else {}
        formats.append((config.get("load_config") or {}).get("load_format"))
    return evidence.recipe.dummy_weights or "dummy" in formats


def prompt_differences(
    base: Sequence[Start], mine: Sequence[Start], task: str
) -> tuple[str, ...] | None:
    """Rendered prompts that differ between starts, or between the two request paths of one."""
    checks = [(s, c) for s in (*base, *mine) for c in s.run.prompts if c.task == task]
    found = [
        f"{s.folder}: chat and completions paths give other token ids"
        for s, c in checks
        if c.chat_sha256 != c.completions_sha256
    ]
    hashes = [{c.completions_sha256 for s, c in checks if s in side} for side in (base, mine)]
    if hashes[0] and hashes[1] and len(hashes[0] | hashes[1]) > 1:
        found.append(f"prompts of {task} have other token ids on one side")
    asked = [
        {r.item: r.prompt_sha256 for s in side for r in s.replies if r.prompt_sha256}
        for side in (base, mine)
    ]
    shared = asked[0].keys() & asked[1].keys()
    differ = sorted(item for item in shared if asked[0][item] != asked[1][item])
    if differ:
        found.append(f"{len(differ)} prompts of the quality pass differ, such as {differ[0]}")
    known = bool(hashes[0] and hashes[1]) or bool(shared)
    return tuple(found) if found or known else None


def missing_metrics(starts: Sequence[Start]) -> tuple[int | None, int | None]:
    """Replies of a speculative group without acceptance figures, and replies that should have."""
    replies = [r for s in starts for r in s.replies if r.error in (None, MISSING_STATS)]
    if not replies:
        return None, None
    return sum(r.speculative is None for r in replies), len(replies)


def _points(
    fits: Mapping[Key, CellFit], group: str, task: str, sizes: Mapping[str, Load], here: str
) -> Iterator[LoadPoint]:
    """Effects over the loads of the same kind as this one."""
    closed = sizes[here].concurrency is not None
    for (t, label, metric), one in fits.items():
        load, effect = sizes.get(label), one.effect(group)
        if t != task or load is None or effect is None:
            continue
        if (load.concurrency is not None) == closed and metric in (
            CLOSED_LOOP if closed else OPEN_LOOP
        ):
            size = load.concurrency if load.concurrency is not None else load.request_rate
            yield LoadPoint(
                label=label,
                size=float(size or 0),
                metric=metric,
                band=Band(
                    estimate=effect.log_effect,
                    lower=effect.lower,
                    upper=effect.upper,
                    basis=effect.reason or "95 % interval",
                ),
            )
