"""The command: exit codes and one clear error for wrong input."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from bundle.__main__ import main

CHECKOUT = Path(__file__).parents[1]
SMOL = (CHECKOUT / "recipes" / "smollm2-135m.toml").read_text()


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def specbundle(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Done]:
    """The command in this process."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: str, cwd: Path = CHECKOUT) -> Done:
        monkeypatch.chdir(cwd)
        with pytest.raises(SystemExit) as caught:
            main(list(words))
        out, err = capsys.readouterr()
        return Done(int(caught.value.code or 0), out, err)

    return call


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bundle", "run", "nowhere"],
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
        check=False,
    )
    assert done.returncode == 4
    assert done.stderr.startswith("specbundle: nowhere: no such recipe")


def test_help_names_every_command(specbundle: Callable[..., Done]) -> None:
    done = specbundle("--help")
    assert done.returncode == 0
    for name in [
        "run",
        "verify",
        "report",
        "judge",
        "pin",
        "lock",
        "workloads",
        "doctor",
        "plan",
        "sign",
        "index",
        "simulate",
    ]:
        assert f" {name} " in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "--nope"], 2, "No such option: --nope"),
        (["run", "nowhere"], 4, "no such recipe; shipped are: mimo-7b-mtp"),
        (["run", "smollm2-135m", "--groups", "ngrm"], 2, "the recipe has baseline, ngram"),
        (["run", "smollm2-135m", "--concurrency", "7"], 2, "the recipe has 1, 4"),
        (["run", "smollm2-135m", "--concurrency", "1,7"], 2, "7: the recipe has 1, 4"),
        (["run", "smollm2-135m", "--concurrency", "1,x"], 2, "expected numbers of requests"),
        (["plan", "smollm2-135m", "--concurrency", "0"], 2, "expected numbers of requests"),
        (["run", "smollm2-135m", "--concurrency", "4"], 2, "leaves out the target load c1"),
        (["run", "smollm2-135m", "--tasks", "poetry"], 2, "the recipe has code, chat"),
        (["plan", "qwen3-8b", "--concurrency", "1"], 2, "leaves out the target load c8"),
        (["judge", "x.json", "--assume-noise", "5"], 2, "less than or equal to 1"),
        (["pack", "nowhere"], 9, "expected the folder of a finished run"),
        (["judge"], 2, "expected observation files, or --baseline DIR"),
        (["judge", "nowhere.json"], 4, "cannot read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_words_are_one_clear_error(
    specbundle: Callable[..., Done], words: list[str], code: int, message: str
) -> None:
    done = specbundle(*words)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("rounds = 2", "round = 2", 3, "did you mean `rounds`?"),
        ("a40f61638be253e5", "a40f61638be253e6", 4, "expected sha256 a40f61638be253e6"),
        ("data/code.jsonl", "data/nothing.jsonl", 4, "no such file; looked at"),
    ],
)
def test_a_wrong_recipe_ends_before_anything_starts(
    specbundle: Callable[..., Done], tmp_path: Path, old: str, new: str, code: int, message: str
) -> None:
    file = tmp_path / "r.toml"
    file.write_text(SMOL.replace(old, new))
    done = specbundle("run", str(file), cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "next:" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_reports_folder_must_be_writable(
    specbundle: Callable[..., Done], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    done = specbundle("run", "smollm2-135m", "--reports", str(tmp_path / "file" / "reports"))
    assert done.returncode == 8, done.stderr
    assert "Traceback" not in done.stderr


def test_plan_shows_every_vector_without_running_anything(specbundle: Callable[..., Done]) -> None:
    done = specbundle("plan", "qwen3-8b")
    assert done.returncode == 0
    assert '--speculative-config \'{"method":"eagle3"' in done.stdout
    assert "31 server starts" in done.stdout
    assert "quality pass in block 1, 2, 3: all items" in done.stdout


def test_plan_shows_a_narrowed_run(specbundle: Callable[..., Done]) -> None:
    narrow = ("--groups", "ngram,suffix", "--concurrency", "1", "--no-quality", "--rounds", "1")
    done = specbundle("plan", "smollm2-135m", *narrow)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("cells: code-c1 x 4, chat-c1 x 4\n") == 3
    assert "5 server starts in order: primer/0-baseline, 1/0-baseline, 1/1-ngram" in done.stdout
    assert "no quality pass: no verdict can be SHIP" in done.stdout


def test_without_a_gpu_a_recipe_for_one_is_refused_before_an_engine_is_made(
    specbundle: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    done = specbundle("run", "qwen3-8b", cwd=tmp_path)
    assert done.returncode == 8, done.stderr
    assert "expected 1 NVIDIA GPU, found 0" in done.stderr
    assert "engine cuda" not in done.stdout


def test_a_recipe_that_is_not_pinned_is_refused_before_an_engine_is_made(
    specbundle: Callable[..., Done], tmp_path: Path
) -> None:
    done = specbundle("run", "mimo-7b-mtp", cwd=tmp_path)
    assert done.returncode == 5, done.stderr
    assert "found `unpinned` for target" in done.stderr
    assert "engine cuda" not in done.stdout


def test_plan_names_a_server_that_cannot_start(specbundle: Callable[..., Done]) -> None:
    done = specbundle("plan", "qwen3-8b", "--gpu-memory", "18")
    assert done.returncode == 0, done.stderr
    assert "baseline cannot start there: one request may take" in done.stdout
    whole = specbundle("plan", "qwen3-8b", "--gpu-memory", "80")
    assert "cannot start" not in whole.stdout


def test_plan_tells_memory_fit_and_hours(specbundle: Callable[..., Done]) -> None:
    done = specbundle("plan", "qwen3-8b", "--gpu-memory", "80")
    assert "draft: weights 15.26 GiB, KV 144 KiB/token + helper weights 1.11 GiB" in done.stdout
    assert "45% less than without the helper" in done.stdout
    assert "not known here yet, so not held against the target: eagle3" in done.stdout
    assert " h in all: 31 starts" in done.stdout
    done = specbundle("plan", "mimo-7b-mtp")
    assert "model target is not pinned: specbundle pin" in done.stdout
    assert "memory and time are told once the target's configuration is here" in done.stdout


def test_plan_knows_the_demonstration_before_its_first_run(
    specbundle: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = specbundle("plan", "smollm2-135m")
    assert done.returncode == 0, done.stderr
    assert "not known here yet" not in done.stdout
    assert "every model that is known here fits its target" in done.stdout
    assert "eagle3: weights 0.50 GiB, KV 45 KiB/token + helper weights 0.14 GiB" in done.stdout
    assert " min in all: 13 starts" in done.stdout


def test_plan_refuses_a_configuration_that_the_recipe_does_not_record(
    specbundle: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "r.toml").write_text(SMOL)
    (tmp_path / "configs").mkdir()
    (own,) = (CHECKOUT / "recipes" / "configs").glob("packaged-*.json")
    wrong = own.read_text().replace("576", "512")
    (tmp_path / "configs" / own.name).write_text(wrong)
    done = specbundle("plan", str(tmp_path / "r.toml"))
    assert done.returncode == 5, done.stdout
    assert f"{own.name}: expected sha256 6f1339384eec" in done.stderr
    assert "restore the file" in done.stderr


def test_plan_names_what_does_not_fit(specbundle: Callable[..., Done], tmp_path: Path) -> None:
    wrong = (CHECKOUT / "recipes/qwen3-8b.toml").read_text()
    wrong = wrong.replace("max-model-len = 4096", "max-model-len = 50000")
    wrong = wrong.replace('name = "eagle3"\nmodel = "eagle3"', 'name = "eagle3"\nmodel = "draft"')
    (tmp_path / "r.toml").write_text(wrong)
    done = specbundle("plan", str(tmp_path / "r.toml"))
    assert "does not fit: target: max-model-len 50000 is above the model's 40960" in done.stdout
    assert "the helper is not an EAGLE-3 head but Qwen3ForCausalLM" in done.stdout


def test_doctor_ends_with_a_line_for_each_subject(specbundle: Callable[..., Done]) -> None:
    done = specbundle("doctor")
    assert "PDF" in done.stdout
    assert "engine cpu" in done.stdout


def test_a_file_that_is_no_report_stops_no_other(
    specbundle: Callable[..., Done], tmp_path: Path
) -> None:
    cell = {"baseline": {"output_throughput": 100}, "speculative": {"output_throughput": 150}}
    good = {"schema": "specbundle.observations/1", "id": "good", "method": "mtp", "cells": [cell]}
    (tmp_path / "bad.json").write_text("")
    # Editors of some systems begin a file with a byte order mark.
    (tmp_path / "good.json").write_text(json.dumps(good), encoding="utf-8-sig")
    files = [str(tmp_path / name) for name in ("bad.json", "good.json", "nowhere.json")]
    done = specbundle("judge", "--json", *files)
    rows = json.loads(done.stdout)
    assert [(r["file"], r["verdict"]) for r in rows] == [
        (files[0], None), (files[1], "SHIP"), (files[2], None),
    ]  # fmt: skip
    assert rows[0].keys() >= rows[1].keys() & {"file", "id", "verdict", "findings", "advice"}
    assert "expected one JSON object" in rows[0]["error"]
    assert done.returncode == 4
    assert "bad.json: expected" in done.stderr
    assert "nowhere.json: cannot read" in done.stderr
    plain = specbundle("judge", files[1], files[0])
    assert plain.stdout.startswith("SHIP  good")
    assert plain.returncode == 4
