"""Snapshots that somebody brought: used in place or copied, never unseen."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from bundle.core.models import LockedFile, LockedModel, ModelLock
from bundle.core.recipe import DirectoryModel, HubModel, PackageModel
from bundle.errors import ModelError
from bundle.host import models as host
from bundle.host.models import Brought, materialise, require_lock_of
from bundle.host.models.local import copied_snapshot, find_snapshot, require_same
from tests import builders as made

FILES = {"config.json": b"{}", "model.safetensors": b"weights", "sub/tokenizer.json": b"{}"}


def write(folder: Path) -> Path:
    for name, data in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def locked(**changes: object) -> LockedModel:
    files = tuple(
        LockedFile(path=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        for name, data in FILES.items()
    )
    fields = {"source": "hub", "repo": "org/name", "revision": "a" * 40, "files": files}
    return LockedModel(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def say(text: str) -> None:
    """Nobody listens."""


@pytest.mark.parametrize("place", ["draft", "name", f"models--org--name/snapshots/{'a' * 40}"])
def test_where_a_snapshot_may_lie(tmp_path: Path, place: str) -> None:
    folder = write(tmp_path / "own" / place)
    assert find_snapshot(tmp_path / "own", "draft", locked()) == folder
    assert find_snapshot(tmp_path / "else", "draft", locked()) is None


def test_names_of_a_foreign_lock_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "evil").mkdir()
    for repo, revision in (("../evil", "a"), ("x", "../../../evil"), ("a/..", "b")):
        strange = locked(repo=repo, revision=revision)
        assert find_snapshot(tmp_path / "own", "../evil", strange) is None


def test_a_copy_is_verified_named_after_its_content_and_kept(tmp_path: Path) -> None:
    write(tmp_path / "models" / "eagle3")
    lines: list[str] = []
    found = copied_snapshot(tmp_path / "models", "eagle3", locked(), report=lines.append)
    assert found is not None
    assert "eagle" not in found.name
    assert (found / "sub/tokenizer.json").read_bytes() == b"{}"
    assert copied_snapshot(tmp_path / "models", "eagle3", locked(), report=lines.append) == found
    assert len(lines) == 1
    (found / "model.safetensors").write_bytes(b"changed")
    assert copied_snapshot(tmp_path / "models", "eagle3", locked(), report=lines.append) == found
    assert (found / "model.safetensors").read_bytes() == b"weights"
    assert copied_snapshot(tmp_path / "none", "eagle3", locked(), report=say) is None


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("model.safetensors", b"wEights", "changed"),
        ("model.safetensors", b"wei", "truncated"),
        ("extra.py", b"import os", "extra"),
    ],
)
def test_a_tampered_copy_is_refused_and_leaves_nothing(
    tmp_path: Path, name: str, data: bytes, word: str
) -> None:
    folder = write(tmp_path / "models" / "head")
    (folder / name).write_bytes(data)
    with pytest.raises(ModelError, match=word) as caught:
        copied_snapshot(tmp_path / "models", "head", locked(), report=say)
    assert caught.value.exit_code == 5
    left = [p.name for p in (tmp_path / "cache/specbundle/models").iterdir() if p.is_dir()]
    assert left == []


def hub_recipe():
    models = {"target": HubModel(repo="org/name", revision="a" * 40)}
    return made.only(made.NGRAM, models=models)


def test_brought_snapshots_need_no_network_and_no_engine(tmp_path: Path) -> None:
    own = write(tmp_path / "own" / "target")
    bundled = write(tmp_path / "models" / "target").parent
    lock = ModelLock(models={"target": locked()})
    both = Brought(folder=own.parent, bundle=bundled)
    paths, locks = materialise(hub_recipe(), engine=None, report=say, lock=lock, brought=both)  # type: ignore[arg-type]
    assert paths == {"target": own}
    assert locks == lock
    only = Brought(folder=tmp_path / "nothing", bundle=bundled)
    paths, _ = materialise(hub_recipe(), engine=None, report=say, lock=lock, brought=only)  # type: ignore[arg-type]
    assert paths["target"].name.startswith("copied-")


def test_a_tampered_model_of_the_users_is_refused(tmp_path: Path) -> None:
    own = write(tmp_path / "own" / "target")
    (own / "model.safetensors").write_bytes(b"wEights")
    lock = ModelLock(models={"target": locked()})
    with pytest.raises(ModelError, match=r"model\.safetensors: changed"):
        materialise(
            hub_recipe(),
            engine=None,  # type: ignore[arg-type]
            report=say,
            lock=lock,
            brought=Brought(folder=own.parent),
        )


def test_a_directory_that_is_another_now_is_refused(tmp_path: Path) -> None:
    own = write(tmp_path / "own")
    recipe = made.only(made.NGRAM, models={"target": DirectoryModel(path=str(own))})
    lock = ModelLock(models={"target": locked(source="directory")})
    paths, _ = materialise(recipe, engine=None, report=say, lock=lock)  # type: ignore[arg-type]
    assert paths == {"target": own}
    (own / "config.json").write_bytes(b"[]")
    with pytest.raises(ModelError, match="expected the model that was measured"):
        materialise(recipe, engine=None, report=say, lock=lock)  # type: ignore[arg-type]
    require_same("target", write(own), locked())


def test_a_lock_must_be_of_the_recipes_models() -> None:
    package = PackageModel(
        distribution="d",
        version="1",
        wheel_sha256="0" * 64,
        member="m",
        member_sha256="0" * 64,
        conversion="gguf-dequantise-bfloat16",
        files={f.path: f.sha256 or "" for f in locked().files},
    )
    require_lock_of(package, "target", locked(source="package"))
    require_lock_of(DirectoryModel(path="x"), "target", locked())
    require_lock_of(HubModel(repo="org/name", revision="a" * 40), "target", locked())
    fewer = locked(files=locked().files[:1])
    for model, lock in (
        (package, fewer),
        (HubModel(repo="org/name", revision="b" * 40), locked()),
        (HubModel(repo="org/else", revision="a" * 40), locked()),
    ):
        with pytest.raises(ModelError, match="the recipe asks for"):
            require_lock_of(model, "target", lock)
    assert host.Brought() == Brought(folder=None, bundle=None)
