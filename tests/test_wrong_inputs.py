"""Every kind of wrong input: one clear error with its exit code, before any server starts.

The engine is the stand-in of tests/fake_engine, taken with --engine-python: nothing here comes as
far as starting it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bundle.__main__ import main
from bundle.host import cache, pdf

CHECKOUT = Path(__file__).parents[1]
SMOL = (CHECKOUT / "recipes" / "smollm2-135m.toml").read_text()
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 576,
    "num_attention_heads": 9,
    "num_hidden_layers": 30,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
}
HEAD = {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 8000}


class Done(NamedTuple):
    code: int
    error: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a recipe's text in an empty folder with an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    engine = tmp_path / "engine"
    info = engine / "vllm-0.32.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n")
    (engine / "vllm").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(engine))

    def call(text: str, *words: str, engine: bool = True) -> Done:
        (tmp_path / "r.toml").write_text(text)
        found = ["--engine-python", sys.executable] if engine else []
        with pytest.raises(SystemExit) as caught:
            main(["run", "r.toml", *found, *words])
        error = capsys.readouterr().err
        assert "Traceback" not in error
        assert error.count("next:") <= 1
        assert not list(tmp_path.rglob("server.log")), "a server was started"
        return Done(int(caught.value.code or 0), error)

    return call


def _model(folder: Path, name: str, config: dict[str, Any]) -> str:
    """A snapshot of configuration files, as a recipe's model."""
    place = folder / name
    place.mkdir()
    (place / "config.json").write_text(json.dumps(config))
    (place / "tokenizer.json").write_text("{}")
    return f'source = "directory"\npath = "{place}"\n'


def _with_models(text: str, models: dict[str, str]) -> str:
    """The CPU recipe with other models."""
    start, end = text.index("[models.target]"), text.index("# float32")
    tables = "".join(f"[models.{key}]\n{table}\n" for key, table in models.items())
    return text[:start] + tables + text[end:]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rounds = 2", "round = 2", "did you mean `rounds`?"),
        ('method = "ngram"', 'method = "ngrams"', "ngrams"),
        (
            '"draft_model", num_speculative_tokens = 4',
            '"draft_model", num_speculative_tokens = 0',
            "num_speculative_tokens",
        ),
        (
            "prompt_lookup_min = 2, prompt_lookup_max = 4",
            "prompt_lookup_min = 5, prompt_lookup_max = 4",
            "prompt_lookup_min",
        ),
    ],
    ids=["unknown-key", "unknown-method", "k-0", "window"],
)
def test_a_recipe_that_says_nonsense(run: Run, old: str, new: str, message: str) -> None:
    line = SMOL[: SMOL.index(old)].count("\n") + 1
    done = run(SMOL.replace(old, new))
    assert done.code == 3
    assert message in done.error
    assert f"r.toml:{line}" in done.error
    assert "next:" in done.error


def test_a_revision_that_moves(run: Run) -> None:
    text = (CHECKOUT / "recipes" / "qwen3-8b.toml").read_text()
    done = run(text.replace("b968826d9c46dd6066d109eabc6255188de91218", "main"))
    assert done.code == 3
    assert "40" in done.error
    assert "main" in done.error


def test_a_model_that_nobody_pinned(run: Run) -> None:
    done = run((CHECKOUT / "recipes" / "mimo-7b-mtp.toml").read_text().replace('"cuda"', '"cpu"'))
    assert done.code == 5
    assert "unpinned" in done.error
    assert "specbundle pin" in done.error


def test_missing_and_changed_files(run: Run) -> None:
    done = run(SMOL.replace("data/code.jsonl", "data/nothing.jsonl"))
    assert (done.code, "no such file" in done.error) == (4, True)
    done = run(SMOL.replace("a40f61638be253e5", "a40f61638be253e6"))
    assert (done.code, "expected sha256 a40f61638be253e6" in done.error) == (4, True)


def test_a_broken_line_of_prompts_is_named(run: Run, tmp_path: Path) -> None:
    rows = (CHECKOUT / "data" / "code.jsonl").read_bytes().splitlines(keepends=True)
    rows[16] = rows[16][:40] + b"\n"
    content = b"".join(rows)
    (tmp_path / "mine.jsonl").write_bytes(content)
    text = SMOL.replace("data/code.jsonl", "mine.jsonl").replace(
        "a40f61638be253e56c143aa180a5248ae9e0fa1f9bd7dd8128ef7cba00153ff9",
        hashlib.sha256(content).hexdigest(),
    )
    done = run(text)
    assert done.code == 4
    assert "mine.jsonl, line 17: expected one JSON object a line" in done.error


def test_a_draft_with_another_vocabulary(run: Run, tmp_path: Path) -> None:
    models = {
        "target": _model(tmp_path, "t", LLAMA),
        "draft": _model(tmp_path, "d", {**LLAMA, "vocab_size": 32000}),
        "head": _model(tmp_path, "h", {**LLAMA, **HEAD}),
    }
    done = run(_with_models(SMOL, models))
    assert done.code == 5
    assert "group draft: the draft has a vocabulary of 32000 tokens, the target 49152" in done.error


def test_a_head_for_another_hidden_size(run: Run, tmp_path: Path) -> None:
    models = {
        "target": _model(tmp_path, "t", LLAMA),
        "draft": _model(tmp_path, "d", LLAMA),
        "head": _model(tmp_path, "h", {**LLAMA, **HEAD, "hidden_size": 4096}),
    }
    done = run(_with_models(SMOL, models))
    assert done.code == 5
    assert "group eagle3: the EAGLE-3 head is for hidden size 4096, the target has 576" in (
        done.error
    )


def test_multi_token_prediction_without_its_layers(run: Run, tmp_path: Path) -> None:
    models = {"target": _model(tmp_path, "t", LLAMA)}
    start, end = SMOL.index('[[groups]]\nname = "ngram"'), SMOL.index("[[workloads]]")
    group = (
        '[[groups]]\nname = "mtp"\nspeculative = { method = "mtp", num_speculative_tokens = 1 }\n'
    )
    done = run(_with_models(SMOL[:start] + group + SMOL[end:], models))
    assert done.code == 5
    assert "method mtp needs a model with MTP layers; the target (LlamaForCausalLM) has none" in (
        done.error
    )


def test_no_space_for_the_engine(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = cache.shutil.disk_usage

    def small(path: Path) -> Any:
        return usage(path)._replace(free=2**30)

    monkeypatch.setattr(cache.shutil, "disk_usage", small)
    done = run(SMOL, engine=False)
    assert done.code == 8
    assert "no space left: engine cpu needs 5.0 GiB, 1.0 GiB are free" in done.error
    assert "XDG_CACHE_HOME" in done.error


def test_no_pango(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "weasyprint":
                raise OSError("cannot load library 'libpango-1.0-0'")

    for name in [n for n in sys.modules if n.split(".")[0] == "weasyprint"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    assert pdf.__name__ not in ("weasyprint",)
    done = run(SMOL)
    assert done.code == 8
    assert "the PDF needs Pango" in done.error
    assert "apt-get install libpango-1.0-0" in done.error


def test_a_reports_folder_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run(SMOL, "--reports", str(tmp_path / "file" / "reports"))
    assert done.code == 8
    assert "file" in done.error
