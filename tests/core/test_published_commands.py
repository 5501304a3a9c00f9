"""The vectors of qwen3-8b against the commands people start these servers with by hand.

The flags are those of the walk-through the recipe follows, with two differences that vLLM 0.32.0
forces or a bundle needs: the baseline has no metrics flag (the engine refuses it there), and models
are named with their revision. The option lists are from ``vllm serve --help=all`` and ``vllm bench
serve --help=all`` of 0.32.0.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bundle.core.bench_args import BenchTarget, bench_vector
from bundle.core.design import cells, expanded_groups, serve_vector
from bundle.core.recipe import Recipe
from bundle.core.recipe_reading import parse_recipe

ROOT = Path(__file__).resolve().parents[2]
HELP = ROOT / "tests/data/help"

COMMON = {
    "--served-model-name": "spec-demo",
    "--host": "127.0.0.1",
    "--port": "8000",
    "--dtype": "bfloat16",
    "--tensor-parallel-size": "1",
    "--kv-cache-dtype": "auto",
    "--max-model-len": "4096",
    "--max-num-seqs": "16",
    "--max-num-batched-tokens": "4096",
    "--gpu-memory-utilization": "0.85",
    "--no-enable-prefix-caching": None,
    "--generation-config": "vllm",
    "--seed": "42",
}
OURS = {"--revision": "b968826d9c46dd6066d109eabc6255188de91218", "--shutdown-timeout": "30"}
METHODS = {
    "ngram": {
        "method": "ngram",
        "num_speculative_tokens": 4,
        "prompt_lookup_min": 2,
        "prompt_lookup_max": 4,
    },
    "draft": {
        "method": "draft_model",
        "model": "Qwen/Qwen3-0.6B",
        "num_speculative_tokens": 4,
        "revision": "c1899de289a04d12100db370d81485cdf75e47ca",
    },
    "eagle3": {
        "method": "eagle3",
        "model": "RedHatAI/Qwen3-8B-speculator.eagle3",
        "num_speculative_tokens": 3,
        "revision": "08610ffa01dd9f16731fe8f627b85905b6aa51c4",
    },
    "suffix": {
        "method": "suffix",
        "num_speculative_tokens": 16,
        "suffix_decoding_max_cached_requests": 0,
    },
}
BENCH = {
    "--backend": "openai",
    "--base-url": "http://127.0.0.1:8000",
    "--endpoint": "/v1/completions",
    "--model": "spec-demo",
    "--tokenizer": "Qwen/Qwen3-8B",
    "--dataset-name": "custom",
    "--dataset-path": "data/code.jsonl",
    "--chat-template-kwargs": '{"enable_thinking":false}',
    "--custom-output-len": "128",
    "--num-prompts": "64",
    "--max-concurrency": "1",
    "--temperature": "0",
    "--top-p": "1",
    "--ignore-eos": None,
    "--seed": "42",
}


def _recipe(name: str) -> Recipe:
    return parse_recipe((ROOT / "recipes" / f"{name}.toml").read_text(), name)


def _flags(words: tuple[str, ...]) -> dict[str, str | None]:
    """Flag to value; None for a bare flag."""
    found: dict[str, str | None] = {}
    for word, following in zip(words, (*words[1:], "--"), strict=True):
        if word.startswith("--"):
            assert word not in found, "a flag twice"
            found[word] = None if following.startswith("--") else following
    return found


def _known(kind: str) -> set[str]:
    return set((HELP / f"vllm-0.32.0-{kind}-options.txt").read_text().split())


def _vector(recipe: Recipe, name: str) -> tuple[str, ...]:
    repos = {key: getattr(model, "repo", key) for key, model in recipe.models.items()}
    group = next(g for g in expanded_groups(recipe) if g.name == name)
    return serve_vector(recipe, group, port=8000, models=repos)


def test_the_baseline_is_the_published_command_without_the_metrics_flag() -> None:
    vector = _vector(_recipe("qwen3-8b"), "baseline")
    assert vector[:2] == ("serve", "Qwen/Qwen3-8B")
    assert _flags(vector) == {**COMMON, **OURS}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_adds_its_configuration_and_the_metrics_flag(name: str) -> None:
    flags = _flags(_vector(_recipe("qwen3-8b"), name))
    config = flags.pop("--speculative-config")
    assert config is not None
    assert json.loads(config) == METHODS[name]
    assert flags.pop("--per-request-spec-decode-metrics") == "summary"
    assert flags == {**COMMON, **OURS}


def test_mtp_is_the_published_command() -> None:
    vector = _vector(_recipe("mimo-7b-mtp"), "mtp")
    assert vector[1] == "XiaomiMiMo/MiMo-7B-Base"
    config = _flags(vector)["--speculative-config"]
    assert config is not None
    assert json.loads(config) == {"method": "mtp", "num_speculative_tokens": 1}


@pytest.mark.parametrize("name", ["qwen3-8b", "mimo-7b-mtp", "smollm2-135m"])
def test_every_flag_is_an_option_of_the_engine(name: str) -> None:
    recipe = _recipe(name)
    for group in expanded_groups(recipe):
        assert set(_flags(_vector(recipe, group.name))) <= _known("serve")


def test_the_bench_is_the_published_command() -> None:
    recipe = _recipe("qwen3-8b")
    cell = next(c for c in cells(recipe, recipe.groups[0]) if c.key == "code-c1")
    target = BenchTarget(
        base_url="http://127.0.0.1:8000",
        served_name="spec-demo",
        tokenizer="Qwen/Qwen3-8B",
        seed=42,
        chat_template_kwargs=recipe.chat_template_kwargs,
    )
    vector = bench_vector(
        cell, target, dataset="data/code.jsonl", result_dir="results", result_name="x.json"
    )
    flags = _flags(vector)
    assert set(flags) <= _known("bench")
    assert flags.get("--request-rate", "inf") == "inf", "the default"
    assert {name: flags[name] for name in BENCH if name in flags} == BENCH
