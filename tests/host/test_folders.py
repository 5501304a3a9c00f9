"""Run folders: whole files, one holder, resuming, moving finished runs aside."""

import errno
import os
from pathlib import Path

import pytest

from bundle.errors import BundleError, HostError, UsageError
from bundle.host.folders import (
    RunState,
    host_errors,
    open_run_folder,
    read_json,
    records,
    remove_partial,
    write_json,
    write_whole,
)

NOW = "2026-01-02T03:04:05+00:00"


def test_a_file_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "deep" / "file"
    write_whole(target, "one")
    assert target.read_text() == "one"

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HostError, match="no space is left") as caught:
        write_whole(target, "two")
    assert caught.value.exit_code == 8
    assert target.read_text() == "one"
    assert [p.name for p in target.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_an_unwritable_folder_is_named(tmp_path: Path, number: int) -> None:
    with pytest.raises(HostError, match="cannot write there"), host_errors(tmp_path):
        raise OSError(number, "no")


def test_other_errors_pass(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), host_errors(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "gone")


def test_json_that_is_missing_or_wrong_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="cannot read"):
        read_json(tmp_path / "none", RunState)
    write_json(tmp_path / "wrong", {"started": 3})
    with pytest.raises(BundleError, match="not the record expected"):
        read_json(tmp_path / "wrong", RunState)


def test_records_of_an_absent_file_are_none(tmp_path: Path) -> None:
    assert records(tmp_path / "none.jsonl", RunState) == ()
    write_whole(tmp_path / "two.jsonl", '{"started":"a","rounds":1}\n{"started":"b","rounds":2}\n')
    assert [r.started for r in records(tmp_path / "two.jsonl", RunState)] == ["a", "b"]


def test_an_unfinished_run_is_resumed_and_a_finished_one_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "work" / "r-1"
    folder, resumed = open_run_folder(path, fresh=False, rounds=2, now=NOW)
    assert not resumed
    write_whole(path / "runs" / "x", "measured")
    folder.release()
    folder, resumed = open_run_folder(path, fresh=False, rounds=2, now=NOW)
    assert resumed
    folder.save(RunState(started=NOW, rounds=2, finished=True))
    folder.release()
    folder, resumed = open_run_folder(path, fresh=False, rounds=3, now=NOW)
    assert resumed, "more rounds extend a finished run"
    folder.release()
    folder, resumed = open_run_folder(path, fresh=False, rounds=2, now="2027-01-01T00:00:00+00:00")
    assert not resumed
    folder.release()
    aside = tmp_path / "work" / "earlier" / "r-1-20260102T030405+0000"
    assert (aside / "runs" / "x").read_text() == "measured"
    assert not (path / "runs").exists()


def test_fresh_moves_even_an_unfinished_run_aside_and_twice(tmp_path: Path) -> None:
    path = tmp_path / "r"
    for _ in range(3):
        folder, resumed = open_run_folder(path, fresh=True, rounds=1, now=NOW)
        write_whole(path / "runs" / "x", "y")
        folder.release()
        assert not resumed


def test_a_second_tool_is_refused(tmp_path: Path) -> None:
    folder, _ = open_run_folder(tmp_path / "r", fresh=False, rounds=1, now=NOW)
    with pytest.raises(UsageError, match="another specbundle works on this run"):
        open_run_folder(tmp_path / "r", fresh=False, rounds=1, now=NOW)
    folder.release()


def test_half_outputs_are_removed(tmp_path: Path) -> None:
    write_whole(tmp_path / "1" / "0-a.partial" / "cells" / "x.partial.json", "half")
    (tmp_path / "1" / "0-a.partial" / "y.partial").write_text("half")
    write_whole(tmp_path / "1" / "1-b" / "run.json", "whole")
    remove_partial(tmp_path)
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()] == [
        "1/1-b/run.json"
    ]
