"""Run: one planned start after another; what finished stays, what is left is measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from bundle.core.design import PlannedRun
from bundle.core.manifest import parse_manifest
from bundle.core.progress import Progress
from bundle.core.records import RunRecord
from bundle.host.folders import read_json, remove_partial
from bundle.host.hashing import sha256_of
from bundle.host.leftovers import end_leftovers

Measure = Callable[[PlannedRun], RunRecord]


def run_all(
    runs: Path, plans: Iterable[PlannedRun], measure: Measure, progress: Progress
) -> tuple[tuple[str, RunRecord, bool], ...]:
    """Measure every planned run that is not finished yet.

    Args:
        runs: the ``runs`` folder.
        plans: the order of runs.
        measure: measures one run and leaves its finished folder behind.
        progress: who watches.

    Returns:
        Folder, record and whether it was measured now, for every plan in order.
    """
    # First the processes that outlived both the tool and its guardian: their ids lie in the halves.
    end_leftovers(runs)
    remove_partial(runs)
    return tuple(_one(runs, plan, measure, progress) for plan in plans)


def _one(
    runs: Path, plan: PlannedRun, measure: Measure, progress: Progress
) -> tuple[str, RunRecord, bool]:
    record = finished_run(runs / plan.folder)
    if record is not None:
        progress.finished(plan, failed=_failed(record), seconds=0.0)
        return plan.folder, record, False
    progress.started(plan)
    began = time.monotonic()
    record = measure(plan)
    progress.finished(plan, failed=_failed(record), seconds=time.monotonic() - began)
    return plan.folder, record, True


def _failed(record: RunRecord) -> str | None:
    return record.cause.text if record.cause is not None else None


def finished_run(folder: Path) -> RunRecord | None:
    """The record of a finished run, or None where there is none or a file is not as it was left."""
    done = folder / "DONE"
    if not done.exists():
        return None
    entries = parse_manifest(done.read_text(), algorithm="sha256").entries
    for name, expected in entries.items():
        if not (folder / name).is_file() or sha256_of(folder / name) != expected:
            return None
    return read_json(folder / "run.json", RunRecord)
