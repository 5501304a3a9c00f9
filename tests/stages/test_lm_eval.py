"""lm-evaluation-harness through the stages: refused early, frozen, judged from the raw files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from bundle.core.recipe import Recipe
from bundle.core.recipe_reading import parse_recipe
from bundle.core.records import LmEvalRun, RunRecord
from bundle.errors import BundleError, InputError, RecipeError, UsageError
from bundle.host.cache import cache_root
from bundle.host.engine_lock import lock_sha256
from bundle.host.folders import read_json, write_json
from bundle.host.hashing import sha256_of
from bundle.pipeline import make
from bundle.stages import recompute as stage
from bundle.stages.consent import strange_locks, what_will_run
from bundle.stages.engine_locks import LOCKS, TOOLS, recorded_all, recorded_tools
from bundle.stages.freeze import find_inputs
from bundle.stages.judge import judge, read_evidence
from bundle.stages.lm_eval_files import find_task_files, tasks_of
from bundle.stages.local_environment import local_environment
from bundle.stages.plan import plan_lines
from bundle.stages.recipe import Request
from bundle.stages.recompute import recompute
from bundle.stages.rerun import Parent, request_for, require_runnable
from bundle.stages.set_up import SPEED, facts_of
from tests.lm_eval import RECORDED, TASKS, asking_recipe, evaluated, say
from tests.measured import HOST, measured
from tests.silent import Silent

FIRST, METHOD = "1/0-baseline", "1/1-ngram"


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    """A recipe and its tasks in a folder of their own."""
    shutil.copytree(TASKS, tmp_path / TASKS.name)
    path = tmp_path / "short.toml"
    path.write_text(asking_recipe())
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return evaluated(tmp_path_factory.mktemp("lm_eval") / "run", report=True)


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def test_code_in_a_task_is_refused_before_anything_is_built(
    recipe_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    task = recipe_file.parent / TASKS.name / "say_the_word.yaml"
    task.write_text(
        task.read_text().replace('doc_to_target: "{{word}}"', "doc_to_target: !function a.b")
    )
    text = recipe_file.read_text()
    old = next(line for line in text.splitlines() if line.startswith('"say_the_word.yaml"'))
    recipe_file.write_text(text.replace(old, f'"say_the_word.yaml" = "{sha256_of(task)}"'))
    request = Request(recipe=str(recipe_file), reports=tmp_path / "reports", groups=("ngram",))
    with pytest.raises(RecipeError, match=r"found `!function a\.b`") as caught:
        make(request, Silent())
    assert caught.value.exit_code == 3
    assert caught.value.where == "lm_eval_tasks/say_the_word.yaml:8"
    assert not (cache_root() / "engines").exists()
    with pytest.raises(RecipeError, match=r"found `!function a\.b`"):
        list(plan_lines(request))


def test_files_that_are_missing_or_changed(recipe_file: Path) -> None:
    recipe = parse_recipe(recipe_file.read_text(), "short.toml")
    assert [t.name for t in tasks_of(recipe, recipe_file)] == ["say_the_word"]
    rows = recipe_file.parent / TASKS.name / "words.jsonl"
    rows.write_text('{"word": "other"}\n')
    with pytest.raises(InputError, match=r"expected sha256 .*, found [0-9a-f]{64}") as caught:
        list(find_task_files(recipe, recipe_file))
    assert caught.value.where == str(rows)
    rows.unlink()
    with pytest.raises(InputError, match="found no file"):
        find_inputs(recipe, recipe_file)
    shutil.rmtree(rows.parent)
    with pytest.raises(InputError, match="no such folder; looked at"):
        find_inputs(recipe, recipe_file)


def test_a_recipe_without_tasks_has_none(tmp_path: Path) -> None:
    made = measured(tmp_path / "run")
    recipe = read_json(made / "recipes" / "recipe.json", Recipe)
    assert tasks_of(recipe, made / "recipes" / "recipe.json") == ()
    assert recorded_tools(made) == {}
    assert not any("lm-eval" in line for line in plan_lines(Request(recipe="smollm2-135m")))


def test_plan_shows_it_and_its_time(recipe_file: Path) -> None:
    request = Request(recipe=str(recipe_file), groups=("ngram",))
    lines = list(plan_lines(request))
    at = lines.index("lm-evaluation-harness (environment lm-eval-3.11) at the end of block 1:")
    assert lines[at + 1] == "  say_the_word (6 items, generate_until)"
    assert lines[at + 2] == "  on 1/0-baseline, 1/1-ngram, 1/2-baseline"
    assert lines[at + 3].startswith("  lm_eval run --model local-chat-completions --model_args ")
    assert "http://127.0.0.1:8000/v1/chat/completions" in lines[at + 3]


def test_the_frozen_tasks_are_found_in_a_bundle(whole: Path) -> None:
    recipe = read_json(whole / "recipes" / "recipe.json", Recipe)
    found = list(find_task_files(recipe, whole / "recipes" / "recipe.json"))
    assert {path.parent for _, _, path in found} == {whole / "inputs" / "lm_eval"}
    sums = (whole / "inputs" / "SHA256SUMS").read_text()
    assert all(f"{sha}  lm_eval/{name}\n" in sums for name, sha, _ in found)
    assert (whole / LOCKS / "lm-eval-3.11.packages.lock").is_file()


@pytest.mark.slow
def test_the_numbers_follow_from_the_raw_files(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "same_code", lambda wheel: True)
    found = recompute(whole)
    assert (found.differences, found.note, found.unchecked) == ((), "", "")
    page = (whole / "report" / "report.html").read_text()
    assert "lm-evaluation-harness 0.4.13" in page
    assert "lm_eval_tasks/words.jsonl" in page


def test_items_are_paired_from_the_logged_samples(folder: Path) -> None:
    (group,) = judge(folder, narrowed=("groups: ngram",)).lm_eval
    assert (group.group, group.state) == ("ngram", "SHOWN")
    (row,) = group.rows
    assert (row.compared, row.lost, row.won) == (6, 0, 0)
    assert row.value == row.baseline == pytest.approx(1 / 3)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_raw_files_that_do_not_belong_together(folder: Path) -> None:
    run = folder / "runs" / METHOD
    samples = run / "lm_eval" / "samples.say_the_word.jsonl"
    edit(samples, '"exact_match": 1.0', '"exact_match": 0.0')
    with pytest.raises(BundleError, match="the mean of its samples"):
        read_evidence(folder)
    edit(run / "lm_eval" / "results.json", "0.3333333333333333", "0.16666666666666666")
    with pytest.raises(BundleError, match="the numbers of lm_eval that the start's record says"):
        read_evidence(folder)
    samples.unlink()
    with pytest.raises(BundleError, match="expected what lm_eval wrote, found: No such file"):
        read_evidence(folder)


def test_a_failed_evaluation_leaves_every_other_number_alone(folder: Path) -> None:
    before = judge(folder, narrowed=("groups: ngram",))
    run = folder / "runs" / METHOD
    shutil.rmtree(run / "lm_eval")
    say(run, LmEvalRun(status="failed", reason="lm_eval ended with exit code 1: out of luck"))
    after = judge(folder, narrowed=("groups: ngram",))
    assert (after.effects, after.cells, after.findings[:3]) == (
        before.effects, before.cells, before.findings[:3],
    )  # fmt: skip
    assert after.quality[0].state == "NOT MEASURED"
    assert "out of luck" in after.quality[0].reason
    for verdict in after.verdicts:
        assert any(c.startswith("lm-eval (") for c in verdict.checks_not_run)
        assert verdict.verdict != "SHIP"


def test_a_rerun_says_what_it_would_install(folder: Path, tmp_path: Path) -> None:
    parent = Parent(id="0" * 12, payload=folder)
    require_runnable(parent)
    assert strange_locks(folder) == ()
    assert set(recorded_all(folder)) == {"cpu", "lm-eval-3.11"}
    lines = list(what_will_run(parent, request_for(parent, reports=tmp_path)))
    (said,) = (line for line in lines if line.startswith("lm-evaluation-harness lm-eval-3.11: "))
    assert "a lock that this tool carries" in said


def test_packages_of_a_stranger_are_named(folder: Path) -> None:
    path = folder / LOCKS / "lm-eval-3.11.packages.lock"
    path.write_text(f"evil==1 --hash=sha256:{'a' * 64}\n{path.read_text()}")
    digest = lock_sha256("lm-eval-3.11", folder / LOCKS)
    write_json(folder / TOOLS, {"lm-eval-3.11": {"lock_sha256": digest}})
    assert strange_locks(folder) == ("lm-eval-3.11",)


def test_its_lock_is_part_of_the_set_up_and_bars_no_speed(folder: Path) -> None:
    facts = facts_of(folder)
    digest = recorded_tools(folder)["lm-eval-3.11"].lock_sha256
    assert facts["environment lm-eval-3.11"] == digest
    assert not any(digest in facts[name] for name in SPEED)
    assert "input lm_eval/words.jsonl" in facts


@pytest.mark.parametrize("record", [TOOLS, "locks/engines.json"])
def test_an_environment_that_no_record_names_is_not_installed(folder: Path, record: str) -> None:
    write_json(folder / record, {})
    with pytest.raises(BundleError, match="expected a record of every environment") as caught:
        require_runnable(Parent(id="0" * 12, payload=folder))
    assert caught.value.next_step


def test_a_lock_that_nobody_has(folder: Path) -> None:
    write_json(folder / TOOLS, {"lm-eval-3.11": {"lock_sha256": "a" * 64}})
    shutil.rmtree(folder / LOCKS)
    with pytest.raises(UsageError, match=r"expected the lock of engine lm-eval-3\.11"):
        require_runnable(Parent(id="0" * 12, payload=folder))


def test_verify_looks_at_its_environment_too(folder: Path, tmp_path: Path) -> None:
    found = local_environment(root=tmp_path / "none", host=HOST)(folder)
    assert "engine lm-eval-3.11 is not on this machine" in str(found.unchecked)


def test_the_record_of_a_start_without_it_is_unchanged(whole: Path) -> None:
    record = read_json(whole / "runs" / "2/0-baseline" / "run.json", RunRecord)
    assert record.lm_eval is None
    evidence = read_evidence(whole)
    carrying = [s.folder for s in evidence.starts if s.lm_eval is not None]
    assert carrying == ["1/0-baseline", "1/1-ngram", "1/2-baseline"]
    assert json.loads((RECORDED / "ngram" / "results.json").read_text())["lm_eval_version"]
    assert replace(record, lm_eval=None) == record
