"""lm-evaluation-harness from its own locked environment, against the real engine's servers.

Two starts are measured, the first baseline and the method; the last baseline is left out, as in a
run that was stopped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from bundle.core.bundlefile import BundleFile
from bundle.core.lm_eval_args import LmEvalTarget, lm_eval_vector
from bundle.core.lm_eval_output import Sample, check_output
from bundle.core.recipe import LmEval, Recipe
from bundle.core.records import RunRecord, ServerFacts
from bundle.core.results import Results
from bundle.errors import BundleError
from bundle.host import lm_eval
from bundle.host.archive import extract
from bundle.host.folders import read_json
from bundle.pipeline import make
from bundle.stages import experiment
from bundle.stages.judge import read_evidence
from bundle.stages.lm_eval_files import read_output
from bundle.stages.plan import plan_lines
from bundle.stages.recipe import Request
from tests.end_to_end.short import specbundle
from tests.lm_eval import TASKS, asking_recipe
from tests.silent import Silent

pytestmark = pytest.mark.engine
STARTS = ("1/0-baseline", "1/1-ngram")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("evaluated")
    shutil.copytree(TASKS, found / TASKS.name)
    (found / "short.toml").write_text(asking_recipe())
    return found


@pytest.fixture(scope="module")
def request_made(folder: Path) -> Request:
    return Request(
        recipe=str(folder / "short.toml"),
        reports=folder / "reports",
        groups=("ngram",),
        tasks=("code",),
        concurrency=(1,),
    )


@pytest.fixture(scope="module")
def archive(folder: Path, request_made: Request) -> Iterator[Path]:
    """The bundle; on the method's server the completions interface was asked as well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "planned_runs", lambda recipe: PLANNED(recipe)[: len(STARTS)])
        patch.setattr(lm_eval, "evaluate", and_completions(folder))
        yield make(request_made, Silent()).archive


PLANNED = experiment.planned_runs
EVALUATE = lm_eval.evaluate


def and_completions(folder: Path) -> Callable[..., None]:
    """The evaluation as it is, then the same server through the other interface."""

    def evaluate(
        job: lm_eval.LmEvalJob, env: Mapping[str, str], *, check: Callable[[], None]
    ) -> None:
        EVALUATE(job, env, check=check)
        if "1-ngram" not in str(job.log):
            return
        (work,) = (folder / "reports" / "work").iterdir()
        recipe = read_json(work / "recipes" / "recipe.json", Recipe)
        facts = read_json(job.log.parent / "facts.json", ServerFacts)
        argv = json.loads((job.log.parent / "plan.json").read_text())
        assert argv["run"]["group"] == "ngram"
        spec = completions(recipe)
        arguments = json.loads(job.argv[job.argv.index("--model_args") + 1])
        out = folder / "completions-out"
        target = LmEvalTarget(
            base_url=arguments["base_url"].partition("/v1/")[0],
            served_name=str(facts.model_id),
            tokenizer=str(snapshot()),
            tasks=str(job.tasks),
            output=str(out),
        )
        vector = lm_eval_vector(recipe, spec, target)
        EVALUATE(replace(job, argv=vector, log=folder / "completions.log"), env, check=check)
        lm_eval.collect(out, spec.tasks, folder / "completions" / "lm_eval")

    return evaluate


def completions(recipe: Recipe) -> LmEval:
    spec = recipe.quality.lm_eval
    assert spec is not None
    return replace(spec, api="completions", tasks=("next_word", "say_the_word"))


def snapshot() -> Path:
    """The target's folder, whose tokenizer is used."""
    from bundle.host.cache import cache_root

    found = sorted((cache_root() / "models").glob("packaged-*/tokenizer.json"))
    return found[0].parent


