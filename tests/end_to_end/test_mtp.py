"""Multi-token prediction on the real engine: a tiny random model of MiMo's architecture."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from bundle.core.design import serve_vector
from bundle.core.divergences import Question
from bundle.core.fit import fit_problems
from bundle.core.metrics import increase, parse_metrics
from bundle.core.quality_pass import Chat, ChatItem
from bundle.core.recipe import DirectoryModel, Group, Recipe, Speculative
from bundle.core.recipe_reading import parse_recipe
from bundle.host import serving_env
from bundle.host.engine import EngineEnv, ensure_engine
from bundle.host.http_client import ask_again, chat_pass
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


ITEM = ChatItem(
    id="q",
    kind="arithmetic",
    task="chat",
    messages=(("user", "Say something."),),
    max_tokens=24,
)
CHAT = Chat(
    model="spec-demo",
    concurrency=1,
    seed=42,
    timeout=120,
    max_tokens=None,
    template={},
    speculative=True,
)


@pytest.fixture(scope="module")
def engine() -> EngineEnv:
    return ensure_engine("cpu", report=print)


@pytest.fixture(scope="module")
def smol(engine: EngineEnv) -> tuple[Recipe, Path]:
    recipe = parse_recipe(short_recipe(), "short.toml")
    paths, _ = materialise(recipe, engine=engine, report=print)
    return recipe, paths["target"]


@pytest.fixture(scope="module")
def mimo(smol: tuple[Recipe, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model's folder: the configuration, and SmolLM2's tokenizer."""
    folder = tmp_path_factory.mktemp("mimo")
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


@pytest.fixture(scope="module")
def server(
    engine: EngineEnv,
    smol: tuple[Recipe, Path],
    mimo: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    """The tiny model, served with one token of its own layer a round."""
    recipe = _recipe(smol[0], mimo)
    assert fit_problems(recipe, read_facts(recipe, {"target": mimo})) == ()
    folder = tmp_path_factory.mktemp("served")
    port = free_port()
    vector = serve_vector(recipe, MTP, port=port, models={"target": str(mimo)})
    libraries = serving_env.preloads("cpu", engine.bin.parent / "lib")
    spec = ServerSpec(
        argv=(str(engine.python), str(engine.bin / "vllm"), *vector),
        env={
            **serving_env.base_environment(os.environ),
            **serving_env.cache_variables(folder / "cache"),
            **serving_env.preload_variable(libraries),
            **recipe.serve.env,
        },
        log=folder / "server.log",
        state=folder / STATE_FILE,
        port=port,
        ready_seconds=600,
    )
    with Server(spec) as running:
        yield running


def test_a_model_with_the_layer_fits_and_is_served(server: Server) -> None:
    with httpx.Client(base_url=server.base_url, trust_env=False) as client:
        before = parse_metrics(client.get("/metrics", timeout=30).text)
        (reply,) = chat_pass(server.base_url, [ITEM], CHAT)
        after = parse_metrics(client.get("/metrics", timeout=30).text)
    assert reply.error is None
    found = reply.speculative
    assert found is not None
    assert found.rounds > 0
    assert found.drafted == found.rounds, "one token a round"
    assert len(found.histogram) == 2
    assert sum(found.histogram) == found.rounds
    assert increase(before, after).rounds == found.rounds


def test_the_real_server_tells_its_two_best_tokens_at_a_place(server: Server) -> None:
    (reply,) = chat_pass(server.base_url, [ITEM], CHAT)
    assert reply.token_ids is not None
    question = Question(
        item=ITEM,
        prompt_sha256=reply.prompt_sha256,
        prefix=reply.token_ids[:6],
        baseline_token=reply.token_ids[6],
        tokens={"other": None},
    )
    again, refused = ask_again(
        server.base_url,
        [question, msgspec.structs.replace(question, prompt_sha256="0" * 64)],
        CHAT,
    )
    assert not isinstance(again, str), again
    (best, first), (second, less) = again
    assert best == reply.token_ids[6], "greedy: what it wrote is its best"
    assert best != second
    assert less <= first <= 0
    assert refused == "the server renders another prompt than the one that was answered"
