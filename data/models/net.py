"""Plain PyTorch models for training: Llama (target and draft) and the EAGLE-3 head.

Parameter names are those of the Hugging Face and EAGLE-3 checkpoints, so that a state dict is a
checkpoint. Shapes in comments: B sequences, T positions, H hidden size, V vocabulary.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)
AUX_LAYERS = (2, 15, 27)  # vLLM's default for 30 layers: (2, n // 2, n - 3)


@dataclass(frozen=True)
class Shape:
    """The numbers of a Llama configuration."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    inner: int
    vocab: int
    eps: float
    theta: float

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        return self.hidden // self.heads

    @classmethod
    def read(cls, folder: Path) -> Shape:
        """The shape that ``config.json`` of a snapshot states."""
        c = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return cls(
            hidden=c["hidden_size"],
            layers=c["num_hidden_layers"],
            heads=c["num_attention_heads"],
            kv_heads=c["num_key_value_heads"],
            inner=c["intermediate_size"],
            vocab=c["vocab_size"],
            eps=c["rms_norm_eps"],
            theta=c["rope_parameters"]["rope_theta"],
        )


class Norm(nn.Module):
    """RMS normalisation, computed in float32."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x: Tensor) -> Tensor:
        """(..., H) -> (..., H)."""
        return F.rms_norm(x.float(), (x.shape[-1],), self.weight.float(), self.eps).to(x.dtype)


def rotary(positions: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """(cos, sin) of each position, (..., head_dim), halves repeated as Llama has them."""
    half = shape.head_dim // 2
    power = torch.arange(half, device=positions.device, dtype=torch.float32) / half
    angle = positions[..., None].float() * shape.theta**-power
    return torch.cat((angle, angle), -1).cos(), torch.cat((angle, angle), -1).sin()


def rotate(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Apply rotary embedding to (B, heads, T, D)."""
    left, right = x.chunk(2, -1)
    return (x * turn[0] + torch.cat((-right, left), -1) * turn[1]).to(x.dtype)


