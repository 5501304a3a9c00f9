"""Multi-token prediction on the real engine: a tiny random model of MiMo's architecture."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import httpx
import msgspec
import pytest

from bundle.core.design import serve_vector
from bundle.core.fit import fit_problems
from bundle.core.metrics import increase, parse_metrics
from bundle.core.recipe import DirectoryModel, Group, Recipe, Speculative
from bundle.core.recipe_reading import parse_recipe
from bundle.host import serving_env
from bundle.host.engine import EngineEnv, ensure_engine
from bundle.host.leftovers import STATE_FILE
from bundle.host.models import materialise
from bundle.host.models.fitting import read_facts
from bundle.host.ports import free_port
from bundle.host.server import Server, ServerSpec
from tests.end_to_end.short import short_recipe

pytestmark = pytest.mark.engine
MTP = Group(name="mtp", speculative=Speculative(method="mtp", num_speculative_tokens=1))
MIMO = {
    "architectures": ["MiMoForCausalLM"],
    "model_type": "qwen2",
    "hidden_act": "silu",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_nextn_predict_layers": 1,
    "vocab_size": 49152,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@pytest.fixture(scope="module")
def engine() -> EngineEnv:
    return ensure_engine("cpu", report=print)


@pytest.fixture(scope="module")
def smol(engine: EngineEnv) -> tuple[Recipe, Path]:
    recipe = parse_recipe(short_recipe(), "short.toml")
    paths, _ = materialise(recipe, engine=engine, report=print)
    return recipe, paths["target"]


@pytest.fixture
def mimo(smol: tuple[Recipe, Path], tmp_path: Path) -> Path:
    """The tiny model's folder: the configuration, and SmolLM2's tokenizer."""
    folder = tmp_path / "mimo"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(MIMO))
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copyfile(smol[1] / name, folder / name)
    return folder


def _recipe(recipe: Recipe, target: Path) -> Recipe:
    """The short recipe with another target and the method mtp alone."""
    flags = {**recipe.serve.flags, "load-format": "dummy"}
    return msgspec.structs.replace(
        recipe,
        models={"target": DirectoryModel(path=str(target))},
        groups=(recipe.groups[0], MTP),
        serve=msgspec.structs.replace(recipe.serve, flags=flags),
    )


def test_smollm2_has_no_layers_for_it(smol: tuple[Recipe, Path]) -> None:
    recipe = _recipe(*smol)
    (problem,) = fit_problems(recipe, read_facts(recipe, {"target": smol[1]}))
    assert "method mtp needs a model with MTP layers" in problem


def test_a_model_with_the_layer_fits_and_is_served(
    engine: EngineEnv, smol: tuple[Recipe, Path], mimo: Path, tmp_path: Path
) -> None:
    recipe = _recipe(smol[0], mimo)
    assert fit_problems(recipe, read_facts(recipe, {"target": mimo})) == ()
    port = free_port()
    vector = serve_vector(recipe, MTP, port=port, models={"target": str(mimo)})
    libraries = serving_env.preloads("cpu", engine.bin.parent / "lib")
    spec = ServerSpec(
        argv=(str(engine.python), str(engine.bin / "vllm"), *vector),
        env={
            **serving_env.base_environment(os.environ),
            **serving_env.cache_variables(tmp_path / "cache"),
            **serving_env.preload_variable(libraries),
            **recipe.serve.env,
        },
        log=tmp_path / "server.log",
        state=tmp_path / STATE_FILE,
        port=port,
        ready_seconds=600,
    )
    asked = {
        "model": "spec-demo",
        "messages": [{"role": "user", "content": "Say something."}],
        "max_tokens": 24,
        "temperature": 0,
    }
    with Server(spec) as server, httpx.Client(base_url=server.base_url, trust_env=False) as client:
        answer = client.post("/v1/chat/completions", json=asked, timeout=120).json()
        page = parse_metrics(client.get("/metrics", timeout=30).text)
    found = answer["metrics"]["speculative_decoding"]
    assert found["num_spec_tokens"] == 1
    rounds = found["num_spec_steps"]
    assert rounds > 0
    assert found["num_draft_tokens"] == rounds, "one token a round"
    assert sum(found["acceptance_histogram"]) == rounds
    assert increase(parse_metrics(""), page).rounds == rounds
