"""One planned run against real processes of the stand-in engine, with every fault it knows."""

import hashlib
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from bundle.core.bench_result import parse_bench
from bundle.core.design import PlannedRun
from bundle.core.divergences import gaps_of
from bundle.core.jsonl import parse_rows, to_jsonl
from bundle.core.metrics import increase, parse_metrics
from bundle.core.quality_pass import ChatItem
from bundle.core.recipe import (
    Design,
    Engine,
    Group,
    Load,
    PackageModel,
    Quality,
    Recipe,
    Serve,
    Speculative,
    Target,
    Workload,
)
from bundle.core.records import AskedAgain, Cause, Reply, RunRecord, ServerFacts
from bundle.core.workloads import Prompt
from bundle.errors import HostError
from bundle.host.bench import BenchPool
from bundle.host.ports import free_port
from bundle.host.serving_env import base_environment
from bundle.stages.judge import read_start
from bundle.stages.measure import RunContext, measure_run
from tests.builders import reply
from tests.host.engines import environment
from tests.silent import Silent

ZERO = "0" * 64
ROWS = tuple(Prompt(prompt=f"write {i}", output_tokens=5) for i in range(6))
ITEMS = tuple(
    ChatItem(
        id=f"q{i}", kind="arithmetic", task="chat", messages=(("user", f"{i}?"),), max_tokens=8
    )
    for i in range(3)
)
PLAN = PlannedRun(block=1, position=0, group="baseline", quality=True)


def recipe(**serve) -> Recipe:
    return Recipe(
        schema="specbundle.recipe/1",
        name="r",
        title="R",
        engine=Engine(version="0.32.0", device="cpu", lock="cpu"),
        models={
            "target": PackageModel(
                distribution="d",
                version="1",
                wheel_sha256=ZERO,
                member="m",
                member_sha256=ZERO,
                conversion="gguf-dequantise-bfloat16",
                files={},
            )
        },
        serve=Serve(
            flags={"served-model-name": "spec-demo", "shutdown-timeout": 1},
            **{"ready_timeout": 20, "request_timeout": 20, **serve},
        ),
        groups=(
            Group(name="baseline", role="baseline"),
            Group(name="ngram", speculative=Speculative(method="ngram", num_speculative_tokens=2)),
        ),
        workloads=(Workload(task="code", path="code.jsonl", sha256=ZERO, output_tokens=7),),
        loads=(Load(requests=3, concurrency=1), Load(requests=4, concurrency=2)),
        design=Design(target=Target(concurrency=1), server_warmups=2, cell_warmups=1),
        quality=Quality(
            path="q", sha256=ZERO, acceptance_path="a", acceptance_sha256=ZERO, concurrency=2
        ),
    )


class FakeEngine:
    python = Path(sys.executable)
    bin = Path("/nowhere/bin")
    locked = False


class Watcher(Silent):
    def __init__(self):
        self.phases = []

    def phase(self, run, text):
        self.phases.append(text)


@pytest.fixture
def make(tmp_path):
    """Make a context whose servers have the given faults; returns it and the run's folder."""
    pools = []

    def made(*faults, changed=None, env=(), **changes):
        wanted = changed or recipe()
        wanted = msgspec.structs.replace(
            wanted,
            serve=msgspec.structs.replace(wanted.serve, env={"VLLM_FAKE": ",".join(faults)}),
        )
        data = tmp_path / "code.jsonl"
        data.write_bytes(to_jsonl(ROWS))
        environ = environment(**dict(env))
        pools.append(BenchPool(base_environment(environ), tmp_path))
        fields = {
            "recipe": wanted,
            "runs": tmp_path / "runs",
            "groups": {g.name: g for g in wanted.groups},
            "engines": {g.name: FakeEngine() for g in wanted.groups},
            "snapshots": {"target": tmp_path / "snapshot"},
            "datasets": {"code": data},
            "rows": {"code": ROWS},
            "items": ITEMS,
            "environ": environ,
            "caches": tmp_path / "caches",
            "benches": pools[-1],
            "progress": Watcher(),
            "clock": lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        }
        return RunContext(**{**fields, **changes})

    yield made
    for pool in pools:
        pool.__exit__()


