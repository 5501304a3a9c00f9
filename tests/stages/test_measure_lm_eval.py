"""An evaluation in a start: last of all, and whatever becomes of it, the cells stay."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from bundle.core.design import PlannedRun
from bundle.core.records import RunRecord
from bundle.errors import EngineError
from bundle.host import lm_eval
from bundle.host.folders import read_json
from bundle.stages import measure_lm_eval as stage
from bundle.stages.lm_eval_files import read_output
from bundle.stages.measure import RunContext, measure_run
from bundle.stages.measure_context import Evaluator
from bundle.stages.recipe import Request
from tests.core.test_lm_eval_args import SPEC
from tests.lm_eval import RECORDED
from tests.stages.test_measure import PLAN, make, recipe  # noqa: F401 - a fixture

SPEC = replace(SPEC, tasks=("say_the_word",))


def interpreter(folder: Path, script: str) -> Path:
    """Stands in for the harness's interpreter: ``$OUT`` is where the vector says to write."""
    path = folder / "python"
    lines = ['for OUT in "$@"; do :; done', script]
    path.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    path.chmod(0o755)
    return path


def context(make, folder: Path, python: Path | None, reason: str = "") -> RunContext:  # noqa: F811
    asked = recipe(request_timeout=5)
    asked = replace(asked, quality=replace(asked.quality, lm_eval=SPEC))
    runs = frozenset({PLAN.folder})
    tasks = folder / "tasks"
    tasks.mkdir()
    given = Evaluator(python=python, reason=reason, tasks=tasks, runs=runs)
    return make(changed=asked, lm_eval=given)


def the_cells_stay(record: RunRecord) -> None:
    assert (record.status, record.cause, record.quality) == ("ok", None, "ok")
    assert [c.status for c in record.cells] == ["ok", "ok"]


def test_what_the_harness_wrote_is_kept_and_read(make, tmp_path: Path) -> None:  # noqa: F811
    date = "2026-12-01T10-00-00.1"
    script = f"""mkdir $OUT/m
cp {RECORDED}/ngram/results.json $OUT/m/results_{date}.json
cp {RECORDED}/ngram/samples.say_the_word.jsonl $OUT/m/samples_say_the_word_{date}.jsonl
echo "token {SECRET} in $HOME/x"
"""
    ctx = context(make, tmp_path, interpreter(tmp_path, script))
    record = measure_run(PLAN, ctx)
    the_cells_stay(record)
    said = record.lm_eval
    assert said is not None
    assert (said.status, said.reason) == ("ok", None)
    assert said.scores[0].value == pytest.approx(1 / 3)
    assert said.argv[:3] == ("run", "--model", "local-chat-completions")
    assert 0 < said.seconds <= record.seconds["quality"]
    folder = ctx.runs / PLAN.folder
    assert read_output(folder, SPEC.tasks).scores == said.scores
    assert read_json(folder / "run.json", RunRecord) == record
    log = (folder / "lm_eval.log").read_text()
    assert "hf_abc" not in log
    assert ctx.progress.phases[-2:] == ["lm-eval", "stopping"]


SECRET = "hf_" + "abcdefghijklmnopqrstuvwxyz0123456789"
EMPTY = "mkdir $OUT/m; cd $OUT/m; echo '{}' > results_1.json; touch samples_say_the_word_1.jsonl"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'ValueError: no task'; exit 1", "ended with exit code 1: ValueError: no task"),
        ("exit 0", "expected one results file of lm_eval, found 0"),
        (EMPTY, "expected results of lm_eval"),
        (f"echo 'secret {SECRET}'; exit 2", "exit code 2: secret ***"),
    ],
)
def test_a_failure_is_its_own(make, tmp_path: Path, script: str, words: str) -> None:  # noqa: F811
    record = measure_run(PLAN, context(make, tmp_path, interpreter(tmp_path, script)))
    the_cells_stay(record)
    assert record.lm_eval is not None
    assert (record.lm_eval.status, record.lm_eval.scores) == ("failed", ())
    assert words in str(record.lm_eval.reason)


def test_an_environment_that_is_not_there_has_a_reason(make, tmp_path: Path) -> None:  # noqa: F811
    record = measure_run(PLAN, context(make, tmp_path, None, "no Python 3.11"))
    the_cells_stay(record)
    assert record.lm_eval is not None
    assert record.lm_eval.reason == "no Python 3.11"


def test_a_server_that_dies_of_it_keeps_its_cells(make, tmp_path: Path) -> None:  # noqa: F811
    script = (
        f'{sys.executable} -c "import json, os, signal, sys, re;'
        "port = re.search(r'127.0.0.1:(\\d+)', ' '.join(sys.argv))[1];"
        "[os.kill(int(p), signal.SIGKILL) for p in os.listdir('/proc') if p.isdigit() and"
        " ('--port\\0' + port).encode() in open('/proc/' + p + '/cmdline', 'rb').read()]\""
        ' "$@"; sleep 60'
    )
    record = measure_run(PLAN, context(make, tmp_path, interpreter(tmp_path, script)))
    the_cells_stay(record)
    assert record.lm_eval is not None
    assert record.lm_eval.status == "failed"
    assert "expected a running server" in str(record.lm_eval.reason)


def test_a_server_that_did_not_start_was_not_evaluated(make, tmp_path: Path) -> None:  # noqa: F811
    ctx = context(make, tmp_path, interpreter(tmp_path, "exit 0"))
    record = measure_run(PLAN, replace(ctx, engines={"baseline": NoEngine()}))
    assert record.status == "failed"
    assert record.lm_eval is not None
    assert str(record.lm_eval.reason).startswith("not run: ")


class NoEngine:
    python = Path("/nowhere/python")
    bin = Path("/nowhere/bin")
    locked = False


def test_another_block_carries_none(make, tmp_path: Path) -> None:  # noqa: F811
    ctx = context(make, tmp_path, None, "never asked")
    later = PlannedRun(block=2, position=0, group="baseline", quality=True)
    assert measure_run(later, ctx).lm_eval is None


def test_preparing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = recipe()
    asked = replace(
        asked, quality=replace(asked.quality, lm_eval=replace(SPEC, lock="lm-eval-3.12"))
    )
    lines: list[str] = []

    def fails(*_: object, **__: object) -> None:
        raise EngineError("expected Python, found none\nmore words")

    monkeypatch.setattr(stage, "ensure_engine", fails)
    found = stage.evaluator(tmp_path, asked, Request(recipe="r"), lines.append)
    assert found is not None
    assert (found.python, found.reason) == (None, "expected Python, found none")
    assert found.runs == {"1/0-baseline", "1/1-ngram", "1/2-baseline"}
    assert found.tasks == tmp_path / "inputs" / "lm_eval"
    assert lines == ["lm-eval: expected Python, found none: this check will not run"]
    said = (tmp_path / "locks" / "tools.json").read_text()
    assert "expected Python, found none" in said
    monkeypatch.setattr(stage, "ensure_engine", lambda *_, **__: NoEngine)
    found = stage.evaluator(tmp_path, asked, Request(recipe="r"), lines.append)
    assert found is not None
    assert (found.python, found.reason) == (NoEngine.python, "")
    assert stage.evaluator(tmp_path, recipe(), Request(recipe="r"), lines.append) is None
    assert lm_eval.QUIET_SECONDS > 0
