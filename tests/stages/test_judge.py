"""Reading a run folder, judging it, writing ``results/`` the same way every time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bundle.core.design import PlannedRun, cells, planned_runs
from bundle.core.evidence import Counters
from bundle.core.gpu_samples import GpuSample
from bundle.core.jsonl import to_jsonl
from bundle.core.quality_items import parse_quality
from bundle.core.recipe import Recipe
from bundle.core.results import Results
from bundle.core.workloads import code_rows
from bundle.errors import BundleError
from bundle.host.folders import write_json, write_whole
from bundle.stages.judge import judge, read_evidence
from tests import builders as made
from tests.builders import NGRAM, World, only
from tests.references import reference_reply

ITEM = {
    "id": "sum",
    "kind": "arithmetic",
    "task": "chat",
    "messages": [{"role": "user", "content": "What is 2 + 2?"}],
    "max_tokens": 8,
    "check": {"type": "number", "answer": "4"},
}
NAMES = {
    "vllm:inter_token_latency_seconds_count": "decode_rounds",
    "vllm:generation_tokens_total": "generation_tokens",
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:request_success_total": "requests_finished",
    "vllm:num_preemptions_total": "preemptions",
    "vllm:prefix_cache_hits_total": "prefix_hits",
    "vllm:prefix_cache_queries_total": "prefix_queries",
    "vllm:spec_decode_num_drafts_total": "rounds",
    "vllm:spec_decode_num_draft_tokens_total": "drafted",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted",
}


def recipe() -> Recipe:
    work = replace(made.recipe().workloads[0], output_tokens=made.TOKENS)
    return only(NGRAM, workloads=(work,))


def page(counters: Counters | None, base: int = 100) -> str:
    """A page of ``/metrics`` that stands ``counters`` above ``base``."""
    lines = []
    for name, field in NAMES.items():
        grown = 0 if counters is None else getattr(counters, field)
        if grown is not None:
            lines += [f'{name}{{engine="0"}} {base + grown}']
    positions = (counters and counters.per_position) or ()
    for i, grown in enumerate(positions):
        lines.append(
            f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{i}"}} {base + grown}'
        )
    return "\n".join(lines) + "\n"


def bench_json(bench) -> str:
    return json.dumps(
        {
            "num_prompts": bench.planned,
            "completed": bench.completed,
            "failed": bench.failed,
            "duration": bench.duration,
            "total_input_tokens": bench.input_tokens,
            "total_output_tokens": bench.output_tokens,
            "output_throughput": bench.output_throughput,
            "mean_tpot_ms": bench.mean_tpot,
            "mean_ttft_ms": bench.mean_ttft,
            "mean_e2el_ms": bench.mean_e2el,
            **bench.percentiles,
        }
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A finished run folder of made numbers: three blocks of baseline and ngram."""
    folder = tmp_path_factory.mktemp("run")
    spec = recipe()
    world = World(speed={"ngram": 1.5}, noise=0.005, facts={"ngram": {"runner": "V1"}})
    world.facts["baseline"] = {"runner": "V1"}
    given = made.evidence(spec, world)
    write_json(folder / "recipes" / "recipe.json", spec)
    write_whole(folder / "inputs" / "code.jsonl", to_jsonl(code_rows()))
    write_whole(folder / "inputs" / "quality.jsonl", json.dumps(ITEM) + "\n")
    item = parse_quality(json.dumps(ITEM), "x")[0]
    groups = {g.name: g for g in spec.groups}
    for start in given.starts:
        run = folder / "runs" / start.folder
        write_json(run / "run.json", start.run)
        write_json(run / "facts.json", start.facts)
        stats = made.STATS if start.run.group == "ngram" else None
        answers = [
            made.reply("sum", text=reference_reply(item), spec=stats),
            made.reply("other", spec=stats),
        ]
        write_whole(run / "replies.jsonl", to_jsonl(answers))
        samples = [
            GpuSample(t=float(i), gpu=0, cell="code-c8", power=200.0, reasons=0) for i in range(3)
        ]
        write_whole(run / "gpu.jsonl", to_jsonl(samples))
        for cell in cells(spec, groups[start.run.group]):
            found = start.cell(cell.task, cell.load)
            stem = run / "cells" / cell.key
            write_whole(stem.with_name(f"{cell.key}.bench.json"), bench_json(found.bench))
            blank = replace(
                found.counters,
                **{f: 0 for f in NAMES.values() if getattr(found.counters, f) is not None},
            )
            if blank.per_position:
                blank = replace(blank, per_position=(0,) * len(blank.per_position))
            write_whole(stem.with_name(f"{cell.key}.before.prom"), page(blank))
            write_whole(stem.with_name(f"{cell.key}.after.prom"), page(found.counters))
    return folder


