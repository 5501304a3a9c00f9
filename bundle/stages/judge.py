"""Judge: the run folder's raw files into evidence, the evidence into ``results/``.

Reading is all that happens here; what the numbers mean is :mod:`bundle.core.judging`. The same
folder always gives the same bytes, so that a verifier can compare them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from bundle.core.bench_args import requested_lengths
from bundle.core.bench_result import parse_bench
from bundle.core.design import Cell, PlannedRun, cells, expanded_groups, planned_runs
from bundle.core.divergences import gaps_of
from bundle.core.evidence import Bench, CellEvidence, Counters, Evidence, Start
from bundle.core.gpu_samples import GpuSample, parse_samples, summary
from bundle.core.jsonl import decode_text, parse_rows
from bundle.core.judging import judge as judge_evidence
from bundle.core.metrics import increase, parse_metrics
from bundle.core.quality_checks import check
from bundle.core.quality_items import QualityItem, parse_quality
from bundle.core.recipe import Recipe
from bundle.core.records import AskedAgain, CellRecord, Reply, RunRecord, ServerFacts
from bundle.core.results import CellStats, Results
from bundle.core.workloads import Prompt, parse_workload
from bundle.errors import BundleError
from bundle.host.folders import read_json, write_json, write_whole
from bundle.stages.lm_eval_files import recorded_output

RESULTS = "results/results.json"
CELLS = "results/cells.csv"


def judge(folder: Path, *, narrowed: Sequence[str] = (), looks: Sequence[int] = ()) -> Results:
    """Judge a run folder and write ``results/``.

    Args:
        folder: the run folder, or the payload of a bundle.
        narrowed: in words, how the run was narrowed.
        looks: numbers of blocks at which the same data were judged before.

    Raises:
        BundleError: a file of the folder is missing or is not as it was written.
    """
    results = judge_evidence(read_evidence(folder, narrowed=narrowed, looks=looks))
    write_json(folder / RESULTS, results)
    write_whole(folder / CELLS, cells_csv(results.cells))
    return results


def read_evidence(
    folder: Path, *, narrowed: Sequence[str] = (), looks: Sequence[int] = ()
) -> Evidence:
    """Everything the judge may use, out of the files of a run folder."""
    recipe = read_json(folder / "recipes" / "recipe.json", Recipe)
    rows = {w.task: _workload(folder, w.path) for w in recipe.workloads}
    starts = tuple(
        start
        for plan in planned_runs(recipe)
        if (start := read_start(folder / "runs" / plan.folder, recipe, plan, rows)) is not None
    )
    items = {item.id: item for item in _quality_items(folder, recipe)}
    return Evidence(
        recipe=recipe,
        starts=starts,
        checks={s.folder: _checks(s.replies, items) for s in starts if s.replies},
        looks=tuple(looks),
        narrowed=tuple(narrowed),
        gaps=gaps_of(row for start in starts for row in start.asked_again),
    )


def read_start(
    folder: Path, recipe: Recipe, plan: PlannedRun, rows: dict[str, tuple[Prompt, ...]]
) -> Start | None:
    """One finished start; None where it has not run."""
    if not (folder / "run.json").is_file():
        return None
    run = read_json(folder / "run.json", RunRecord)
    if (run.block, run.position, run.group) != (plan.block, plan.position, plan.group):
        raise BundleError(
            f"expected the record of {plan.folder}, found that of "
            f"{run.block}/{run.position}-{run.group}",
            where=str(folder / "run.json"),
            next_step="this file does not belong here; verify the bundle",
        )
    facts = folder / "facts.json"
    replies = folder / "replies.jsonl"
    asked = folder / "divergences.jsonl"
    samples = _samples(folder / "gpu.jsonl")
    return Start(
        run=run,
        facts=read_json(facts, ServerFacts) if facts.is_file() else None,
        cells=tuple(_cells(folder, recipe, run, rows, samples)),
        replies=parse_rows(_text(replies), str(replies), Reply) if _filled(replies) else (),
        quality_counters=_quality_counters(folder),
        asked_again=parse_rows(_text(asked), str(asked), AskedAgain) if _filled(asked) else (),
        lm_eval=recorded_output(folder, run, recipe),
    )


def _cells(
    folder: Path,
    recipe: Recipe,
    run: RunRecord,
    rows: dict[str, tuple[Prompt, ...]],
    samples: Sequence[GpuSample],
) -> Iterable[CellEvidence]:
    group = next(g for g in expanded_groups(recipe) if g.name == run.group)
    planned = {(c.task, c.load): c for c in cells(recipe, group)}
    for record in run.cells:
        cell = planned.get((record.task, record.load))
        if cell is not None and _attempted(folder, record, cell):
            yield CellEvidence(
                task=record.task,
                load=record.load,
                bench=_bench(folder, cell, rows[cell.task], recipe.design.seed),
                counters=_increase(
                    folder / "cells" / f"{cell.key}.before.prom",
                    folder / "cells" / f"{cell.key}.after.prom",
                ),
                gpu=summary(samples, cell.key),
                failed=record.reason if record.status == "failed" else None,
            )


def _attempted(folder: Path, record: CellRecord, cell: Cell) -> bool:
    """Whether the cell was begun. One that its server did not live to see has no numbers to lack:
    the start drops out, and the run's cause says why."""
    begun = (folder / "cells" / f"{cell.key}.before.prom").is_file()
    return record.status == "ok" or record.seconds > 0 or begun


