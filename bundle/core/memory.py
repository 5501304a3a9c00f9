"""Estimated memory of a target with its helper: weights, KV per token, capacity.

Estimates from configuration files, for transformers with full attention; real servers also hold
activations and graphs. Shown before a run; what counts is what the server then says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

#: Bytes of one element.
_WIDTH = {"float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2, "fp8": 1, "int8": 1}


class Memory(Struct, frozen=True, kw_only=True):
    """Bytes of a model's weights, and bytes of key and value that one token needs in it."""

    weights: int
    kv_per_token: int


class Capacity(Struct, frozen=True, kw_only=True):
    """What a budget of bytes leaves for the KV pool, in tokens, without and with a helper."""

    baseline_tokens: int
    tokens: int

    @property
    def loss(self) -> float:
        """The share of the baseline's KV capacity that the helper costs; 1 where none is left."""
        return 1 - self.tokens / self.baseline_tokens if self.baseline_tokens else 1.0


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model's part of a configuration: multimodal ones nest it."""
    inner = config.get("text_config")
    return inner if isinstance(inner, Mapping) else config


def element_width(config: Mapping[str, Any], dtype: str = "auto") -> int:
    """Bytes of one weight: of ``dtype`` as the server gets it, or the configuration's own.

    float16 and bfloat16 where nothing says otherwise, as the engine has it.
    """
    own = config.get("dtype") or config.get("torch_dtype") or "bfloat16"
    name = str(own) if dtype == "auto" else dtype
    return _WIDTH.get(name.removeprefix("torch."), 2)


def estimate(
    config: Mapping[str, Any], *, stored: int | None, dtype: str = "auto", kv_dtype: str = "auto"
) -> Memory:
    """Weights and KV per token of one model.

    Args:
        config: ``config.json``.
        stored: bytes of the safetensors files, or None to count the weights from the shape.
        dtype: what the server computes in; it converts the stored weights.
        kv_dtype: what the KV pool stores; ``auto`` is ``dtype``.
    """
    inner = text_config(config)
    width = element_width(inner, dtype)
    if stored is None:
        weights = parameters(inner) * width
    else:
        weights = stored * width // element_width(inner)
    kv_width = width if kv_dtype == "auto" else _WIDTH.get(kv_dtype.split("_")[0], 2)
    return Memory(weights=weights, kv_per_token=kv_elements(inner) * kv_width)


def kv_elements(config: Mapping[str, Any]) -> int:
    """Numbers that one token keeps: keys and values of every layer (grouped-query attention)."""
    layers = int(config.get("num_hidden_layers", 0))
    return 2 * layers * _kv_heads(config) * _head_size(config)


def parameters(config: Mapping[str, Any]) -> int:
    """Weights of a decoder with gated feed-forward layers, without the norms (under 0.01 %).

    An EAGLE-3 head, known by its own output vocabulary, also has a matrix that joins three of the
    target's hidden states, and its attention reads two vectors instead of one (Li et al. 2025).
    """
    hidden = int(config.get("hidden_size", 0))
    heads = int(config.get("num_attention_heads", 1))
    size = _head_size(config)
    attention = hidden * size * (2 * heads + 2 * _kv_heads(config))
    feed_forward = 3 * hidden * int(config.get("intermediate_size", 0))
    words = int(config.get("vocab_size", 0))
    output = 0 if config.get("tie_word_embeddings") else words
    joined = 0
    if own := config.get("draft_vocab_size"):
        output = int(own)
        joined = 3 * hidden * int(config.get("target_hidden_size") or hidden)
        attention += hidden * size * (heads + 2 * _kv_heads(config))
    layers = int(config.get("num_hidden_layers", 0))
    return layers * (attention + feed_forward) + joined + hidden * (words + output)


def capacity(budget: int, target: Memory, helper: Memory | None) -> Capacity:
    """KV tokens that fit beside the weights; a token with a helper needs both models' share.

    Args:
        budget: bytes that the engine may use.
        target: the target's memory.
        helper: the helper's, or None.
    """
    baseline = max(0, budget - target.weights) // max(1, target.kv_per_token)
    if helper is None:
        return Capacity(baseline_tokens=baseline, tokens=baseline)
    free = max(0, budget - target.weights - helper.weights)
    both = max(1, target.kv_per_token + helper.kv_per_token)
    return Capacity(baseline_tokens=baseline, tokens=free // both)


def _kv_heads(config: Mapping[str, Any]) -> int:
    return int(config.get("num_key_value_heads") or config.get("num_attention_heads") or 1)


def _head_size(config: Mapping[str, Any]) -> int:
    own = config.get("head_dim")
    heads = int(config.get("num_attention_heads") or 1)
    return int(own) if own else int(config.get("hidden_size", 0)) // heads
