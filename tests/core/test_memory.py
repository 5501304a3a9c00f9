"""Estimated weights, KV per token and capacity, held against published figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bundle.core.memory import Memory, capacity, element_width, estimate, parameters

RECIPES = Path(__file__).parents[2] / "recipes"
HEAD = RECIPES / "configs/helper-1e586aea0f082127.json"
HUB = Path(__file__).parents[1] / "data/hub"
QWEN_8B = json.loads((HUB / "Qwen3-8B.config.json").read_text())
QWEN_06B = json.loads((HUB / "Qwen3-0.6B.config.json").read_text())
#: Bytes of all tensors of Qwen3-8B, from its own index file.
TENSORS_8B = 16_381_470_720
GIB = 1 << 30


def test_kv_per_token_is_what_the_shapes_say() -> None:
    """Two times layers, KV heads, head size and two bytes."""
    assert estimate(QWEN_8B, stored=None).kv_per_token == 147_456
    assert estimate(QWEN_06B, stored=None).kv_per_token == 114_688
    assert estimate(QWEN_8B, stored=None, kv_dtype="fp8_e4m3").kv_per_token == 73_728
    assert estimate(QWEN_8B, stored=None, dtype="float32").kv_per_token == 294_912


def test_counted_weights_agree_with_the_checkpoint() -> None:
    assert parameters(QWEN_8B) * 2 == pytest.approx(TENSORS_8B, rel=1e-4)
    assert estimate(QWEN_8B, stored=None).weights == parameters(QWEN_8B) * 2


def test_an_eagle3_head_counts_its_own_vocabulary_and_its_wider_attention() -> None:
    """The demonstration's head: the matrices of its file, without norms and index tables."""
    found = json.loads(HEAD.read_text())
    feed_forward = 3 * 576 * 1024
    attention = 1152 * (576 + 2 * 192) + 576 * 576
    expected = 49152 * 576 + 8192 * 576 + 1728 * 576 + feed_forward + attention
    assert parameters(found) == expected
    del found["target_hidden_size"]
    assert parameters(found) == expected
    assert parameters({**found, "target_hidden_size": 64}) == expected - 3 * 512 * 576


def test_stored_weights_are_converted_to_what_the_server_computes_in() -> None:
    assert estimate(QWEN_8B, stored=TENSORS_8B).weights == TENSORS_8B
    assert estimate(QWEN_8B, stored=TENSORS_8B, dtype="float32").weights == 2 * TENSORS_8B
    assert element_width({"torch_dtype": "torch.float32"}) == 4
    assert element_width({"dtype": "float16"}) == 2
    assert element_width({}, "unheard-of") == 2


def test_a_multimodal_model_keeps_its_language_model_apart() -> None:
    assert estimate({"text_config": QWEN_8B}, stored=None) == estimate(QWEN_8B, stored=None)


def test_a_model_without_grouped_queries_or_a_head_size() -> None:
    plain = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    assert estimate(plain, stored=0).kv_per_token == 2 * 2 * 4 * 16 * 2
    assert estimate({}, stored=0) == Memory(weights=0, kv_per_token=0)


def test_capacity_with_and_without_a_helper() -> None:
    """Qwen3-0.6B as a draft leaves about 56 % of the KV pool, before its own weights."""
    target = estimate(QWEN_8B, stored=TENSORS_8B)
    draft = estimate(QWEN_06B, stored=1_503_300_328)
    alone = capacity(68 * GIB, target, None)
    assert alone.tokens == alone.baseline_tokens == (68 * GIB - TENSORS_8B) // 147_456
    assert alone.loss == 0
    both = capacity(68 * GIB, target, draft)
    assert both.baseline_tokens == alone.tokens
    assert both.loss == pytest.approx(0.45, abs=0.02)
    free = Memory(weights=0, kv_per_token=draft.kv_per_token)
    assert 1 - capacity(68 * GIB, target, free).loss == pytest.approx(0.5625, abs=1e-4)


def test_no_room_at_all() -> None:
    target = estimate(QWEN_8B, stored=TENSORS_8B)
    assert capacity(GIB, target, None).tokens == 0
    assert capacity(GIB, target, target).loss == 1.0
