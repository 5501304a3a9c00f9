"""Helpers that do not belong to their target are told from configuration files alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bundle.core.fit import ModelFacts, fit_problems, is_eagle3, mtp_layers, verifier_name
from bundle.core.recipe import Group, Method, Serve, Speculative
from tests.builders import BASE, recipe

HUB = Path(__file__).parents[1] / "data/hub"
QWEN_8B = json.loads((HUB / "Qwen3-8B.config.json").read_text())
QWEN_06B = json.loads((HUB / "Qwen3-0.6B.config.json").read_text())
TOKENIZER = "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4"
SMOL = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 576,
    "vocab_size": 49152,
    "num_hidden_layers": 30,
    "max_position_embeddings": 8192,
}
#: The speculators format of an EAGLE-3 head.
HEAD: dict[str, Any] = {
    "architectures": ["Eagle3Speculator"],
    "speculators_model_type": "eagle3",
    "speculators_config": {
        "algorithm": "eagle3",
        "proposal_methods": [{"speculative_tokens": 3}],
        "verifier": {"name_or_path": "Qwen/Qwen3-8B"},
    },
    "draft_vocab_size": 32000,
    "transformer_layer_config": {
        "hidden_size": 4096, "vocab_size": 151936, "num_hidden_layers": 1,
    },
}  # fmt: skip
#: The original format.
NATIVE = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "hidden_size": 576,
    "vocab_size": 49152,
    "draft_vocab_size": 8192,
}


def _problems(
    method: Method,
    target: dict[str, Any],
    helper: dict[str, Any] | None = None,
    *,
    names: tuple[str, ...] = ("Qwen/Qwen3-8B",),
    k: int = 3,
    path: str = "/cache/models/helper",
    tokenizers: tuple[str | None, str | None] = (TOKENIZER, TOKENIZER),
) -> tuple[str, ...]:
    group = Group(
        name="m",
        model="head" if helper is not None else None,
        speculative=Speculative(method=method, num_speculative_tokens=k),
    )
    made = recipe(groups=(BASE, group))
    facts = {"target": ModelFacts(config=target, names=names, tokenizer_sha256=tokenizers[0])}
    if helper is not None:
        facts["head"] = ModelFacts(config=helper, path=path, tokenizer_sha256=tokenizers[1])
    return fit_problems(made, facts)


def test_helpers_that_belong_to_their_target() -> None:
    assert _problems("draft_model", QWEN_8B, QWEN_06B) == ()
    assert _problems("eagle3", QWEN_8B, HEAD) == ()
    assert _problems("eagle3", SMOL, NATIVE, names=()) == ()
    assert _problems("eagle", SMOL, {"hidden_size": 576, "vocab_size": 49152}) == ()
    assert _problems("ngram", SMOL) == ()
    assert _problems("mtp", QWEN_8B | {"num_nextn_predict_layers": 1}, k=1) == ()


def test_a_draft_with_another_vocabulary() -> None:
    (text,) = _problems("draft_model", QWEN_8B, SMOL, tokenizers=(TOKENIZER, None))
    assert text == "group m: the draft has a vocabulary of 49152 tokens, the target 151936"


def test_a_draft_with_another_tokenizer_of_the_same_size() -> None:
    (text,) = _problems("draft_model", QWEN_8B, QWEN_06B, tokenizers=(TOKENIZER, "0" * 64))
    assert "another tokenizer.json (sha256 000000000000, target aeb13307a71a)" in text


@pytest.mark.parametrize("word", ["eagle3", "EAGLE-", "dflash", "dspark"])
def test_a_path_that_the_engine_would_read_another_method_from(word: str) -> None:
    (text,) = _problems("draft_model", QWEN_8B, QWEN_06B, path=f"/models/{word}x")
    assert f"`{word.lower()}`" in text
    assert "rename the folder" in text


def test_an_eagle3_head_as_a_draft_model_and_a_model_as_an_eagle3_head() -> None:
    (text,) = _problems("draft_model", QWEN_8B, HEAD)
    assert "use method eagle3" in text
    (text,) = _problems("eagle3", QWEN_8B, QWEN_06B)
    assert text.endswith("not an EAGLE-3 head but Qwen3ForCausalLM")
    (text,) = _problems("eagle3", QWEN_8B, {})
    assert text.endswith("but no architecture")


def test_a_head_of_another_verifier() -> None:
    (text,) = _problems("eagle3", QWEN_8B, HEAD, names=("Qwen/Qwen3-8B-Base",))
    assert text == (
        "group m: the head was trained for Qwen/Qwen3-8B, the target is Qwen/Qwen3-8B-Base"
    )
    local = HEAD | {"speculators_config": {"verifier": {"name_or_path": "/data/qwen3-8b/"}}}
    assert _problems("eagle3", QWEN_8B, local) == ()
    # A target that is a local folder has no name to compare; sizes still are.
    assert _problems("eagle3", QWEN_8B, HEAD, names=()) == ()


def test_a_head_for_another_hidden_size() -> None:
    (text,) = _problems("eagle3", SMOL, NATIVE | {"hidden_size": 960}, names=())
    assert text == "group m: the EAGLE-3 head is for hidden size 960, the target has 576"
    # A head may be narrower than its target when it says what it takes.
    narrow = NATIVE | {"hidden_size": 256, "target_hidden_size": 576}
    assert _problems("eagle3", SMOL, narrow, names=()) == ()
    (text,) = _problems("eagle3", SMOL, NATIVE | {"target_hidden_size": 4096}, names=())
    assert "hidden size 4096" in text
    (text,) = _problems("eagle", SMOL, {"hidden_size": 960}, names=())
    assert text == "group m: the EAGLE head is for hidden size 960, the target has 576"


def test_a_head_with_another_vocabulary_or_too_many_draft_tokens() -> None:
    (text,) = _problems("eagle3", SMOL, NATIVE | {"vocab_size": 32000}, names=())
    assert "the head has a vocabulary of 32000 tokens, the target 49152" in text
    (text,) = _problems("eagle3", SMOL, NATIVE | {"draft_vocab_size": 50000}, names=())
    assert "draft vocabulary of 50000 tokens is larger than the target's 49152" in text


def test_a_head_that_reads_layers_the_target_has_not() -> None:
    deep = NATIVE | {"eagle_aux_hidden_state_layer_ids": [2, 18, 33]}
    (text,) = _problems("eagle3", SMOL, deep, names=())
    assert text == "group m: the head reads layer 33, the target has 30"
    fine = NATIVE | {"eagle_aux_hidden_state_layer_ids": [2, 15, 27]}
    assert _problems("eagle3", SMOL, fine, names=()) == ()
    unknown = {k: v for k, v in SMOL.items() if k != "num_hidden_layers"}
    assert _problems("eagle3", unknown, deep, names=()) == ()


def test_mtp_on_a_model_without_it() -> None:
    (text,) = _problems("mtp", SMOL)
    assert text == (
        "group m: method mtp needs a model with MTP layers; the target (LlamaForCausalLM) has none"
    )
    (text,) = _problems("mtp", {})
    assert "(no architecture)" in text
    (text,) = _problems("mtp", SMOL | {"num_nextn_predict_layers": 2}, k=3)
    assert text == "group m: num_speculative_tokens 3 is no multiple of the model's 2 MTP layers"
    assert _problems("mtp", SMOL | {"num_nextn_predict_layers": 2}, k=4) == ()


@pytest.mark.parametrize(
    ("config", "layers"),
    [
        ({"num_nextn_predict_layers": 1}, 1),
        ({"text_config": {"mtp_num_hidden_layers": 2}}, 2),
        ({"mtp_config": {"num_nextn_predict_layers": 3}}, 3),
        ({"num_mtp_modules": 4}, 4),
        ({"num_nextn_predict_layers": None}, 0),
        ({}, 0),
    ],
)
def test_where_mtp_layers_are_declared(config: dict[str, Any], layers: int) -> None:
    assert mtp_layers(config) == layers


def test_a_context_longer_than_the_model_has() -> None:
    made = recipe(groups=(BASE,), serve=Serve(flags={"max-model-len": 9000}))
    (text,) = fit_problems(made, {"target": ModelFacts(config=SMOL)})
    assert text == "target: max-model-len 9000 is above the model's 8192 positions"
    assert fit_problems(made, {"target": ModelFacts(config={})}) == ()


def test_what_counts_as_an_eagle3_head() -> None:
    assert is_eagle3({"speculators_model_type": "peagle"})
    assert is_eagle3({"draft_vocab_size": 1})
    assert not is_eagle3({"architectures": ["LlamaForCausalLM"]})
    assert verifier_name({}) == ""


def test_facts_that_a_configuration_lacks_are_not_held_against_it() -> None:
    assert _problems("eagle3", {}, {"draft_vocab_size": 5}) == ()
    assert _problems("draft_model", {}, {}, tokenizers=(None, TOKENIZER)) == ()
