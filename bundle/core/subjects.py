"""A run folder's evidence as subjects of the checklist: every group, task and load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from bundle.core import confounds
from bundle.core.acceptance import check_requests, check_trimming
from bundle.core.chunks import chunks_of
from bundle.core.design import Cell, baseline, cells, expanded_groups
from bundle.core.effects import PERCENTILES, CellFit, Key, counts, geometric_mean
from bundle.core.evidence import Evidence, Start
from bundle.core.findings.subject import Arm, Band, LoadPoint, Rates, Subject
from bundle.core.limits import kv_needed, kv_tokens
from bundle.core.quality import GroupQuality, normal_lengths
from bundle.core.recipe import Group, Load
from bundle.core.results import Acceptance
from bundle.core.start_facts import (
    causes,
    dropped,
    eager_mode,
    is_dummy,
    is_synthetic,
    launches,
    missing_metrics,
    missing_requests,
    prefix_cache_off,
    prompt_differences,
    started,
    throttle_reasons,
)
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
    recipe = evidence.recipe
    reference = baseline(recipe).name
    base, mine = evidence.of(reference), evidence.of(group.name)
    plain = confounds.is_plain_decode(base)
    quality = context.quality.get(group.name)
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
            deciding=_deciding(cell),
            baseline=_arm(evidence, context, reference, cell.task, cell.load, lengths[0]),
            arm=_arm(evidence, context, group.name, cell.task, cell.load, lengths[1]),
            effects=bands(context.fits, group.name, cell.task, cell.load),
            acceptance=_rates(evidence, context, group, cell.task, cell.load),
            quality=quality.facts if quality else None,
            started=started(mine),
            dropped=dropped(mine),
            log_causes=causes(mine),
            reference=None if plain else "a speculative server",
            reference_plain=plain,
            identical=confounds.identical(base, mine),
            config_differences=confounds.config_differences(base, mine),
            engine_differences=confounds.engine_differences(base, mine),
            eager_meant=bool(recipe.serve.flags.get("enforce-eager", False)),
            prefix_cache_off=prefix_cache_off(recipe.serve.flags),
            synthetic=is_synthetic(group, mine),
            dummy=is_dummy(evidence, mine),
            prompt_differences=prompt_differences(base, mine, cell.task),
            metrics_missing=missing,
            metrics_expected=expected,
            loads=tuple(_points(context.fits, group.name, cell, _sizes(recipe.loads, cell))),
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
    group: str,
    task: str,
    load: str,
    mean_length: float | None,
) -> Arm:
    starts = evidence.of(group)
    found = [cell for s in starts if (cell := s.cell(task, load)) is not None]
    benches = [c.bench for c in found if c.bench is not None]
    counters = [c.counters for c in found if c.counters is not None]
    both = [(c.bench, c.counters) for c in found if c.bench and c.counters]
    expected = {b.expected_output_tokens for b in benches}
    return Arm(
        values=_values(context.fits, group, task, load),
        chunks=chunks_of(c.bench for c in found if c.bench is not None and counts(c)),
        tokens=tuple(float(b.output_tokens) for b in benches),
        expected_tokens=expected.pop() if len(expected) == 1 else None,
        requests=sum(b.completed for b in benches) if benches else None,
        missing=missing_requests(found),
        failed=sum(b.failed for b in benches) if benches else None,
        preemptions=sum(c.preemptions for c in counters) if counters else None,
        prefix_hits=sum(c.prefix_hits for c in counters) if counters else None,
        excess_tokens=sum(max(0, c.generation_tokens - b.output_tokens) for b, c in both)
        if both
        else None,
        excess_requests=sum(max(0, c.requests_finished - b.completed) for b, c in both)
        if both
        else None,
        eager=eager_mode(starts),
        kv_tokens=kv_tokens(evidence, group),
        kv_launches=launches(starts),
        mean_length=mean_length,
        throttled=throttle_reasons(found),
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
                mismatches=_mismatches(evidence.of(group.name), row.k, task, load),
            )
    return None


def _mismatches(starts: Sequence[Start], k: int, task: str, load: str) -> tuple[str, ...] | None:
    """Counts that disagree: trimming of the cell, and the quality pass by request."""
    checks = [check_requests(s.replies, s.quality_counters) for s in starts]
    found = [s.cell(task, load) for s in starts]
    checks += [check_trimming(c.counters, k=k) for c in found if c and c.counters]
    if not any(check.compared for check in checks):
        return None
    return tuple(text for check in checks for text in check.problems)


def _deciding(cell: Cell) -> tuple[str, ...]:
    return OPEN_LOOP if cell.concurrency is None else CLOSED_LOOP


def _sizes(loads: Sequence[Load], cell: Cell) -> dict[str, float]:
    """The loads of the cell's kind: clients of a closed loop, or requests per second."""
    if cell.concurrency is None:
        return {one.label: one.request_rate for one in loads if one.request_rate is not None}
    return {one.label: float(one.concurrency) for one in loads if one.concurrency is not None}


def _points(
    fits: Mapping[Key, CellFit], group: str, cell: Cell, sizes: Mapping[str, float]
) -> Iterator[LoadPoint]:
    """Effects on the deciding metrics over ``sizes``, the loads of the same kind as the cell's."""
    deciding = _deciding(cell)
    for (task, label, metric), one in fits.items():
        effect = one.effect(group)
        if task == cell.task and label in sizes and metric in deciding and effect is not None:
            yield LoadPoint(
                label=label,
                size=sizes[label],
                metric=metric,
                band=Band(
                    estimate=effect.log_effect,
                    lower=effect.lower,
                    upper=effect.upper,
                    basis=effect.reason or "95 % interval",
                ),
            )
