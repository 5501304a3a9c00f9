"""Finished runs stay; damaged ones are measured again."""

import hashlib
from pathlib import Path

import msgspec

from bundle.core.design import PlannedRun
from bundle.core.records import Cause, RunRecord
from bundle.stages.run import finished_run, run_all
from tests.silent import Silent

PLANS = tuple(PlannedRun(block=1, position=i, group=f"g{i}", quality=False) for i in range(3))


def record(plan: PlannedRun, *, cause: Cause | None = None) -> RunRecord:
    return RunRecord(
        block=plan.block,
        position=plan.position,
        group=plan.group,
        role="method",
        primer=False,
        status="failed" if cause else "ok",
        started="2026-01-01T00:00:00+00:00",
        argv=(),
        env={},
        seconds={},
        cause=cause,
    )


class Lab:
    """Measures by writing a finished folder; remembers what it measured."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.measured: list[str] = []

    def __call__(self, plan: PlannedRun) -> RunRecord:
        self.measured.append(plan.group)
        made = record(plan, cause=Cause(id="x", text="died") if plan.group == "g1" else None)
        folder = self.runs / plan.folder
        folder.mkdir(parents=True, exist_ok=True)
        content = msgspec.json.encode(made)
        (folder / "run.json").write_bytes(content)
        (folder / "DONE").write_text(f"{hashlib.sha256(content).hexdigest()}  run.json\n")
        return made


class Watcher(Silent):
    def __init__(self) -> None:
        self.ends: list[tuple[str, str | None, bool]] = []

    def finished(self, run: PlannedRun, *, failed: str | None, seconds: float) -> None:
        self.ends.append((run.group, failed, seconds > 0))


def test_every_plan_is_measured_once_and_a_failed_run_stays_failed(tmp_path: Path) -> None:
    lab, watcher = Lab(tmp_path), Watcher()
    first = run_all(tmp_path, PLANS, lab, watcher)
    assert lab.measured == ["g0", "g1", "g2"]
    assert [now for _, _, now in first] == [True, True, True]
    again = run_all(tmp_path, PLANS, lab, watcher)
    assert lab.measured == ["g0", "g1", "g2"]
    assert [r.status for _, r, _ in again] == ["ok", "failed", "ok"]
    assert watcher.ends[3:] == [("g0", None, False), ("g1", "died", False), ("g2", None, False)]


def test_a_half_or_changed_run_is_measured_again(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    run_all(tmp_path, PLANS, lab, Silent())
    (tmp_path / PLANS[0].folder / "DONE").unlink()
    (tmp_path / PLANS[2].folder / "run.json").write_text("{}")
    (tmp_path / "1" / "0-g0.partial").mkdir()
    run_all(tmp_path, PLANS, lab, Silent())
    assert lab.measured == ["g0", "g1", "g2", "g0", "g2"]
    assert not (tmp_path / "1" / "0-g0.partial").exists()


def test_a_run_with_a_missing_file_is_not_finished(tmp_path: Path) -> None:
    Lab(tmp_path)(PLANS[0])
    folder = tmp_path / PLANS[0].folder
    assert finished_run(folder) is not None
    (folder / "run.json").unlink()
    assert finished_run(folder) is None
    assert finished_run(tmp_path / "nowhere") is None
