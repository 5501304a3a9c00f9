"""Local sources of models: a package of the engine, a folder, something assembled here."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from bundle.core.models import LockedFile, LockedModel
from bundle.core.recipe import AssembledModel, DirectoryModel, Group, PackageModel, Speculative
from bundle.errors import ModelError
from bundle.host.engine import EngineEnv
from bundle.host.models import assembled, check_fit, materialise, verify_snapshot
from bundle.host.models.made import made_snapshot
from bundle.host.models.package import convert, locate_member
from bundle.host.models.snapshots import git_object_id, list_files
from tests.builders import BASE, EAGLE, recipe

GGUF = b"GGUF, or so it says"


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> EngineEnv:
    """A bare environment in which a distribution carries a model; no torch, no transformers."""
    path = tmp_path_factory.mktemp("engine")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path)], check=True)
    site = next(path.glob("lib/python*/site-packages"))
    info = site / "llm_tiny-0.1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-tiny\nVersion: 0.1.2\n")
    (site / "llm_tiny").mkdir()
    (site / "llm_tiny/model.gguf").write_bytes(GGUF)
    return EngineEnv(name="t", python=path / "bin/python", bin=path / "bin", lock_sha256="")


def _packaged(**changes) -> PackageModel:
    fields = {
        "distribution": "llm-tiny",
        "version": "0.1.2",
        "wheel_sha256": "0" * 64,
        "member": "llm_tiny/model.gguf",
        "member_sha256": _sha(GGUF),
        "conversion": "gguf-dequantise-bfloat16",
        "files": {"config.json": _sha(b"{}")},
    }
    return PackageModel(**(fields | changes))


def test_a_member_of_an_installed_package(engine: EngineEnv) -> None:
    assert locate_member(_packaged(), engine).read_bytes() == GGUF


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"distribution": "not-there"}, "expected not-there 0.1.2 beside the engine, found none"),
        ({"version": "0.2"}, "of llm-tiny 0.2, found 0.1.2"),
        ({"member": "llm_tiny/other.gguf"}, "found 0.1.2 without that file"),
        ({"member_sha256": "0" * 64}, f"found {_sha(GGUF)}"),
    ],
)
def test_a_package_that_is_not_the_recipes(engine: EngineEnv, changes: dict, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        locate_member(_packaged(**changes), engine)
    assert words in str(caught.value)


def test_a_conversion_that_fails_says_why(engine: EngineEnv, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"(?s)model\.gguf failed: .*No module named 'gguf'"):
        convert(_packaged(), engine, tmp_path)


def test_a_made_snapshot_is_kept_by_its_content(tmp_path: Path) -> None:
    model, calls, lines = _packaged(), [], []

    def make(folder: Path) -> None:
        calls.append(folder)
        (folder / "config.json").write_text("{}")

    path, lock = made_snapshot(model, make, key="target", report=lines.append)
    assert made_snapshot(model, make, key="target", report=lines.append) == (path, lock)
    assert len(calls) == 1
    assert lines == ["model target: making its snapshot"]
    assert (lock.source, lock.repo, lock.revision) == ("package", "llm-tiny", "0.1.2")
    assert lock.files == (LockedFile(path="config.json", size=2, sha256=_sha(b"{}")),)
    assert not list(path.parent.glob("*.half"))
    # A damaged copy is made again, and that is said.
    (path / "config.json").write_text("[]")
    made_snapshot(model, make, key="target", report=lines.append)
    assert len(calls) == 2
    assert "is damaged (config.json: changed" in lines[-1]
    assert (path / "config.json").read_text() == "{}"


def test_a_half_made_snapshot_never_gets_its_name(tmp_path: Path) -> None:
    def breaks(folder: Path) -> None:
        (folder / "config.json").write_text("{}")
        raise KeyboardInterrupt

    def differs(folder: Path) -> None:
        (folder / "config.json").write_text('{"transformers_version": "other"}')

    with pytest.raises(KeyboardInterrupt):
        made_snapshot(_packaged(), breaks, key="target", report=str)
    with pytest.raises(ModelError, match="the snapshot is not the locked one") as caught:
        made_snapshot(_packaged(), differs, key="target", report=str)
    assert caught.value.where == "models.target"
    assert "source = 'directory'" in caught.value.next_step
    assert not [p for p in (tmp_path / "cache/specbundle/models").iterdir() if p.is_dir()]


def _snapshot(folder: Path, config: str = '{"hidden_size": 8, "vocab_size": 9}') -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(config)
    (folder / "model.safetensors").write_bytes(bytes(64))
    return folder


def _materialise(models: dict, groups=(BASE,), engine: EngineEnv | None = None):
    engine = engine or EngineEnv(name="t", python=Path("p"), bin=Path("b"), lock_sha256="")
    made = recipe(models=models, groups=groups)
    return made, *materialise(made, engine=engine, report=str)


def test_a_folder_is_used_in_place(tmp_path: Path) -> None:
    folder = _snapshot(tmp_path / "m")
    (folder / ".cache/huggingface").mkdir(parents=True)
    (folder / ".cache/huggingface/config.json.metadata").touch()
    _, paths, lock = _materialise({"target": DirectoryModel(path=str(folder), licence="MIT")})
    assert paths == {"target": folder}
    model = lock.models["target"]
    assert [f.path for f in model.files] == ["config.json", "model.safetensors"]
    assert (model.licence, model.gated, model.size) == ("MIT", None, 64 + 35)
    verify_snapshot(folder, model)
    (folder / "model.safetensors").write_bytes(bytes(63) + b"x")
    with pytest.raises(ModelError, match=r"model\.safetensors: changed, sha256"):
        verify_snapshot(folder, model)


def test_a_folder_with_recorded_hashes_is_held_against_them(tmp_path: Path) -> None:
    folder = _snapshot(tmp_path / "m")
    files = {p.name: _sha(p.read_bytes()) for p in folder.iterdir()}
    entry = DirectoryModel(path=str(folder), files=files)
    assert _materialise({"target": entry})[1] == {"target": folder}
    for name, words in [("extra.py", r"extra\.py: extra"), ("config.json", "config.json: changed")]:
        (folder / name).write_text("another")
        with pytest.raises(ModelError, match=words):
            _materialise({"target": entry})
        (folder / "extra.py").unlink(missing_ok=True)
    (folder / "config.json").unlink()
    with pytest.raises(ModelError, match=r"without config\.json"):
        _materialise({"target": entry})


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="expected a model's snapshot folder, found none"):
        _materialise({"target": DirectoryModel(path=str(tmp_path / "absent"))})
    folder = _snapshot(tmp_path / "m")
    (folder / "gone.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="a link that leads nowhere"):
        list_files(folder)


def test_only_models_in_use_are_made(tmp_path: Path) -> None:
    folder = _snapshot(tmp_path / "m")
    models = {
        "target": DirectoryModel(path=str(folder)),
        "head": DirectoryModel(path=str(tmp_path / "absent")),
    }
    assert set(_materialise(models)[1]) == {"target"}


ASSEMBLER = """
import argparse, pathlib
p = argparse.ArgumentParser()
for name in ("kind", "base", "weights", "out"):
    p.add_argument(f"--{name}", required=True)