def _bench(folder: Path, cell: Cell, rows: Sequence[Prompt], seed: int) -> Bench | None:
    path = folder / "cells" / f"{cell.key}.bench.json"
    if not path.is_file():
        return None
    return parse_bench(
        path.read_bytes(),
        planned=cell.requests,
        expected_output_tokens=sum(requested_lengths(cell, rows, seed)),
        where=str(path),
    )


def _quality_counters(folder: Path) -> Counters | None:
    """The increase over the quality pass, which begins where the facts were taken."""
    return _increase(folder / "metrics-start.prom", folder / "quality.after.prom")


def _increase(before: Path, after: Path) -> Counters | None:
    if not before.is_file() or not after.is_file():
        return None
    pages = [parse_metrics(_text(page), str(page)) for page in (before, after)]
    return increase(pages[0], pages[1])


def _samples(path: Path) -> tuple[GpuSample, ...]:
    return parse_samples(_text(path), str(path)) if _filled(path) else ()


def _workload(folder: Path, path: str) -> tuple[Prompt, ...]:
    copy = folder / "inputs" / Path(path).name
    return parse_workload(_text(copy), str(copy))


def _quality_items(folder: Path, recipe: Recipe) -> tuple[QualityItem, ...]:
    copy = folder / "inputs" / Path(recipe.quality.path).name
    return parse_quality(_text(copy), str(copy)) if copy.is_file() else ()


def _checks(replies: Sequence[Reply], items: dict[str, QualityItem]) -> dict[str, bool]:
    """Whether each reply passes its item's check; replies that never came are absent."""
    return {
        reply.item: check(items[reply.item], reply.text).passed
        for reply in replies
        if reply.item in items and (reply.error is None or reply.text)
    }


def _filled(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"cannot read: {error.strerror}", where=str(path)) from error


def _text(path: Path) -> str:
    return decode_text(_bytes(path), str(path))


def cells_csv(stats: Sequence[CellStats]) -> str:
    """Every raw value as one tidy row: group, task, load, metric, unit, start, value."""
    rows = [
        (s.group, s.task, s.load, s.metric, s.unit, start, value)
        for s in stats
        for start, value in zip(s.starts, s.values, strict=True)
    ]
    columns = ["group", "task", "load", "metric", "unit", "start", "value"]
    return pd.DataFrame(rows, columns=columns).to_csv(index=False, lineterminator="\n")
