"""From starts to effects: one log performance per start, fitted cell by cell and metric by metric.

The unit is the server start. Percentiles go through the same layout, one log percentile a start;
with fewer than 200 requests a start a P95 is unstable, with fewer than 1,000 a P99
(MEASUREMENT: statistics).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from msgspec import Struct

from bundle.core.chunks import Chunks, chunks_of
from bundle.core.design import baseline, expanded_groups
from bundle.core.evidence import Bench, CellEvidence, Evidence, Start
from bundle.core.layout import BASELINE, Effect, Fit, Sample, fit
from bundle.core.least_squares import t_quantile
from bundle.core.results import CellStats, EffectRow
from bundle.core.verdict_records import REQUESTS_NEEDED

LARGER_IS_BETTER = frozenset({"output_throughput"})
UNITS = {"output_throughput": "tok/s"}
PERCENTILES = tuple(f"p{p}_{m}" for m in ("tpot", "ttft", "itl") for p in (95, 99))
METRICS = ("tpot", "output_throughput", "e2el", "ttft", *PERCENTILES)
_POWER = {"mean_power": ("power", "W"), "energy": ("energy", "J")}

Key = tuple[str, str, str]
"""Task, load, metric."""


class CellFit(Struct, frozen=True, kw_only=True):
    """The fit of one cell and metric, and the values it rests on by group, one per start."""

    task: str
    load: str
    metric: str
    fit: Fit
    values: Mapping[str, tuple[tuple[str, float], ...]]
    fewest: int

    @property
    def unstable(self) -> str:
        """Why this percentile decides nothing, or an empty text."""
        if self.metric not in PERCENTILES:
            return ""
        needed = REQUESTS_NEEDED[int(self.metric[1:3])]
        if self.fewest >= needed:
            return ""
        return f"unstable: {self.fewest} samples a start, {needed} needed"

    def effect(self, group: str) -> Effect | None:
        """The effect of one group, or None where it has none."""
        return self.fit.effects.get(group)


def metrics_of(bench: Bench) -> dict[str, float]:
    """The metrics of one cell: milliseconds, and output tokens per second."""
    found = {
        "tpot": bench.mean_tpot,
        "output_throughput": bench.output_throughput,
        "e2el": bench.mean_e2el,
        "ttft": bench.mean_ttft,
        **{name: bench.percentiles.get(f"{name}_ms") for name in PERCENTILES},
    }
    return {name: value for name, value in found.items() if value is not None and value > 0}


def counts(cell: CellEvidence) -> bool:
    """Whether a cell's timing may be used: it ran, and every request came back."""
    bench = cell.bench
    return (
        cell.failed is None
        and bench is not None
        and bench.failed == 0
        and bench.completed == bench.planned
    )


def usable(evidence: Evidence) -> Iterator[tuple[Start, CellEvidence, Bench]]:
    """Every measured cell whose timing may be used, in the order of runs."""
    for start in evidence.starts:
        if not start.run.primer:
            for cell in start.cells:
                if cell.bench is not None and counts(cell):
                    yield start, cell, cell.bench


def fit_all(evidence: Evidence, *, reference: str | None = None) -> dict[Key, CellFit]:
    """Fit every cell and metric.

    Args:
        evidence: the run folder's evidence.
        reference: a group to measure against in place of the recipe's baseline.
    """
    base = baseline(evidence.recipe).name
    methods = max(1, len(expanded_groups(evidence.recipe)) - 1)
    found: dict[Key, list[tuple[Start, float, int]]] = {}
    for start, cell, bench in usable(evidence):
        for metric, value in metrics_of(bench).items():
            samples = _samples_behind(metric, cell, bench)
            found.setdefault((cell.task, cell.load, metric), []).append((start, value, samples))
    return {
        key: _fit_one(key, rows, base, methods, reference or base) for key, rows in found.items()
    }


def _samples_behind(metric: str, cell: CellEvidence, bench: Bench) -> int:
    """How many values a percentile is taken over: requests, or pauses between chunks."""
    if not metric.endswith("_itl"):
        return bench.completed
    if bench.pauses is None and cell.counters is not None:
        return cell.counters.decode_rounds
    return bench.completed if bench.pauses is None else bench.pauses


def _fit_one(
    key: Key, rows: list[tuple[Start, float, int]], base: str, methods: int, reference: str
) -> CellFit:
    task, load, metric = key
    sign = 1 if metric in LARGER_IS_BETTER else -1
    arms = {base: BASELINE}
    samples = [
        Sample(
            block=start.run.block,
            position=start.run.position,
            arm=arms.get(start.run.group, start.run.group),
            y=sign * math.log(value),
        )
        for start, value, _ in rows
    ]
    values: dict[str, tuple[tuple[str, float], ...]] = {}
    for start, value, _ in rows:
        group = start.run.group
        values[group] = (*values.get(group, ()), (start.folder, value))
    return CellFit(
        task=task,
        load=load,
        metric=metric,
        fit=fit(samples, methods=methods, reference=arms.get(reference, reference)),
        values=values,
        fewest=min(n for _, _, n in rows),
    )


