"""Assembles a helper's checkpoint from trained weights and rows of its target.

``PYTHON assemble.py --kind llama-draft|eagle3-head --base SNAPSHOT --weights FILE --out FOLDER``

What was trained is small; embedding and output rows are the target's own. Tensors are moved as
bytes and none is computed, so the result depends on the input files alone: no torch, no versions.
It is a script of the standard library, so that any interpreter can run it. The safetensors layout
is: eight bytes of length, a JSON header of names, types, shapes and offsets, then the data.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import shutil
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

EMBEDDING = "model.embed_tokens.weight"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
#: vLLM reads a method off the path of a draft model, whatever the configuration says.
TELLING = ("eagle-", "eagle3", "dflash", "dspark")
SIZES = {"BF16": 2, "F16": 2, "F32": 4, "I64": 8, "BOOL": 1}
NAMES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
LONGEST_HEADER = 1 << 24
#: Shapes of one layer by tensor: H hidden, I inner, Q and K widths of queries and keys.
LAYER = {
    "input_layernorm": "H",
    "post_attention_layernorm": "H",
    "self_attn.q_proj": "QX",
    "self_attn.k_proj": "KX",
    "self_attn.v_proj": "KX",
    "self_attn.o_proj": "HQ",
    "mlp.gate_proj": "IH",
    "mlp.up_proj": "IH",
    "mlp.down_proj": "HI",
}


class NotThisTarget(Exception):
    """The weights are broken or were trained for another target; the message says how."""


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """One tensor as it lies in a file: safetensors type, shape, raw little-endian bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


def read_tensors(path: Path, wanted: str | None = None) -> dict[str, Tensor]:
    """Tensors of a safetensors file by name; only ``wanted`` where it is given.

    Raises:
        NotThisTarget: the file is missing, cut off, not safetensors, or lacks what is wanted.
    """
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            text = stream.read(min(length, LONGEST_HEADER))
            header: dict[str, Any] = json.loads(text if len(text) == length else "")
            found = {
                name: _read_one(stream, entry, 8 + length)
                for name, entry in header.items()
                if name != "__metadata__" and wanted in (None, name)
            }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise NotThisTarget(f"{path}: expected a safetensors file, found {error!r}") from error
    if wanted and wanted not in found:
        raise NotThisTarget(f"{path}: expected a tensor {wanted}, found none")
    return found


def _read_one(stream: BinaryIO, entry: Mapping[str, Any], data_at: int) -> Tensor:
    begin, end = entry["data_offsets"]
    shape, wanted = tuple(entry["shape"]), math.prod(entry["shape"]) * SIZES[entry["dtype"]]
    stream.seek(data_at + begin)
    data = stream.read(end - begin)
    if len(data) != wanted:
        raise ValueError(f"{len(data)} bytes instead of {wanted}")
    return Tensor(dtype=entry["dtype"], shape=shape, data=data)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file: names sorted, data without gaps, header padded to eight bytes."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, tensor in sorted(tensors.items()):
        end = place + len(tensor.data)
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [place, end]}
        place = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in sorted(tensors.items()):
            stream.write(tensor.data)


def assemble_draft(base: Path, weights: Path, out: Path) -> dict[str, str]:
    """A Llama of a few layers with the target's vocabulary, embedding and tokenizer.

    Args:
        base: the target's snapshot.
        weights: ``model.layers.*`` and ``model.norm``, as ``data/models/train.py`` writes them.
        out: an existing empty folder; its path must not look like another method's.

    Returns:
        File name -> sha256 of what was written.

    Raises:
        NotThisTarget: shape, vocabulary or path do not fit.
    """
    named = [word for word in TELLING if word in str(out.absolute()).lower()]
    if named:
        raise NotThisTarget(f"{out}: `{named[0]}` in a draft's path makes vLLM take another method")
    target = _configuration(base)
    trained, embedding = read_tensors(weights), _embedding(base, target)
    layers = len({name.split(".")[2] for name in trained if name.startswith("model.layers.")})
    inner = _inner(trained, "model.layers.0.")
    expected: dict[str, tuple[int, ...]] = {"model.norm.weight": (target["hidden_size"],)}
    for index in range(layers):
        expected |= _layer_shapes(f"model.layers.{index}.", target, inner, target["hidden_size"])
    _same_shapes(weights, trained, expected)
    config = {**target, "num_hidden_layers": layers, "intermediate_size": inner}
    try:
        for name in TOKENIZER_FILES:
            shutil.copyfile(base / name, out / name)
    except OSError as error:
        raise NotThisTarget(f"{base}: expected the target's tokenizer, found {error!r}") from error
    return _write(out, config, {**trained, EMBEDDING: embedding})


