"""A short recipe, whole, with the real engine: baseline and n-gram, one block."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import bagit
import msgspec
import psutil
import pytest

from bundle.core.bundlefile import BundleFile
from bundle.core.evidence import Counters
from bundle.core.metrics import increase, parse_metrics
from bundle.core.records import Reply, RunRecord, ServerFacts
from bundle.core.results import Results
from bundle.stages.pack import pack
from tests.end_to_end.short import specbundle

pytestmark = pytest.mark.engine
CHECKOUT = Path(__file__).parents[2]
LAYOUT = (
    "README.md",
    "VERIFY.md",
    "bundle.json",
    "ro-crate-metadata.json",
    "recipes/recipe.toml",
    "recipes/recipe.json",
    "recipes/vectors.json",
    "recipes/order.json",
    "code/COMMIT",
    "inputs/SHA256SUMS",
    "inputs/code.jsonl",
    "inputs/chat.jsonl",
    "inputs/quality.jsonl",
    "inputs/acceptance.jsonl",
    "locks/models.lock.json",
    "locks/engines.json",
    "locks/pip-inspect.cpu.json",
    "system/host.json",
    "system/environment.json",
    "system/serve-help.cpu.txt",
    "system/bench-help.cpu.txt",
    "system/collect-env.cpu.txt",
    "results/results.json",
    "report/report.html",
    "report/report.pdf",
)
RUN_FILES = (
    "run.json",
    "plan.json",
    "server.log",
    "bench.log",
    "server_info.json",
    "facts.json",
    "replies.jsonl",
    "prompts.json",
    "metrics-start.prom",
    "quality.after.prom",
    "DONE",
    "cells/code-c1.bench.json",
    "cells/code-c1.before.prom",
    "cells/code-c1.after.prom",
    "cells/code-c4.bench.json",
    "cells/chat-c1.bench.json",
    "cells/chat-c4.bench.json",
)
RUNS = {"1/0-baseline": "baseline", "1/1-ngram": "ngram", "1/2-baseline": "baseline"}


def read(path: Path, kind: type[Any]) -> Any:
    return msgspec.json.decode(path.read_bytes(), type=kind)


def counters(before: Path, after: Path) -> Counters:
    return increase(parse_metrics(before.read_text()), parse_metrics(after.read_text()))


def test_every_file_of_the_layout_is_there(data: Path) -> None:
    assert [name for name in LAYOUT if not (data / name).is_file()] == []
    assert list((data / "code").glob("specbundle-*.whl"))
    assert list((data / "report" / "charts").glob("*.svg"))
    for run in RUNS:
        missing = [n for n in RUN_FILES if not (data / "runs" / run / n).is_file()]
        assert missing == [], run


def test_the_archive_comes_with_report_and_sidecar(archive: Path) -> None:
    stem = archive.name.removesuffix(".tar.zst")
    assert (archive.parent / f"{stem}.html").read_bytes()[:15].lower() == b"<!doctype html>"
    assert (archive.parent / f"{stem}.pdf").read_bytes()[:5] == b"%PDF-"
    line = (archive.parent / f"{archive.name}.sha256").read_text().split()
    assert line == [hashlib.sha256(archive.read_bytes()).hexdigest(), archive.name]


def test_foreign_tools_accept_the_bag(archive: Path, bag: Path) -> None:
    bagit.Bag(str(bag)).validate()
    for sums, cwd in (
        (f"{archive.name}.sha256", archive.parent),
        ("manifest-sha256.txt", bag),
        ("tagmanifest-sha256.txt", bag),
    ):
        done = subprocess.run(["sha256sum", "-c", "--strict", sums], cwd=cwd, capture_output=True)
        assert done.returncode == 0, done.stderr
    for run in RUNS:
        where = bag / "data" / "runs" / run
        assert (
            subprocess.run(["sha256sum", "-c", "DONE"], cwd=where, capture_output=True).returncode
            == 0
        )


def test_two_packs_of_the_run_folder_are_equal(work: Path, archive: Path, tmp_path: Path) -> None:
    again = pack(work, tmp_path, stem="short")
    assert again.archive.name == archive.name
    assert again.archive.read_bytes() == archive.read_bytes()


def test_verify_holds_and_computes_the_numbers_again(archive: Path) -> None:
    done = specbundle("verify", str(archive), "--json", cwd=CHECKOUT)
    levels = json.loads(done.stdout)["levels"]
    assert done.returncode == 0, done.stdout
    assert {name: levels[name]["state"] for name in ("V0", "V1", "V3")} == {
        "V0": "HOLDS",
        "V1": "HOLDS",
        "V3": "HOLDS",
    }


def test_only_the_speculative_server_got_the_metrics_flag(data: Path) -> None:
    for run, group in RUNS.items():
        record = read(data / "runs" / run / "run.json", RunRecord)
        assert record.status == "ok", record
        assert ("--per-request-spec-decode-metrics" in record.argv) is (group == "ngram")
        log = (data / "runs" / run / "server.log").read_text().splitlines()
        (arguments,) = (line for line in log if "non-default args:" in line)
        assert ("per_request_spec_decode_metrics" in arguments) is (group == "ngram")


def test_acceptance_per_request_sums_to_the_servers_own_counters(data: Path) -> None:
    run = data / "runs" / "1/1-ngram"
    lines = (run / "replies.jsonl").read_bytes().splitlines()
    replies = [msgspec.json.decode(line, type=Reply) for line in lines]
    assert len(replies) == 10
    assert all(r.error is None and r.speculative is not None for r in replies)
    seen = counters(run / "metrics-start.prom", run / "quality.after.prom")
    assert seen.requests_finished == 10
    assert seen.drafted == sum(r.speculative.drafted for r in replies) > 0
    assert seen.accepted == sum(r.speculative.accepted for r in replies)
    assert seen.rounds == sum(r.speculative.rounds for r in replies)
    assert seen.generation_tokens == sum(r.completion_tokens for r in replies)


def test_acceptance_per_cell_agrees_with_the_bench_of_the_engine(data: Path) -> None:
    cells = data / "runs" / "1/1-ngram" / "cells"
    for key in ("code-c1", "code-c4", "chat-c1", "chat-c4"):
        seen = counters(cells / f"{key}.before.prom", cells / f"{key}.after.prom")
        bench = json.loads((cells / f"{key}.bench.json").read_text())
        assert bench["completed"] == 3
        assert bench["failed"] == 0
        assert bench["total_output_tokens"] == 72 == seen.generation_tokens
        assert seen.drafted == bench.get("spec_decode_draft_tokens", 0)
        assert seen.accepted == bench.get("spec_decode_accepted_tokens", 0)
        assert seen.rounds == bench.get("spec_decode_num_drafts", 0)


def test_nothing_drafted_is_none_and_not_zero(data: Path) -> None:
    results = read(data / "results" / "results.json", Results)
    assert results.acceptance
    assert {a.group for a in results.acceptance} == {"ngram"}
    for row in results.acceptance:
        assert (row.rate is None) is (row.drafted == 0)
        assert (row.length is None) is (row.rounds == 0)
    for run in ("1/0-baseline", "1/2-baseline"):
        replies = (data / "runs" / run / "replies.jsonl").read_bytes().splitlines()
        assert all(msgspec.json.decode(x, type=Reply).speculative is None for x in replies)


def test_one_block_is_inconclusive_and_says_so(data: Path) -> None:
    results = read(data / "results" / "results.json", Results)
    assert {(v.group, v.task) for v in results.verdicts} == {("ngram", "code"), ("ngram", "chat")}
    for verdict in results.verdicts:
        assert verdict.verdict == "INCONCLUSIVE", verdict.reasons
        assert any("block" in reason for reason in verdict.reasons)
    assert all(e.lower is None and e.upper is None for e in results.effects)
    assert results.narrowed == ("groups: ngram",)


def test_both_paths_render_the_same_prompts(data: Path) -> None:
    for run in RUNS:
        record = read(data / "runs" / run / "run.json", RunRecord)
        assert {p.task for p in record.prompts} == {"code", "chat"}
        assert all(p.chat_sha256 == p.completions_sha256 for p in record.prompts)


def test_the_server_said_what_it_is(data: Path) -> None:
    for run in RUNS:
        facts = read(data / "runs" / run / "facts.json", ServerFacts)
        assert facts.engine_version is not None
        assert facts.engine_version.startswith("0.32.0")
        assert facts.runner == "V1"
        assert facts.async_scheduling is False
        assert facts.enforce_eager is True
        assert (facts.kv_cache_tokens or 0) > 2048


def test_the_time_account_leaves_little_unexplained(data: Path) -> None:
    head = read(data / "bundle.json", BundleFile)
    assert head.planned == head.executed == tuple(RUNS)
    assert head.failed == ()
    assert head.seconds["servers"] > 0
    assert head.seconds["cells"] > 0
    assert head.seconds["rest"] <= 0.03 * sum(head.seconds.values())


def test_no_server_is_left(archive: Path) -> None:
    assert archive.exists()
    me = psutil.Process()
    names = [p.name() for p in me.children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE]
    assert not [n for n in names if "vllm" in n.lower()]
