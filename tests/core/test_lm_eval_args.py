"""The vector of lm_eval: greedy and seeded, and on which starts."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from bundle.core.lm_eval_args import LmEvalTarget, evaluated_runs, lm_eval_vector
from bundle.core.recipe import LmEval, Recipe
from tests.builders import recipe

SPEC = LmEval(lock="lm-eval-3.11", path="t", files={"t.yaml": "0" * 64}, tasks=("t", "u"))
TARGET = LmEvalTarget(
    base_url="http://127.0.0.1:9",
    served_name="m",
    tokenizer="/models/target",
    tasks="/in/lm_eval",
    output="/out",
)


def asking(spec: LmEval = SPEC, **changes: object) -> Recipe:
    made = recipe(**changes)
    return replace(made, quality=replace(made.quality, lm_eval=spec))


def options(made: Recipe, spec: LmEval = SPEC) -> dict[str, str]:
    vector = lm_eval_vector(made, spec, TARGET)
    return {word: vector[i + 1] for i, word in enumerate(vector[:-1]) if word.startswith("--")}


def test_chat_is_greedy_seeded_and_needs_no_tokenizer() -> None:
    made = asking(chat_template_kwargs={"enable_thinking": False})
    vector = lm_eval_vector(made, SPEC, TARGET)
    assert vector[:3] == ("run", "--model", "local-chat-completions")
    assert vector[-3:] == ("--log_samples", "--output_path", "/out")
    assert "--apply_chat_template" in vector
    at = vector.index("--tasks")
    assert vector[at : at + 3] == ("--tasks", "t", "u")
    found = options(made)
    assert json.loads(found["--model_args"]) == {
        "model": "m",
        "base_url": "http://127.0.0.1:9/v1/chat/completions",
        "num_concurrent": made.quality.concurrency,
        "timeout": made.serve.request_timeout,
        "max_gen_toks": 256,
        "max_length": 1000,
        "seed": 42,
    }
    assert json.loads(found["--gen_kwargs"]) == {
        "temperature": 0,
        "do_sample": False,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert found["--seed"] == "42"


def test_completions_take_the_local_tokenizer_and_no_template() -> None:
    spec = replace(SPEC, api="completions")
    made = asking(spec, chat_template_kwargs={"enable_thinking": False})
    vector = lm_eval_vector(made, spec, TARGET)
    assert "local-completions" in vector
    assert "--apply_chat_template" not in vector
    found = options(made, spec)
    arguments = json.loads(found["--model_args"])
    assert arguments["base_url"] == "http://127.0.0.1:9/v1/completions"
    assert arguments["tokenizer"] == "/models/target"
    assert json.loads(found["--gen_kwargs"]) == {"temperature": 0, "do_sample": False}
    assert "chat_template_kwargs" not in json.loads(options(asking())["--gen_kwargs"])


def test_the_first_block_with_a_quality_pass_carries_it() -> None:
    made = asking()
    assert [run.folder for run in evaluated_runs(made)] == [
        "1/0-baseline", "1/1-ngram", "1/2-eagle3", "1/3-baseline",
    ]  # fmt: skip
    later = replace(made, quality=replace(made.quality, blocks=(2, 3)))
    assert {run.block for run in evaluated_runs(later)} == {2}


@pytest.mark.parametrize("changes", [{"lm_eval": None}, {"enabled": False}])
def test_no_start_carries_what_is_not_asked_for(changes: dict[str, object]) -> None:
    made = asking()
    assert evaluated_runs(replace(made, quality=replace(made.quality, **changes))) == ()