@pytest.fixture
def folder(whole, tmp_path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def test_results_are_written_and_read_back(folder):
    results = judge(folder, narrowed=("groups: ngram",))
    written = (folder / "results" / "results.json").read_bytes()
    assert msgspec.json.decode(written, type=Results) == results
    assert results.narrowed == ("groups: ngram",)
    row = next(e for e in results.effects if e.metric == "tpot")
    assert row.ratio == pytest.approx(1.5, rel=0.03)
    fired = {f.id: f.evidence for f in results.findings if f.state == "TRIGGERED"}
    assert set(fired) == {"too-few-samples"}, fired
    assert results.quality[0].by_kind == {"arithmetic": (1, 1, 1)}


def test_cells_are_a_tidy_table(folder):
    judge(folder)
    lines = (folder / "results" / "cells.csv").read_text().splitlines()
    assert lines[0] == "group,task,load,metric,unit,start,value"
    tpot = [line for line in lines if ",tpot,ms," in line]
    assert len(tpot) == 9
    assert any(",power,W,1/1-ngram,200.0" in line for line in lines)


def test_twice_gives_the_same_bytes(folder):
    names = ("results.json", "cells.csv")
    judge(folder)
    first = [(folder / "results" / n).read_bytes() for n in names]
    shutil.rmtree(folder / "results")
    judge(folder)
    assert [(folder / "results" / n).read_bytes() for n in names] == first


def test_runs_that_never_began_are_absent(folder):
    shutil.rmtree(folder / "runs" / "3")
    assert len(read_evidence(folder).starts) == 6


def test_files_that_a_failed_run_lacks_are_absent(folder):
    run = folder / "runs" / "1" / "1-ngram"
    for name in ("facts.json", "gpu.jsonl", "replies.jsonl"):
        (run / name).unlink()
    for path in (run / "cells").iterdir():
        path.unlink()
    record = json.loads((run / "run.json").read_text())
    record["cells"][0] |= {"status": "failed", "reason": "no answer", "seconds": 2.0}
    (run / "run.json").write_text(json.dumps(record))
    start = read_evidence(folder).of("ngram")[0]
    assert start.facts is None
    assert start.replies == ()
    assert start.cells[0].bench is None
    assert start.cells[0].counters is None
    assert start.cells[0].gpu is None


def test_counters_of_the_quality_pass_are_used_where_they_were_taken(folder):
    run = folder / "runs" / "1" / "1-ngram"
    counters = replace(made.counters(2, 8, NGRAM, World()), accepted=1, rounds=1, drafted=4)
    blank = replace(counters, accepted=0, rounds=0, drafted=0, per_position=(0, 0, 0, 0))
    write_whole(run / "metrics-start.prom", page(blank))
    write_whole(run / "quality.after.prom", page(counters))
    results = judge(folder)
    found = [f for f in results.findings if f.id == "acceptance-mismatch"]
    assert "accepted: 4 by request, 1 in /metrics" in found[0].evidence


def test_the_quality_pass_begins_where_the_facts_were_taken(folder):
    run = folder / "runs" / "1" / "1-ngram"
    counters = made.counters(2, 8, NGRAM, World())
    write_whole(run / "metrics-start.prom", page(replace(counters, accepted=1)))
    assert read_evidence(folder).of("ngram")[0].quality_counters is None
    write_whole(run / "quality.after.prom", page(replace(counters, accepted=5)))
    assert read_evidence(folder).of("ngram")[0].quality_counters.accepted == 4


def test_a_failed_cell_keeps_its_reason(folder):
    path = folder / "runs" / "1" / "1-ngram" / "run.json"
    run = json.loads(path.read_text())
    run["cells"] = [
        {"task": "code", "load": "c8", "status": "failed", "reason": "one failed", "seconds": 1.0},
        {"task": "gone", "load": "c8", "status": "ok"},
    ]
    path.write_text(json.dumps(run))
    cells_found = read_evidence(folder).of("ngram")[0].cells
    assert [c.failed for c in cells_found] == ["one failed"]


def test_cells_that_a_dead_server_never_saw_are_absent(folder):
    run = folder / "runs" / "1" / "0-baseline"
    record = json.loads((run / "run.json").read_text())
    record["status"] = "failed"
    record["cause"] = {"id": "server-did-not-start", "text": "It died.", "line": None}
    record["cells"] = [{"task": "code", "load": "c8", "status": "failed", "reason": "not run"}]
    (run / "run.json").write_text(json.dumps(record))
    for path in (run / "cells").iterdir():
        path.unlink()
    results = judge(folder)
    assert read_evidence(folder).of("baseline")[0].cells == ()
    assert not [f for f in results.findings if f.id == "failed-requests" and f.state != "CLEAR"]
    assert [f.folder for f in results.failed] == ["1/0-baseline"]


def test_a_record_at_the_wrong_place_is_refused(folder):
    runs = folder / "runs" / "1"
    shutil.copy(runs / "0-baseline" / "run.json", runs / "1-ngram" / "run.json")
    with pytest.raises(BundleError, match="1/0-baseline"):
        judge(folder)


def test_missing_inputs_are_named(folder):
    (folder / "inputs" / "code.jsonl").unlink()
    with pytest.raises(BundleError, match=r"code\.jsonl"):
        judge(folder)


def test_without_quality_items_nothing_is_checked(folder):
    (folder / "inputs" / "quality.jsonl").unlink()
    assert read_evidence(folder).checks["1/1-ngram"] == {}


def test_looks_are_handed_on(folder):
    assert judge(folder, looks=(2,)).verdicts[0].alpha == pytest.approx(0.025)


def test_a_plan_names_its_folder():
    plan = planned_runs(recipe())[1]
    assert plan == PlannedRun(block=1, position=1, group="ngram", quality=True)
