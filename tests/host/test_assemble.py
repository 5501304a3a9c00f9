"""Helpers are put together from trained weights and the target's rows, byte for byte."""

from __future__ import annotations

import json
import math
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from bundle.core.fit import is_eagle3
from bundle.host import assemble
from bundle.host.assemble import NotThisTarget, Tensor, read_tensors, write_tensors
from bundle.host.hashing import sha256_of

HIDDEN, INNER, VOCAB, LAYERS = 8, 6, 20, 10
KEPT = (0, 3, 4, 19)
CONFIG = {
    "_model_name_or_path": "somewhere",
    "architectures": ["LlamaForCausalLM"],
    "head_dim": 4,
    "hidden_size": HIDDEN,
    "intermediate_size": 16,
    "model_type": "llama",
    "num_attention_heads": 2,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": 1,
    "tie_word_embeddings": True,
    "vocab_size": VOCAB,
}
MODELS = Path(assemble.__file__).parents[2] / "data/models"


def _random(*shape: int) -> Tensor:
    rng = random.Random(str(shape))  # noqa: S311 (made-up weights)
    return Tensor(dtype="BF16", shape=shape, data=rng.randbytes(2 * math.prod(shape)))


def _layer(prefix: str, width: int, inner: int = INNER) -> dict[str, Tensor]:
    shapes = {
        "input_layernorm": (HIDDEN,),
        "post_attention_layernorm": (HIDDEN,),
        "self_attn.q_proj": (8, width),
        "self_attn.k_proj": (4, width),
        "self_attn.v_proj": (4, width),
        "self_attn.o_proj": (HIDDEN, 8),
        "mlp.gate_proj": (inner, HIDDEN),
        "mlp.up_proj": (inner, HIDDEN),
        "mlp.down_proj": (HIDDEN, inner),
    }
    return {f"{prefix}{name}.weight": _random(*shape) for name, shape in shapes.items()}


def _draft(width: int = HIDDEN) -> dict[str, Tensor]:
    layers = _layer("model.layers.0.", width) | _layer("model.layers.1.", width)
    return layers | {"model.norm.weight": _random(HIDDEN)}


def _offsets(ids: tuple[int, ...]) -> Tensor:
    offsets = [target - row for row, target in enumerate(ids)]
    return Tensor(dtype="I64", shape=(len(ids),), data=struct.pack(f"<{len(ids)}q", *offsets))


def _head(ids: tuple[int, ...] = KEPT) -> dict[str, Tensor]:
    return _layer("midlayer.", 2 * HIDDEN) | {
        "midlayer.hidden_norm.weight": _random(HIDDEN),
        "fc.weight": _random(HIDDEN, 3 * HIDDEN),
        "norm.weight": _random(HIDDEN),
        "d2t": _offsets(ids),
    }


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer.json").write_text("words")
    (folder / "tokenizer_config.json").write_text("settings")
    table = {assemble.EMBEDDING: _random(VOCAB, HIDDEN), "model.norm.weight": _random(HIDDEN)}
    write_tensors(folder / "model.safetensors", table)
    return folder


def _stored(tmp_path: Path, tensors: dict[str, Tensor]) -> Path:
    path = tmp_path / "trained.safetensors"
    write_tensors(path, tensors)
    return path


def _out(tmp_path: Path, name: str = "made") -> Path:
    path = tmp_path / name
    path.mkdir()
    return path


def test_a_draft_is_the_trained_layers_between_the_targets_embedding_and_itself(
    base: Path, tmp_path: Path
) -> None:
    out, trained = _out(tmp_path), _draft()
    made = assemble.assemble_draft(base, _stored(tmp_path, trained), out)
    tensors = read_tensors(out / "model.safetensors")
    assert tensors == {**trained, assemble.EMBEDDING: _random(VOCAB, HIDDEN)}
    config = json.loads((out / "config.json").read_text())
    assert config == {
        **{k: v for k, v in CONFIG.items() if not k.startswith("_")},
        "dtype": "bfloat16",
        "intermediate_size": INNER,
        "num_hidden_layers": 2,
    }
    assert (out / "tokenizer.json").read_text() == "words"
    assert made == {p.name: sha256_of(p) for p in out.iterdir()}
    assert sorted(made) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_a_head_has_the_targets_rows_of_its_draft_vocabulary(base: Path, tmp_path: Path) -> None:
    out, trained = _out(tmp_path), _head()
    made = assemble.assemble_head(base, _stored(tmp_path, trained), out)
    tensors = read_tensors(out / "model.safetensors")
    table = _random(VOCAB, HIDDEN).data
    for row, token in enumerate(KEPT):
        have = tensors["lm_head.weight"].data[row * 16 : row * 16 + 16]
        assert have == table[token * 16 : token * 16 + 16]
    assert tensors["lm_head.weight"].shape == (len(KEPT), HIDDEN)
    assert [i for i, mark in enumerate(tensors["t2d"].data) if mark] == list(KEPT)
    assert tensors["embed_tokens.weight"].data == table
    assert {k: tensors[k] for k in trained} == trained
    config = json.loads((out / "config.json").read_text())
    assert is_eagle3(config)
    assert config["draft_vocab_size"] == len(KEPT)
    # vLLM's own choice for a Llama of n layers: 2, n // 2, n - 3.
    assert config["eagle_aux_hidden_state_layer_ids"] == [2, 5, 7]
    assert (config["num_hidden_layers"], config["tie_word_embeddings"]) == (1, False)
    assert sorted(made) == ["config.json", "model.safetensors"]