def effect_rows(evidence: Evidence, fits: Mapping[Key, CellFit]) -> tuple[EffectRow, ...]:
    """Every effect of every group, in the recipe's order."""
    base = baseline(evidence.recipe).name
    groups = [g.name for g in expanded_groups(evidence.recipe) if g.name != base]
    streams = _streams(evidence)
    return tuple(
        _row(one, group, base, streams.get((group, one.task, one.load)))
        for one in fits.values()
        for group in groups
        if group in one.fit.effects
    )


def _streams(evidence: Evidence) -> dict[tuple[str, str, str], Chunks | None]:
    """What the outputs came in, by group, task and load."""
    found: dict[tuple[str, str, str], list[Bench]] = {}
    for start, cell, bench in usable(evidence):
        found.setdefault((start.run.group, cell.task, cell.load), []).append(bench)
    return {key: chunks_of(benches) for key, benches in found.items()}


def _row(one: CellFit, group: str, base: str, stream: Chunks | None) -> EffectRow:
    effect = one.fit.effects[group]
    pauses = stream if one.metric.endswith("_itl") else None
    return EffectRow(
        group=group,
        task=one.task,
        load=one.load,
        metric=one.metric,
        unit=UNITS.get(one.metric, "ms"),
        baseline=geometric_mean(v for _, v in one.values.get(base, ())),
        value=geometric_mean(v for _, v in one.values.get(group, ())),
        ratio=effect.ratio,
        lower=effect.lower_ratio,
        upper=effect.upper_ratio,
        noise_sd=one.fit.noise_sd,
        starts=effect.starts,
        df=effect.df,
        chunk_tokens=pauses.per_chunk if pauses is not None and pauses.merged else None,
        note="; ".join(text for text in (one.unstable, effect.reason or "") if text),
    )


def geometric_mean(values: Iterator[float]) -> float | None:
    """Mean on the log scale, the scale that effects live on; None without values."""
    logs = [math.log(v) for v in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def aa_rows(evidence: Evidence, fits: Mapping[Key, CellFit]) -> tuple[EffectRow, ...]:
    """The last baseline of a block against its first: drift and noise without any method.

    The interval is that of a mean of block differences, on B - 1 degrees of freedom.
    """
    base = baseline(evidence.recipe).name
    return tuple(row for one in fits.values() if (row := _aa(one, base)) is not None)


def _aa(one: CellFit, base: str) -> EffectRow | None:
    if one.fit.aa_mean is None:
        return None
    blocks = len({start.split("/")[0] for start, _ in one.values.get(base, ())})
    half = None
    if one.fit.aa_sd is not None:
        half = t_quantile(0.975, blocks - 1) * one.fit.aa_sd / math.sqrt(blocks)
    value = geometric_mean(v for _, v in one.values.get(base, ()))
    return EffectRow(
        group=base,
        task=one.task,
        load=one.load,
        metric=one.metric,
        unit=UNITS.get(one.metric, "ms"),
        baseline=value,
        value=value,
        ratio=math.exp(one.fit.aa_mean),
        lower=None if half is None else math.exp(one.fit.aa_mean - half),
        upper=None if half is None else math.exp(one.fit.aa_mean + half),
        noise_sd=one.fit.noise_sd,
        starts=len(one.values.get(base, ())),
        df=None if half is None else blocks - 1,
        note="last baseline of a block against its first",
    )


def cell_stats(evidence: Evidence, fits: Mapping[Key, CellFit]) -> tuple[CellStats, ...]:
    """Raw values per start, what a reader can check by hand; power and energy where sampled."""
    rows = [
        CellStats(
            group=group,
            task=one.task,
            load=one.load,
            metric=one.metric,
            unit=UNITS.get(one.metric, "ms"),
            values=tuple(v for _, v in values),
            starts=tuple(s for s, _ in values),
        )
        for one in fits.values()
        for group, values in one.values.items()
    ]
    return (*rows, *_power(evidence))


def _power(evidence: Evidence) -> Iterator[CellStats]:
    found: dict[tuple[str, str, str, str, str], list[tuple[str, float]]] = {}
    for start, cell, bench in usable(evidence):
        for metric, unit, value in _power_values(cell, bench):
            key = (start.run.group, cell.task, cell.load, metric, unit)
            found.setdefault(key, []).append((start.folder, value))
    for (group, task, load, metric, unit), values in found.items():
        yield CellStats(
            group=group,
            task=task,
            load=load,
            metric=metric,
            unit=unit,
            values=tuple(v for _, v in values),
            starts=tuple(s for s, _ in values),
        )


def _power_values(cell: CellEvidence, bench: Bench) -> Iterator[tuple[str, str, float]]:
    if cell.gpu is None:
        return
    for name, (metric, unit) in _POWER.items():
        value = getattr(cell.gpu, name)
        if value is not None:
            yield metric, unit, value
    if cell.gpu.energy is not None and bench.output_tokens:
        yield "energy per output token", "J/token", cell.gpu.energy / bench.output_tokens