def assemble_head(base: Path, weights: Path, out: Path) -> dict[str, str]:
    """An EAGLE-3 head of one layer with a reduced draft vocabulary.

    Output row d is the target's row ``d + d2t[d]``; ``t2d`` marks the target's tokens that have a
    row. Args, result and errors as :func:`assemble_draft`, without the rule about the path.
    """
    target = _configuration(base)
    trained, embedding = read_tensors(weights), _embedding(base, target)
    hidden, vocab = target["hidden_size"], target["vocab_size"]
    ids, inner = _draft_ids(weights, trained, vocab), _inner(trained, "midlayer.")
    expected = _layer_shapes("midlayer.", target, inner, 2 * hidden)
    expected |= {"fc.weight": (hidden, 3 * hidden), "norm.weight": (hidden,), "d2t": (len(ids),)}
    _same_shapes(weights, trained, {**expected, "midlayer.hidden_norm.weight": (hidden,)})
    row = len(embedding.data) // vocab
    rows = b"".join(embedding.data[i * row : (i + 1) * row] for i in ids)
    marks = bytearray(vocab)
    for i in ids:
        marks[i] = 1
    made = {
        "embed_tokens.weight": embedding,
        "lm_head.weight": Tensor(dtype=embedding.dtype, shape=(len(ids), hidden), data=rows),
        "t2d": Tensor(dtype="BOOL", shape=(vocab,), data=bytes(marks)),
    }
    return _write(out, _head_configuration(target, inner, len(ids)), {**trained, **made})


def _head_configuration(target: Mapping[str, Any], inner: int, draft_vocab: int) -> dict[str, Any]:
    layers = target["num_hidden_layers"]
    return {
        **target,
        "architectures": ["LlamaForCausalLMEagle3"],
        "draft_vocab_size": draft_vocab,
        "eagle_aux_hidden_state_layer_ids": [2, layers // 2, layers - 3],
        "intermediate_size": inner,
        "num_hidden_layers": 1,
        "target_hidden_size": target["hidden_size"],
        "tie_word_embeddings": False,
    }


def _configuration(base: Path) -> dict[str, Any]:
    path = base / "config.json"
    try:
        config: dict[str, Any] = json.loads(path.read_bytes())
        kind = config["architectures"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotThisTarget(f"{path}: expected a configuration, found {error!r}") from error
    if kind != ["LlamaForCausalLM"]:
        raise NotThisTarget(f"{path}: expected a LlamaForCausalLM, found {kind}")
    return {k: v for k, v in config.items() if not k.startswith("_")}


def _embedding(base: Path, target: Mapping[str, Any]) -> Tensor:
    """The target's embedding, which must be its output layer too."""
    if not target.get("tie_word_embeddings"):
        raise NotThisTarget(f"{base}: expected a target whose embedding is its output layer too")
    path = base / "model.safetensors"
    table = read_tensors(path, EMBEDDING)[EMBEDDING]
    _same_shapes(
        path, {EMBEDDING: table}, {EMBEDDING: (target["vocab_size"], target["hidden_size"])}
    )
    return table


def _inner(trained: Mapping[str, Tensor], layer: str) -> int:
    gate = trained.get(f"{layer}mlp.gate_proj.weight")
    return gate.shape[0] if gate else 0


def _layer_shapes(
    prefix: str, target: Mapping[str, Any], inner: int, width: int
) -> dict[str, tuple[int, ...]]:
    """Expected shapes of a layer whose attention reads ``width`` numbers a token."""
    heads, hidden = target["num_attention_heads"], target["hidden_size"]
    each = target.get("head_dim") or hidden // heads
    sizes = {"H": hidden, "I": inner, "X": width}
    sizes |= {"Q": heads * each, "K": target["num_key_value_heads"] * each}
    return {f"{prefix}{n}.weight": tuple(sizes[c] for c in dims) for n, dims in LAYER.items()}


def _same_shapes(
    path: Path, found: Mapping[str, Tensor], expected: Mapping[str, tuple[int, ...]]
) -> None:
    for name in sorted(found.keys() | expected.keys()):
        have = found[name].shape if name in found else "nothing"
        want = expected.get(name, "nothing")
        if have != want:
            raise NotThisTarget(
                f"{path}: expected {want} for {name} with this target, found {have}"
            )


def _draft_ids(path: Path, trained: Mapping[str, Tensor], vocab: int) -> list[int]:
    """Target token ids of the draft vocabulary, from the offsets ``d2t``."""
    offsets = trained.get("d2t")
    if offsets is None or offsets.dtype != "I64":
        raise NotThisTarget(f"{path}: expected 64-bit offsets d2t, found none")
    count = len(offsets.data) // 8
    ids = [i + offset for i, offset in enumerate(struct.unpack(f"<{count}q", offsets.data))]
    if any(not 0 <= i < vocab for i in ids) or len(set(ids)) < count:
        raise NotThisTarget(f"{path}: d2t must name different tokens of a vocabulary of {vocab}")
    return ids


def _write(out: Path, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, str]:
    config["dtype"] = NAMES[next(t.dtype for t in tensors.values() if t.dtype in NAMES)]
    text = json.dumps(config, indent=2, sort_keys=True) + "\n"
    (out / "config.json").write_text(text, encoding="utf-8")
    write_tensors(out / "model.safetensors", tensors)
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(out.iterdir())}


ASSEMBLERS = {"llama-draft": assemble_draft, "eagle3-head": assemble_head}


def main() -> None:
    """The command line; prints file names and hashes as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=ASSEMBLERS, required=True)
    for name in ("base", "weights", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    a = parser.parse_args()
    try:
        made = ASSEMBLERS[a.kind](a.base, a.weights, a.out)
    except NotThisTarget as error:
        sys.exit(str(error))
    sys.stdout.write(json.dumps(made, indent=2) + "\n")


if __name__ == "__main__":
    main()