class Attention(nn.Module):
    """Grouped-query attention; ``width`` is the input width (2H in the EAGLE-3 head)."""

    def __init__(self, shape: Shape, width: int) -> None:
        super().__init__()
        self.shape = shape
        self.q_proj = nn.Linear(width, shape.heads * shape.head_dim, bias=False)
        self.k_proj = nn.Linear(width, shape.kv_heads * shape.head_dim, bias=False)
        self.v_proj = nn.Linear(width, shape.kv_heads * shape.head_dim, bias=False)
        self.o_proj = nn.Linear(shape.heads * shape.head_dim, shape.hidden, bias=False)

    def qkv(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """(B, T, width) -> q (B, heads, T, D), k and v (B, kv heads, T, D), q and k rotated."""
        q, k, v = (
            p(x).unflatten(-1, (-1, self.shape.head_dim)).transpose(1, 2)
            for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        return rotate(q, turn), rotate(k, turn), v

    def out(self, mixed: Tensor) -> Tensor:
        """(B, heads, T, D) -> (B, T, H)."""
        return self.o_proj(mixed.transpose(1, 2).flatten(-2))

    def spread(self, x: Tensor) -> Tensor:
        """Repeat key/value heads so that each query head has its own."""
        return x.repeat_interleave(self.shape.heads // self.shape.kv_heads, dim=1)


class Mlp(nn.Module):
    """Gated feed-forward network."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.inner, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.inner, bias=False)
        self.down_proj = nn.Linear(shape.inner, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(..., H) -> (..., H)."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """One Llama layer."""

    def __init__(self, shape: Shape, width: int | None = None) -> None:
        super().__init__()
        self.input_layernorm = Norm(shape.hidden, shape.eps)
        self.self_attn = Attention(shape, width or shape.hidden)
        self.post_attention_layernorm = Norm(shape.hidden, shape.eps)
        self.mlp = Mlp(shape)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Causal over whole sequences, (B, T, H) -> (B, T, H)."""
        att = self.self_attn
        q, k, v = att.qkv(self.input_layernorm(x), turn)
        mixed = F.scaled_dot_product_attention(q, att.spread(k), att.spread(v), is_causal=True)
        x = x + att.out(mixed)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """A Llama without its embedding, which is passed in: the draft shares the target's."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.hidden, shape.eps)

    def forward(self, x: Tensor, keep: tuple[int, ...] = ()) -> tuple[Tensor, list[Tensor]]:
        """Embeddings (B, T, H) -> normed output and the residual stream before layers ``keep``."""
        turn, kept = rotary(torch.arange(x.shape[1], device=x.device), self.shape), []
        for index, layer in enumerate(self.layers):
            if index in keep:
                kept.append(x)
            x = layer(x, turn)
        return self.norm(x), kept


class Head(nn.Module):
    """EAGLE-3 head: one layer over (token embedding, fused target features)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.fc = nn.Linear(len(AUX_LAYERS) * shape.hidden, shape.hidden, bias=False)
        self.midlayer = Layer(shape, 2 * shape.hidden)
        self.midlayer.hidden_norm = Norm(shape.hidden, shape.eps)
        self.norm = Norm(shape.hidden, shape.eps)

    def step(
        self, token: Tensor, hidden: Tensor, past: list[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """One drafting step from every position at once (training-time test of EAGLE-3).

        Args:
            token: (B, T, H) embeddings of the tokens that follow; step j: token i + 1 + j.
            hidden: (B, T, H) fused features (step 0) or this head's own last output.
            past: keys and values of the steps before; this step's are appended. A query of step j
                at i sees step 0 up to i and, of each later step, only its own chain's entry.

        Returns:
            (B, T, H) normed output for the draft vocabulary, and the hidden state for step j + 1.
        """
        mid, att, depth = self.midlayer, self.midlayer.self_attn, len(past)
        place = torch.arange(token.shape[1], device=token.device) + depth
        x = torch.cat((mid.input_layernorm(token), mid.hidden_norm(hidden)), -1)
        q, k, v = att.qkv(x, rotary(place, self.shape))
        past.append((att.spread(k), att.spread(v)))
        if depth:
            mixed = chain_attention(q, past)
        else:
            mixed = F.scaled_dot_product_attention(q, *past[0], is_causal=True)
        hidden = hidden + att.out(mixed)
        hidden = hidden + mid.mlp(mid.post_attention_layernorm(hidden))
        return self.norm(hidden), hidden


def chain_attention(q: Tensor, past: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Attention of a later drafting step: causal over step 0, diagonal over the steps since."""
    first, size, scale = past[0], q.shape[-2], q.shape[-1] ** -0.5
    open_ = torch.ones(size, size, dtype=torch.bool, device=q.device).tril()
    score = (q @ first[0].transpose(-1, -2)).masked_fill(~open_, float("-inf"))
    own = [(q * k).sum(-1, keepdim=True) for k, _ in past[1:]]
    weight = (torch.cat((score, *own), -1).float() * scale).softmax(-1).to(q.dtype)
    mixed = weight[..., :size] @ first[1]
    for index, (_, v) in enumerate(past[1:]):
        mixed = mixed + weight[..., size + index, None] * v
    return mixed


def load_target(folder: Path, device: str, dtype: torch.dtype) -> tuple[Llama, Tensor]:
    """The target of a snapshot and its (V, H) embedding, which is its output layer too."""
    weights = load_file(folder / "model.safetensors")
    table = weights.pop("model.embed_tokens.weight")
    target = Llama(Shape.read(folder))
    target.load_state_dict({k.removeprefix("model."): v for k, v in weights.items()})
    target.requires_grad_(requires_grad=False)
    return target.to(device, dtype), table.to(device, dtype)


def new_draft(shape: Shape, layers: int, inner: int) -> Llama:
    """An untrained draft of the target's width."""
    return start(Llama(replace(shape, layers=layers, inner=inner)))


def new_head(shape: Shape, inner: int) -> Head:
    """An untrained EAGLE-3 head."""
    return start(Head(replace(shape, layers=1, inner=inner)))


def start(model: M) -> M:
    """Small normal weights, smaller where a branch joins the stream; modest first logits."""
    nn.init.constant_(model.norm.weight, 0.4)
    for name, p in model.named_parameters():
        if p.ndim == 2:
            nn.init.normal_(p, std=0.01 if "o_proj" in name or "down_proj" in name else 0.03)
    return model