a = p.parse_args()
base = (pathlib.Path(a.base) / "config.json").read_text()
text = a.kind + base + pathlib.Path(a.weights).read_text()
(pathlib.Path(a.out) / "config.json").write_text(text)
"""


def test_a_helper_is_assembled_from_trained_weights_and_its_base(
    tmp_path: Path, engine: EngineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "assemble.py"
    script.write_text(ASSEMBLER)
    monkeypatch.setattr(assembled, "ASSEMBLER", script)
    base = _snapshot(tmp_path / "m", config="{}")
    weights = tmp_path / "trained.safetensors"
    weights.write_text("rows")
    helper = AssembledModel(
        kind="eagle3-head",
        base="target",
        weights=str(weights),
        weights_sha256=_sha(b"rows"),
        files={"config.json": _sha(b"eagle3-head{}rows")},
    )
    models = {"target": DirectoryModel(path=str(base)), "head": helper}
    _, paths, lock = _materialise(models, (BASE, EAGLE), engine)
    assert (paths["head"] / "config.json").read_text() == "eagle3-head{}rows"
    assert lock.models["head"].source == "assembled"
    # The engine reads a method off a path: nothing in it may say one.
    assert not any(word in str(paths["head"].name) for word in ("eagle", "dflash", "dspark"))
    weights.write_text("other rows")
    with pytest.raises(ModelError, match="expected sha256"):
        assembled.locate_weights(helper)
    weights.unlink()
    with pytest.raises(ModelError, match="expected trained weights, found no such file"):
        assembled.locate_weights(helper)


def test_a_helper_that_does_not_fit_is_refused_before_any_server(tmp_path: Path) -> None:
    target = _snapshot(tmp_path / "m")
    head = _snapshot(
        tmp_path / "h", '{"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 16}'
    )
    models = {"target": DirectoryModel(path=str(target)), "head": DirectoryModel(path=str(head))}
    made, paths, _ = _materialise(models, (BASE, EAGLE))
    with pytest.raises(ModelError, match="group eagle3: the EAGLE-3 head is for hidden size 16"):
        check_fit(made, paths)
    mtp = Group(name="mtp", speculative=Speculative(method="mtp", num_speculative_tokens=1))
    made, paths, _ = _materialise(models, (BASE, mtp))
    with pytest.raises(ModelError, match="group mtp: method mtp needs a model with MTP layers"):
        check_fit(made, paths)
    check_fit(*_materialise(models)[:2])


@pytest.mark.parametrize("text", ["", "[1]", "{"])
def test_a_configuration_that_is_none(tmp_path: Path, text: str) -> None:
    folder = _snapshot(tmp_path / "m", config=text)
    made = recipe(groups=(BASE,))
    with pytest.raises(ModelError, match=r"configuration|object in config\.json"):
        check_fit(made, {"target": folder})


def test_git_names_a_file_as_git_does(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("hello\n")
    assert git_object_id(path) == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_differences_are_counted_when_there_are_many(tmp_path: Path) -> None:
    folder = _snapshot(tmp_path / "m")
    for number in range(8):
        (folder / f"x{number}").touch()
    lock = LockedModel(source="hub", files=())
    with pytest.raises(ModelError, match="and 5 more"):
        verify_snapshot(folder, lock)