def finished(ctx, plan=PLAN) -> Path:
    folder = ctx.runs / plan.folder
    done = subprocess.run(
        ["sha256sum", "-c", "--strict", "DONE"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    listed = {line.partition("  ")[2] for line in (folder / "DONE").read_text().splitlines()}
    there = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert listed == there - {"DONE"}
    assert not list(ctx.runs.rglob("*.partial"))
    read = msgspec.json.decode((folder / "run.json").read_bytes(), type=RunRecord)
    assert read.block == plan.block
    return folder


def test_a_whole_run(make):
    ctx = make()
    record = measure_run(PLAN, ctx)
    folder = finished(ctx)
    assert (record.status, record.cause, record.quality) == ("ok", None, "ok")
    assert [(c.task, c.load, c.status) for c in record.cells] == [
        ("code", "c1", "ok"),
        ("code", "c2", "ok"),
    ]
    assert record.started == "2026-01-02T03:04:05+00:00"
    assert record.leftovers == ()
    assert set(record.seconds) == {"start", "warm", "quality", "cells", "stop", "other"}
    assert record.seconds["cells"] >= sum(c.seconds for c in record.cells) - 0.01
    expected = {
        "DONE",
        "bench.log",
        "facts.json",
        "metrics-start.prom",
        "quality.after.prom",
        "models.json",
        "plan.json",
        "prompts.json",
        "replies.jsonl",
        "run.json",
        "server.log",
        "server_info.json",
        "cells/code-c1.after.prom",
        "cells/code-c1.before.prom",
        "cells/code-c1.bench.json",
        "cells/code-c2.after.prom",
        "cells/code-c2.before.prom",
        "cells/code-c2.bench.json",
    }
    assert {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} == expected
    assert "--per-request-spec-decode-metrics" not in record.argv
    assert record.env["HF_HUB_OFFLINE"] == "1"
    assert ctx.progress.phases == [
        "starting",
        "warming",
        "quality",
        "code-c1",
        "code-c2",
        "stopping",
    ]


def test_snapshots_hold_the_measured_requests_alone(make):
    ctx = make()
    measure_run(PLAN, ctx)
    cells = finished(ctx) / "cells"
    for key, requests in (("code-c1", 3), ("code-c2", 4)):
        before, after = (
            parse_metrics((cells / f"{key}.{when}.prom").read_text())
            for when in ("before", "after")
        )
        grown = increase(before, after)
        assert (grown.requests_finished, grown.generation_tokens) == (requests, 7 * requests)
        bench = parse_bench((cells / f"{key}.bench.json").read_bytes())
        assert bench.output_tokens == 7 * requests


def test_facts_and_prompts(make):
    ctx = make()
    record = measure_run(PLAN, ctx)
    folder = finished(ctx)
    facts = msgspec.json.decode((folder / "facts.json").read_bytes(), type=ServerFacts)
    assert (facts.kv_cache_tokens, facts.engine_version) == (4096, "0.0.fake")
    assert facts.config["model_config"]["model"] == "<target>"
    assert facts.model_id == "spec-demo"
    (check,) = record.prompts
    assert check.chat_sha256 == check.completions_sha256
    # Four rows are used by the larger cell, and its first three by the smaller one.
    assert check.prompts == 4
    details = json.loads((folder / "prompts.json").read_text())
    assert [d["row"] for d in details] == sorted(d["row"] for d in details)
    text = f"<user>{ROWS[details[0]['row']].prompt}<assistant>"
    ids = ",".join(str(ord(letter)) for letter in text)
    assert details[0]["chat_sha256"] == hashlib.sha256(ids.encode()).hexdigest()


def test_replies(make):
    ctx = make()
    measure_run(PlannedRun(block=1, position=1, group="ngram", quality=True), ctx)
    folder = finished(ctx, PlannedRun(block=1, position=1, group="ngram", quality=True))
    replies = [
        msgspec.json.decode(line, type=Reply)
        for line in (folder / "replies.jsonl").read_text().splitlines()
    ]
    assert [r.item for r in replies] == ["q0", "q1", "q2"]
    assert {r.speculative.histogram for r in replies} == {(0, 1, 0)}


def test_missing_acceptance_fails_the_quality_pass_alone(make):
    ctx = make("no-stats")
    plan = PlannedRun(block=1, position=1, group="ngram", quality=True)
    record = measure_run(plan, ctx)
    assert (record.status, record.quality) == ("ok", "failed")


def test_two_paths_that_give_other_prompts(make):
    ctx = make("bos", "no-page")
    record = measure_run(PLAN, ctx)
    (check,) = record.prompts
    assert check.chat_sha256 != check.completions_sha256
    facts = json.loads((finished(ctx) / "facts.json").read_text())
    assert facts["config"] is None
    assert facts["kv_cache_tokens"] == 4096


def test_a_configuration_that_is_refused_is_noted(make):
    ctx = make("bad-page")
    record = measure_run(PLAN, ctx)
    assert record.status == "ok"
    facts = json.loads((finished(ctx) / "facts.json").read_text())
    assert facts["config"] is None
    assert "HTTP 500: cannot be written" in facts["source"]["config"]


def test_a_primer_is_warmed_and_not_measured(make):
    ctx = make()
    plan = PlannedRun(block=0, position=0, group="baseline", quality=False)
    record = measure_run(plan, ctx)
    folder = finished(ctx, plan)
    assert folder == ctx.runs / "primer/0-baseline"
    assert (record.primer, record.status, record.cells) == (True, "ok", ())
    assert record.quality == "not planned"
    assert not (folder / "replies.jsonl").exists()


def test_a_block_without_a_quality_pass(make):
    ctx = make()
    record = measure_run(PlannedRun(block=2, position=0, group="baseline", quality=False), ctx)
    assert (record.quality, record.status) == ("not planned", "ok")


FAILED = ["failed", "failed"]


@pytest.mark.parametrize(
    ("faults", "cause", "word"),
    [
        (("dies",), "unsupported-method", "upside down"),
        (("dies-silently",), "server-did-not-start", "exit code 1"),
        (("never",), "server-did-not-start", "not ready within 2 s"),
    ],
)
def test_a_server_that_does_not_start(make, faults, cause, word):
    ctx = make(*faults, changed=recipe(ready_timeout=2))
    record = measure_run(PLAN, ctx)
    folder = finished(ctx)
    assert (record.status, record.cause.id) == ("failed", cause)
    assert word in record.cause.text
    assert [c.status for c in record.cells] == FAILED
    assert all(c.reason.startswith("not run: ") for c in record.cells)
    assert record.quality == "failed"
    assert (folder / "server.log").exists()
    assert "serve" in record.argv


def test_a_server_that_dies_in_a_cell(make):
    ctx = make("dies-mid-bench")
    record = measure_run(PLAN, ctx)
    finished(ctx)
    assert record.status == "failed"
    assert record.cause.id == "failed-requests"
    assert record.cause.line == "RuntimeError: the engine core is gone"
    assert [c.status for c in record.cells] == FAILED
    assert record.quality == "ok"


def test_a_server_that_hangs(make):
    ctx = make("hangs", changed=recipe(request_timeout=2))
    record = measure_run(PLAN, ctx)
    finished(ctx)
    assert (record.status, record.cause.id) == ("failed", "failed-requests")
    assert "hangs" in record.cause.text
    assert [c.status for c in record.cells] == FAILED


def test_a_server_that_answers_errors(make):
    ctx = make("errors")
    record = measure_run(PLAN, ctx)
    folder = finished(ctx)
    assert (record.status, record.cause.id) == ("failed", "failed-requests")
    assert "HTTP Error 500" in record.cause.line
    assert [c.status for c in record.cells] == FAILED
    assert record.cells[0].reason.startswith("expected 3 completed requests, found 0 completed")
    # The raw files of a failed cell are kept.
    assert (folder / "cells/code-c1.bench.json").exists()
    assert (folder / "cells/code-c1.after.prom").exists()


def test_a_bench_that_fails_is_a_failed_cell(make):
    ctx = make(env={"VLLM_FAKE_BENCH": "raises"})
    record = measure_run(PLAN, ctx)
    finished(ctx)
    assert record.status == "failed"
    assert {c.reason for c in record.cells} == {
        "ValueError: the dataset has no prompts; see bench.log"
    }
    assert "Traceback" in (finished(ctx) / "bench.log").read_text()


def test_prompts_that_cannot_be_rendered_are_a_failed_run(make):
    ctx = make(env={"VLLM_FAKE_BENCH": "no-template"})
    record = measure_run(PLAN, ctx)
    folder = finished(ctx)
    assert (record.status, record.cause.id) == ("failed", "failed-requests")
    assert record.cause.text == "ValueError: the tokenizer has no chat template. See bench.log."
    assert [c.status for c in record.cells] == FAILED
    assert "no chat template" in (folder / "bench.log").read_text()
    # The server itself was sound, and is told so by its facts.
    assert (folder / "facts.json").exists()


def test_a_bench_that_cannot_be_started_is_a_failed_run(make, tmp_path):
    class Gone(FakeEngine):
        python = tmp_path / "python"

    ctx = make(engines={"baseline": Gone()})
    record = measure_run(PLAN, ctx)
    finished(ctx)
    assert (record.status, record.cause.id) == ("failed", "failed-requests")
    assert "interpreter" in record.cause.text


def test_every_start_keeps_its_own_part_of_what_the_bench_said(make):
    ctx = make(env={"VLLM_FAKE_BENCH": "raises"})
    measure_run(PLAN, ctx)
    second = PlannedRun(block=1, position=1, group="baseline", quality=False)
    measure_run(second, ctx)
    logs = [(finished(ctx, plan) / "bench.log").read_text() for plan in (PLAN, second)]
    # A call before every cell, and no other for one that failed there.
    assert [log.count("ValueError: the dataset has no prompts") for log in logs] == [2, 2]


def test_what_had_to_be_killed_is_recorded(make):
    ctx = make("orphan")
    record = measure_run(PLAN, ctx)
    assert (record.status, len(record.leftovers)) == ("ok", 1)


def test_another_port_where_one_was_taken(make, tmp_path):
    ctx = make("taken", env={"VLLM_FAKE_MARK": str(tmp_path / "mark")})
    record = measure_run(PLAN, ctx)
    assert record.status == "ok"
    assert "already in use" not in (finished(ctx) / "server.log").read_text()


def test_a_fixed_port_that_is_taken(make):
    ctx = make("taken", port=free_port())
    with pytest.raises(HostError, match="port"):
        measure_run(PLAN, ctx)
    assert not (ctx.runs / PLAN.folder).exists()


def test_a_group_that_cannot_start_is_a_failed_run(make):
    reason = Cause(id="dependency-conflict", text="No g++ here.")
    ctx = make(unavailable={"baseline": reason})
    record = measure_run(PLAN, ctx)
    finished(ctx)
    assert (record.status, record.cause) == ("failed", reason)
    assert [c.status for c in record.cells] == FAILED
    assert record.argv == ()


def test_what_an_interrupted_run_left_is_replaced(make):
    ctx = make()
    partial = ctx.runs / "1/0-baseline.partial"
    partial.mkdir(parents=True)
    (partial / "old").touch()
    broken = ctx.runs / "1/0-baseline"
    broken.mkdir()
    (broken / "old").touch()
    measure_run(PLAN, ctx)
    assert not (finished(ctx) / "old").exists()


def test_an_interrupt_stops_the_server_and_leaves_no_finished_run(make):
    class Impatient(Watcher):
        def phase(self, run, text):
            if text == "code-c2":
                raise KeyboardInterrupt

    ctx = make(progress=Impatient())
    with pytest.raises(KeyboardInterrupt):
        measure_run(PLAN, ctx)
    assert not (ctx.runs / PLAN.folder).exists()
    assert not list(ctx.runs.rglob("process.json"))


@pytest.mark.parametrize("state", ["warm", "none", "cold"])
def test_compile_caches(make, state):
    wanted = recipe()
    design = msgspec.structs.replace(wanted.design, compile_cache=state)
    ctx = make(changed=msgspec.structs.replace(wanted, design=design))
    old = ctx.caches / "1-0/old"
    old.mkdir(parents=True)
    record = measure_run(PlannedRun(block=1, position=0, group="baseline", quality=False), ctx)
    name = "1-0" if state == "cold" else "shared"
    assert record.env["VLLM_CACHE_ROOT"] == str(ctx.caches / name / "vllm")
    assert record.cache_before == "empty"
    assert old.exists() == (state != "cold")


def test_what_lay_in_the_compile_cache_before_is_recorded(make):
    ctx = make()
    graph = ctx.caches / "shared/vllm/graph"
    graph.parent.mkdir(parents=True)
    graph.touch()
    record = measure_run(PlannedRun(block=1, position=0, group="baseline", quality=False), ctx)
    assert record.cache_before == "filled"


def test_records_do_not_tell_whose_machine_it_was(make, tmp_path):
    ctx = make(env={"HOME": f"{tmp_path}/"})
    record = measure_run(PLAN, ctx)
    assert "~/snapshot" in record.argv
    assert record.env["VLLM_CACHE_ROOT"] == "~/caches/shared/vllm"
    assert str(tmp_path) not in str(record)


def test_secrets_do_not_reach_the_record(make):
    ctx = make(env={"HF_TOKEN": "hf_" + "a" * 30})
    record = measure_run(PLAN, ctx)
    folder = finished(ctx)
    assert "HF_TOKEN" not in record.env
    for path in folder.rglob("*"):
        assert path.is_dir() or b"hf_aaaa" not in path.read_bytes()
    assert os.environ.get("HF_TOKEN") is None or os.environ["HF_TOKEN"] not in str(record)


LAST = PlannedRun(block=1, position=2, group="baseline", quality=True)


def after(ctx, *, baseline=(1, 2, 3), ngram=(1, 7, 3)) -> Path:
    """Measure the last baseline of a block whose other starts wrote these; returns its folder."""
    text = ",".join(str(ord(letter)) for letter in "<user>0?<assistant>")
    for folder, output in (("0-baseline", baseline), ("1-ngram", ngram)):
        if output is not None:
            (ctx.runs / "1" / folder).mkdir(parents=True)
            rows = [reply("q0", tokens=output, text="echo 0?", prompt_sha256=sha256(text))]
            (ctx.runs / "1" / folder / "replies.jsonl").write_bytes(to_jsonl(rows))
    record = measure_run(LAST, ctx)
    assert (record.status, record.quality) == ("ok", "ok")
    return finished(ctx, LAST)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def asked_again(folder: Path) -> tuple[AskedAgain, ...]:
    file = folder / "divergences.jsonl"
    return parse_rows(file.read_text(), str(file), AskedAgain)


def test_the_last_baseline_is_asked_where_a_method_left_it(make):
    ctx = make("strays")
    for plan in (PLAN, PlannedRun(block=1, position=1, group="ngram", quality=True), LAST):
        measure_run(plan, ctx)
    folder = finished(ctx, LAST)
    assert asked_again(folder) == tuple(
        AskedAgain(
            group="ngram",
            item=f"q{i}",
            position=1,
            baseline_token=2,
            group_token=7,
            best=((2, -0.25), (7, -0.75)),
        )
        for i in range(3)
    )
    assert ctx.progress.phases[-4:] == ["code-c1", "code-c2", "divergences", "stopping"]
    for other in ("0-baseline", "1-ngram"):
        assert not (ctx.runs / "1" / other / "divergences.jsonl").exists()
    start = read_start(folder, ctx.recipe, LAST, ctx.rows)
    assert gaps_of(start.asked_again)["ngram"]["q0"].nats == 0.5


def test_nothing_is_asked_where_all_outputs_agree(make):
    assert not (after(make(), ngram=(1, 2, 3)) / "divergences.jsonl").exists()


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("mute", "HTTP 400: log-probabilities are switched off"),
        ("other-template", "another prompt"),
    ],
)
def test_what_could_not_be_asked_says_why_and_fails_nothing(make, fault, error):
    rows = asked_again(after(make(fault)))
    assert len(rows) == 1
    assert all(row.best == () and error in row.error for row in rows)
    assert gaps_of(rows) == {}


def test_without_a_first_baseline_the_last_one_is_what_was_left(make):
    rows = asked_again(after(make("sure"), baseline=None))
    assert [(r.item, gaps_of(rows)["ngram"]["q0"].nats) for r in rows] == [("q0", 4.0)]
