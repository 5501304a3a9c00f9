"""The target writes greedy answers to the training prompts, decoding many at once.

Every answer has the same length: like a server under ``ignore_eos`` the target goes on after the
end-of-text token, of which only the first tokens are kept.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import jinja2
import torch
from net import Layer, Llama, rotary
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

KEPT_AFTER_END = 16


@dataclass(frozen=True)
class Texts:
    """Token ids of all sequences end to end; sequence i is ``tokens[edges[i]:edges[i + 1]]``."""

    tokens: Tensor
    edges: Tensor
    starts: Tensor  # index of the first answer token within each sequence

    def __len__(self) -> int:
        return len(self.starts)

    def save(self, path: Path) -> None:
        """Keep them for a later training run."""
        save_file({"tokens": self.tokens, "edges": self.edges, "starts": self.starts}, path)

    @classmethod
    def load(cls, path: Path) -> Texts:
        """What ``save`` wrote."""
        return cls(**load_file(path))

    def padded(self, rows: list[int]) -> tuple[Tensor, Tensor]:
        """(B, T) tokens, zeros behind, and (B, T) loss weights of the prediction at each position.

        The prediction at t is of token t + 1: weight 1 in answers, 0.1 in prompts, 0 in padding.
        """
        pieces = [self.tokens[self.edges[i] : self.edges[i + 1]] for i in rows]
        tokens = torch.nn.utils.rnn.pad_sequence(pieces, batch_first=True).long()
        following = torch.arange(1, tokens.shape[1] + 1)
        weight = torch.where(following >= self.starts[rows, None], 1.0, 0.1)
        ends = torch.tensor([len(p) for p in pieces])[:, None]
        return tokens, weight * (following < ends)


def say(line: str) -> None:
    """Progress for whoever started the training."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def render(folder: Path, prompts: list[str]) -> list[list[int]]:
    """Token ids of each prompt as the only user turn of the snapshot's chat template."""
    source = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=False).from_string(source)  # noqa: S701 (no HTML)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    texts = [
        template.render(messages=[{"role": "user", "content": p}], add_generation_prompt=True)
        for p in prompts
    ]
    return [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)]


def attend(
    layer: Layer, x: Tensor, turn: tuple[Tensor, Tensor], cache: Tensor, at: Tensor
) -> Tensor:
    """One decoding position: x (B, 1, H), cache (2, B, kv heads, T, D), at (B,) its position."""
    att, shape = layer.self_attn, layer.self_attn.shape
    q, k, v = att.qkv(layer.input_layernorm(x), turn)
    row = torch.arange(len(at), device=at.device)
    cache[0, row, :, at], cache[1, row, :, at] = k[:, :, 0], v[:, :, 0]
    grouped = q.view(len(at), shape.kv_heads, -1, shape.head_dim)
    score = grouped @ cache[0].transpose(-1, -2) * shape.head_dim**-0.5
    future = torch.arange(cache.shape[3], device=at.device) > at[:, None]
    weight = score.float().masked_fill(future[:, None, None], float("-inf")).softmax(-1)
    x = x + att.out((weight.to(x.dtype) @ cache[1]).view(len(at), shape.heads, 1, -1))
    return x + layer.mlp(layer.post_attention_layernorm(x))


def prefill(target: Llama, x: Tensor, caches: list[Tensor]) -> Tensor:
    """Run whole prompts, fill the caches, (B, T, H) -> normed output (B, T, H)."""
    turn = rotary(torch.arange(x.shape[1], device=x.device), target.shape)
    for layer, cache in zip(target.layers, caches, strict=True):
        _, k, v = layer.self_attn.qkv(layer.input_layernorm(x), turn)
        cache[0, :, :, : x.shape[1]], cache[1, :, :, : x.shape[1]] = k, v
        x = layer(x, turn)
    return target.norm(x)


@torch.inference_mode()
def write(target: Llama, table: Tensor, prompts: list[list[int]], new: int) -> Tensor:
    """Greedy continuations, (B, new) token ids, of prompts of similar length."""
    device, shape = table.device, target.shape
    at = torch.tensor([len(p) for p in prompts], device=device)
    longest = int(at.max())
    padded = torch.zeros(len(prompts), longest, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        padded[row, : len(prompt)] = torch.tensor(prompt)
    size = (2, len(prompts), shape.kv_heads, longest + new, shape.head_dim)
    caches = [torch.zeros(size, device=device, dtype=table.dtype) for _ in target.layers]
    last = torch.empty(len(prompts), shape.hidden, device=device, dtype=table.dtype)
    for a in range(0, len(prompts), 512):
        part = slice(a, a + 512)
        seen = prefill(target, table[padded[part].to(device)], [c[:, part] for c in caches])
        last[part] = seen[torch.arange(len(seen), device=device), at[part] - 1]
    written = []
    for _ in range(new):
        written.append((last @ table.T).argmax(-1))
        x, turn = table[written[-1]][:, None], rotary(at[:, None, None], shape)
        for layer, cache in zip(target.layers, caches, strict=True):
            x = attend(layer, x, turn, cache, at)
        last, at = target.norm(x)[:, 0], at + 1
    return torch.stack(written, 1).cpu()


def collect(
    target: Llama, table: Tensor, prompts: list[list[int]], new: int, rows: int, end: int
) -> Texts:
    """Answers to all prompts, ``rows`` at a time by length, back in the order given."""
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    sequences: list[Tensor] = [torch.empty(0)] * len(prompts)
    begun = time.monotonic()
    for a in range(0, len(order), rows):
        chosen = order[a : a + rows]
        for i, answer in zip(
            chosen, write(target, table, [prompts[i] for i in chosen], new), strict=True
        ):
            ends = (answer == end).nonzero().flatten()
            kept = answer[: int(ends[0]) + KEPT_AFTER_END] if len(ends) else answer
            sequences[i] = torch.cat((torch.tensor(prompts[i]), kept)).int()
        say(f"answers {a + len(chosen)}/{len(order)} {time.monotonic() - begun:.1f} s")
    lengths = torch.tensor([0] + [len(s) for s in sequences])
    starts = torch.tensor([len(p) for p in prompts])
    return Texts(torch.cat(sequences), lengths.cumsum(0), starts)
