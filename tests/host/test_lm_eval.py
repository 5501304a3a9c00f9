"""The process of lm-evaluation-harness: how it is tied, how it ends, what is kept of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bundle.errors import EngineError, ServerError
from bundle.host import lm_eval_guard as guard
from bundle.host.lm_eval import LmEvalJob, collect, evaluate
from tests.host.engines import alive, wait_until

ENV = {"PATH": os.environ["PATH"], "HF_HUB_CACHE": "/nowhere", "PYTHONPATH": "/nowhere"}


def program(folder: Path, script: str) -> Path:
    """A stand-in for the interpreter, which gets the guard and the harness's arguments."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def job(folder: Path, python: Path, **changes: object) -> LmEvalJob:
    fields = {
        "python": python,
        "argv": ("run", "--tasks", "t"),
        "tasks": folder,
        "log": folder / "lm_eval.log",
        "stall_seconds": 30.0,
    }
    return LmEvalJob(**{**fields, **changes})


def nothing() -> None:
    """A server that lives."""


def test_it_gets_the_vector_offline_with_a_cache_of_its_own(tmp_path: Path) -> None:
    python = program(tmp_path, 'echo "$@"; pwd; env | sort')
    evaluate(job(tmp_path, python), ENV, check=nothing)
    lines = (tmp_path / "lm_eval.log").read_text().splitlines()
    assert lines[0] == f"-I {guard.__file__} run --tasks t"
    assert lines[1] == str(tmp_path)
    names = dict(line.partition("=")[::2] for line in lines[2:])
    assert {names[n] for n in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE")} == {
        "1"
    }
    assert not Path(names["HF_HOME"]).exists(), "its cache ended with it"
    assert "PYTHONPATH" not in names
    assert "HF_HUB_CACHE" not in names


def test_a_failure_says_the_last_words(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"exit code 1: ModuleNotFoundError: .*lm_eval"):
        evaluate(job(tmp_path, Path(sys.executable)), ENV, check=nothing)
    with pytest.raises(EngineError, match="exit code 3: it wrote nothing"):
        evaluate(job(tmp_path, program(tmp_path, "exit 3")), ENV, check=nothing)


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="expected the interpreter of lm_eval, found: No such"):
        evaluate(job(tmp_path, tmp_path / "none"), ENV, check=nothing)


def test_one_that_stands_still_is_ended_with_its_children(tmp_path: Path) -> None:
    python = program(tmp_path, f"sleep 60 & echo $! > {tmp_path}/child; wait")
    with pytest.raises(EngineError, match="expected lm_eval to go on, found nothing for 1 s"):
        evaluate(job(tmp_path, python, stall_seconds=1.0), ENV, check=nothing)
    child = int((tmp_path / "child").read_text())
    assert wait_until(lambda: not alive(child))


def test_words_in_the_log_are_progress(tmp_path: Path) -> None:
    python = program(tmp_path, "for i in 1 2 3 4 5 6; do echo $i; sleep 0.4; done")
    evaluate(job(tmp_path, python, stall_seconds=1.5), ENV, check=nothing)


def test_a_lost_server_ends_it(tmp_path: Path) -> None:
    def lost() -> None:
        raise ServerError("gone")

    began = time.monotonic()
    with pytest.raises(ServerError, match="gone"):
        evaluate(job(tmp_path, program(tmp_path, "sleep 60")), ENV, check=lost)
    assert time.monotonic() - began < 20


def test_what_it_wrote_is_kept_without_its_date(tmp_path: Path) -> None:
    made = tmp_path / "out" / "model"
    made.mkdir(parents=True)
    date = "2026-12-01T10-00-00.123456"
    (made / f"results_{date}.json").write_text("{}")
    (made / f"samples_a_{date}.jsonl").write_text("a\n")
    (made / f"samples_a_b_{date}.jsonl").write_text("b\n")
    collect(tmp_path / "out", ("a", "a_b"), tmp_path / "kept")
    assert {p.name: p.read_text() for p in (tmp_path / "kept").iterdir()} == {
        "results.json": "{}",
        "samples.a.jsonl": "a\n",
        "samples.a_b.jsonl": "b\n",
    }
    with pytest.raises(EngineError, match=r"expected samples_c_.*\.jsonl of lm_eval, found none"):
        collect(tmp_path / "out", ("c",), tmp_path / "kept")
    (made / "results_later.json").write_text("{}")
    with pytest.raises(EngineError, match="expected one results file of lm_eval, found 2"):
        collect(tmp_path / "out", ("a",), tmp_path / "kept")


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        (b"127.0.0.1", True),
        ("localhost", True),
        (b"localhost", True),
        (None, True),
        ("/run/socket", True),
        ("0.0.0.0", False),  # noqa: S104
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("example.org", False),
        ("", False),
    ],
)
def test_the_network_ends_at_loopback(host: object, local: bool) -> None:
    assert guard.is_local(host) is local


def test_the_ties() -> None:
    guard.tie("open", ("/etc/passwd", "r", 0))
    guard.tie("socket.connect", (None, ("127.0.0.1", 80)))
    guard.tie("socket.connect", (None, "/run/socket"))
    guard.tie("socket.getaddrinfo", ("localhost", 80, 0, 0, 0))
    for event, arguments in (
        ("socket.connect", (None, ("10.0.0.1", 80))),
        ("socket.getaddrinfo", ("example.org", 443, 0, 0, 0)),
        ("socket.sendto", (None, ("10.0.0.1", 53))),
    ):
        with pytest.raises(ConnectionRefusedError, match="the network ends at loopback"):
            guard.tie(event, arguments)
    for event in ("subprocess.Popen", "os.system", "os.posix_spawn"):
        with pytest.raises(FileNotFoundError, match="no program may be started"):
            guard.tie(event, ())
    with pytest.raises(PermissionError, match=r"may not name a function, found utils\.f"):
        guard.refuse_function("utils.f", Path())


def test_the_end_of_stdin_is_the_end(tmp_path: Path) -> None:
    script = (
        "import sys, time, runpy, threading;"
        f"g = runpy.run_path({guard.__file__!r});"
        "threading.Thread(target=g['end_with_the_tool'], daemon=True).start();"
        "print('up', flush=True); time.sleep(60)"
    )
    for own_group in (True, False):
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=own_group,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.communicate(timeout=20)
        assert process.returncode == (-9 if own_group else 1)