@pytest.mark.parametrize(("kind", "make"), [("llama-draft", _draft), ("eagle3-head", _head)])
def test_the_script_gives_the_same_bytes_without_this_package(
    kind: str, make: type, base: Path, tmp_path: Path
) -> None:
    weights = _stored(tmp_path, make())
    expected = assemble.ASSEMBLERS[kind](base, weights, _out(tmp_path, "first"))
    argv = [sys.executable, "-I", assemble.__file__, "--kind", kind, "--base", str(base)]
    argv += ["--weights", str(weights), "--out", str(_out(tmp_path, "second"))]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout) == expected


def test_the_script_says_what_does_not_fit_and_fails(base: Path, tmp_path: Path) -> None:
    weights = _stored(tmp_path, _head())
    argv = [sys.executable, assemble.__file__, "--kind", "llama-draft", "--base", str(base)]
    argv += ["--weights", str(weights), "--out", str(_out(tmp_path))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "expected nothing for d2t with this target, found (4,)" in done.stderr
    assert "Traceback" not in done.stderr


def _changed(name: str, value: object) -> str:
    return json.dumps({**CONFIG, name: value})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (_changed("hidden_size", 16), r"expected \(20, 16\) for model\.embed_tokens\.weight"),
        (_changed("vocab_size", 21), r"expected \(21, 8\) for model\.embed_tokens\.weight"),
        (_changed("num_key_value_heads", 2), r"expected \(8, 8\) for .*k_proj"),
        (_changed("architectures", ["Qwen3ForCausalLM"]), "expected a LlamaForCausalLM, found"),
        (_changed("tie_word_embeddings", False), "whose embedding is its output layer too"),
        ("{", "expected a configuration"),
        ("[]", "expected a configuration"),
        ("{}", "expected a configuration"),
    ],
)
def test_a_target_the_draft_was_not_trained_for_is_refused(
    config: str, message: str, base: Path, tmp_path: Path
) -> None:
    (base / "config.json").write_text(config)
    with pytest.raises(NotThisTarget, match=message):
        assemble.assemble_draft(base, _stored(tmp_path, _draft()), _out(tmp_path))


def test_a_draft_of_another_width_is_refused(base: Path, tmp_path: Path) -> None:
    with pytest.raises(NotThisTarget, match=r"expected \(4, 8\) for .*k_proj.*found \(4, 12\)"):
        assemble.assemble_draft(base, _stored(tmp_path, _draft(12)), _out(tmp_path))


def test_a_draft_needs_the_targets_tokenizer(base: Path, tmp_path: Path) -> None:
    (base / "tokenizer.json").unlink()
    with pytest.raises(NotThisTarget, match="expected the target's tokenizer"):
        assemble.assemble_draft(base, _stored(tmp_path, _draft()), _out(tmp_path))


@pytest.mark.parametrize("word", assemble.TELLING)
def test_a_drafts_path_must_not_name_another_method(word: str, base: Path, tmp_path: Path) -> None:
    out = _out(tmp_path, f"my-{word}x".upper())
    with pytest.raises(NotThisTarget, match=f"`{word}` in a draft's path"):
        assemble.assemble_draft(base, _stored(tmp_path, _draft()), out)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ((0, 20), "different tokens of a vocabulary of 20"),
        ((-1, 3), "different tokens of a vocabulary of 20"),
        ((3, 3), "different tokens of a vocabulary of 20"),
    ],
)
def test_a_head_of_another_vocabulary_is_refused(
    ids: tuple[int, ...], message: str, base: Path, tmp_path: Path
) -> None:
    with pytest.raises(NotThisTarget, match=message):
        assemble.assemble_head(base, _stored(tmp_path, _head(ids)), _out(tmp_path))


def test_draft_weights_are_no_head(base: Path, tmp_path: Path) -> None:
    with pytest.raises(NotThisTarget, match="expected 64-bit offsets d2t, found none"):
        assemble.assemble_head(base, _stored(tmp_path, _draft()), _out(tmp_path))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"12345678",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 11) + b'{"a": null}',
        struct.pack("<Q", 1 << 60) + b"{}",
        struct.pack("<Q", 56) + b'{"a":{"dtype":"BF16","shape":[9],"data_offsets":[0,18]}}',
        struct.pack("<Q", 55) + b'{"a":{"dtype":"F8","shape":[1],"data_offsets":[0, 1]}}' + b" a",
    ],
)
def test_a_file_that_is_not_whole_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.safetensors"
    path.write_bytes(content)
    with pytest.raises(NotThisTarget, match=r"broken\.safetensors: expected a safetensors file"):
        read_tensors(path)


def test_a_missing_file_and_a_missing_tensor_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotThisTarget, match="gone"):
        read_tensors(tmp_path / "gone")
    path = _stored(tmp_path, {"a": _random(2)})
    with pytest.raises(NotThisTarget, match="expected a tensor b, found none"):
        read_tensors(path, "b")


def test_the_layout_is_that_of_safetensors(tmp_path: Path) -> None:
    tensors = {"b": _random(3), "a": _random(2, 2)}
    path = _stored(tmp_path, tensors)
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    assert length % 8 == 0
    assert header["a"] == {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}
    assert header["b"] == {"dtype": "BF16", "shape": [3], "data_offsets": [8, 14]}
    assert raw[8 + length :] == tensors["a"].data + tensors["b"].data


def test_what_is_shipped_is_only_what_was_trained_and_small() -> None:
    draft, head = (read_tensors(MODELS / f"{n}.safetensors") for n in ("draft", "eagle3"))
    assert not any("embed" in name or "lm_head" in name for name in (*draft, *head))
    assert {t.dtype for n, t in (draft | head).items() if n != "d2t"} == {"BF16"}
    ids = [i + o for i, o in enumerate(struct.unpack("<8192q", head["d2t"].data))]
    assert ids == sorted(set(ids))
    assert max(ids) < 49152
    assert sum(p.stat().st_size for p in MODELS.glob("*.safetensors")) <= 16_000_000