@pytest.fixture(scope="module")
def data(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("opened")
    extract(archive, target)
    return target / archive.name.removesuffix(".tar.zst") / "data"


def test_plan_names_tasks_starts_and_vector(request_made: Request) -> None:
    text = "\n".join(plan_lines(request_made))
    assert "lm-evaluation-harness (environment lm-eval-3.11) at the end of block 1:" in text
    assert "say_the_word (6 items, generate_until)" in text
    assert "on 1/0-baseline, 1/1-ngram, 1/2-baseline" in text
    assert "lm_eval run --model local-chat-completions" in text


def test_tasks_are_frozen_by_hash(data: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=data / "inputs", capture_output=True
    )
    assert done.returncode == 0, done.stderr
    frozen = {p.name: p.read_bytes() for p in (data / "inputs" / "lm_eval").iterdir()}
    assert frozen == {p.name: p.read_bytes() for p in TASKS.iterdir()}
    assert "lm_eval/words.jsonl" in (data / "inputs" / "SHA256SUMS").read_text()


def test_every_start_was_asked_and_keeps_what_came_back(data: Path) -> None:
    for start in STARTS:
        run = data / "runs" / start
        record = read_json(run / "run.json", RunRecord)
        assert (record.status, record.cause) == ("ok", None)
        assert [cell.status for cell in record.cells] == ["ok"]
        said = record.lm_eval
        assert said is not None
        assert (said.status, said.reason) == ("ok", None)
        assert 0 < said.seconds <= record.seconds["quality"]
        sampling = json.loads(said.argv[said.argv.index("--gen_kwargs") + 1])
        assert sampling["temperature"] == 0
        found = read_output(run, ("say_the_word",))
        assert found.scores == said.scores
        assert len(found.samples) == 6
        assert all(len(sample.asked) == 3 for sample in found.samples)
        log = (run / "lm_eval.log").read_text()
        assert "Requesting API: 100%" in log
        assert str(Path.home()) not in log


def test_the_judge_pairs_the_items(data: Path) -> None:
    results = read_json(data / "results" / "results.json", Results)
    (found,) = results.lm_eval
    assert (found.group, found.version) == ("ngram", "0.4.13")
    (row,) = found.rows
    assert (row.task, row.metric, row.filter) == ("say_the_word", "exact_match", "first-word")
    assert (row.items, row.compared, row.excluded) == (6, 6, 0)
    sides = [scores(data, start) for start in STARTS]
    assert row.baseline == pytest.approx(sum(sides[0].values()) / 6)
    assert row.value == pytest.approx(sum(sides[1].values()) / 6)
    assert row.lost == sum(sides[1][i] < sides[0][i] for i in sides[0])
    assert row.won == sum(sides[1][i] > sides[0][i] for i in sides[0])
    (verdict,) = results.verdicts
    named = "\n".join((*verdict.checks_run, *verdict.checks_not_run))
    assert "lm-eval" in named


def scores(data: Path, start: str) -> dict[int, float]:
    lines = (data / "runs" / start / "lm_eval" / "samples.say_the_word.jsonl").read_text()
    return {r["doc_id"]: r["exact_match"] for r in map(json.loads, lines.splitlines())}


def test_the_report_shows_it(data: Path) -> None:
    page = (data / "report" / "report.html").read_text()
    assert 'id="lm-eval-table"' in page
    assert "say_the_word" in page
    assert "lm_eval_tasks/words.jsonl" in page


def test_the_time_counts_as_quality(data: Path) -> None:
    head = read_json(data / "bundle.json", BundleFile)
    records = [read_json(data / "runs" / s / "run.json", RunRecord) for s in STARTS]
    spent = sum(r.lm_eval.seconds for r in records if r.lm_eval is not None)
    assert head.seconds["quality"] >= spent > 0


def test_verify_computes_the_numbers_again(archive: Path) -> None:
    done = specbundle("verify", str(archive), "--json", cwd=archive.parent)
    levels = json.loads(done.stdout)["levels"]
    assert {n: levels[n]["state"] for n in ("V0", "V1", "V3", "V5")} == dict.fromkeys(
        ("V0", "V1", "V3", "V5"), "HOLDS"
    ), levels
    assert done.returncode == 0


def test_another_score_in_the_raw_files_is_found(data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "data"
    shutil.copytree(data, copy)
    path = copy / "runs" / STARTS[1] / "lm_eval" / "samples.say_the_word.jsonl"
    text = path.read_text()
    right = '"exact_match": 1.0' in text
    old, new = ("1.0", "0.0") if right else ("0.0", "1.0")
    path.write_text(text.replace(f'"exact_match": {old}', f'"exact_match": {new}', 1))
    with pytest.raises(BundleError, match="the mean of its samples"):
        read_evidence(copy)


def test_completions_take_likelihoods_and_the_local_tokenizer(archive: Path, folder: Path) -> None:
    assert archive.exists()
    found = read_output(folder / "completions", ("next_word", "say_the_word"))
    check_output(found, "completions")
    assert {s.metric for s in found.scores if s.task == "next_word"} == {"acc"}
    by_task: dict[str, list[Sample]] = {}
    for sample in found.samples:
        by_task.setdefault(sample.task, []).append(sample)
    assert {task: len(samples) for task, samples in by_task.items()} == {
        "next_word": 6,
        "say_the_word": 6,
    }
    (acc,) = (s for s in found.scores if s.metric == "acc")
    assert acc.value > 0.5, "a real model knows where the sun rises"
