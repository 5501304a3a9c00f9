"""What a foreign recipe may ask of this machine, and what no recipe may."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from bundle.core.foreign import always_refused, refused
from bundle.core.recipe import Recipe
from bundle.core.recipe_reading import parse_recipe
from tests import builders as made

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_shipped_recipes_may_be_run_again_anywhere(path: Path) -> None:
    recipe = parse_recipe(path.read_text(), path.name)
    assert list(refused(recipe)) == []
    assert list(always_refused(recipe)) == []


def with_flag(name: str, value: object) -> Recipe:
    return replace(made.recipe(), groups=(made.BASE, replace(made.NGRAM, flags={name: value})))


def with_variable(name: str, value: str) -> Recipe:
    return replace(made.recipe(), serve=replace(made.recipe().serve, env={name: value}))


@pytest.mark.parametrize("name", ["trust-remote-code", "trust_remote_code", "trust-rem", "-trust"])
def test_code_of_a_model_is_never_run(name: str) -> None:
    for found in (always_refused(with_flag(name, True)), refused(with_flag(name, True))):
        (text,) = found
        assert text.startswith(f"groups.ngram.flags: --{name} ")


@pytest.mark.parametrize(
    "name",
    [
        "middleware",
        "worker-cls",
        "worker-extension-cls",
        "logits-processors",
        "tool-parser-plugin",
        "hf-overrides",
        "config",
        "chat-template",
        "max-num-seqs=3 --middleware",
        "middlew",
        "speculative-config",
        "no-",
        "",
    ],
)
def test_flags_that_are_not_on_the_list(name: str) -> None:
    (text,) = refused(with_flag(name, "x"))
    assert "is not on the list of harmless flags" in text


@pytest.mark.parametrize("value", ["/etc/passwd", "~/x", "..", "http://127.0.0.1", "a\\b"])
def test_places_behind_harmless_names(value: str) -> None:
    assert "names a place" in next(refused(with_flag("generation-config", value)))
    assert "names a place" in next(refused(with_variable("VLLM_LOGGING_LEVEL", value)))


def test_a_served_name_may_be_a_repository() -> None:
    assert list(refused(with_flag("served-model-name", "Qwen/Qwen3-8B"))) == []
    assert list(refused(with_flag("no-enable-prefix-caching", True))) == []
    assert list(refused(with_flag("dtype", "bfloat16"))) == []


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "PATH",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "HF_TOKEN",
        "VLLM_PLUGINS",
        "VLLM_ALLOW_INSECURE_SERIALIZATION",
        "VLLM_NCCL_SO_PATH",
        "VLLM_API_KEY",
        "NCCL_NET_PLUGIN",
        "CUDA_HOME",
        "vllm_x",
    ],
)
def test_variables_that_load_code_or_tell_secrets(name: str) -> None:
    (text,) = refused(with_variable(name, "1"))
    assert f"the variable {name} is not on the list" in text


@pytest.mark.parametrize("name", ["VLLM_USE_V2_MODEL_RUNNER", "OMP_NUM_THREADS", "KMP_BLOCKTIME"])
def test_variables_that_tune(name: str) -> None:
    assert list(refused(with_variable(name, "1"))) == []
