"""Models and wheels in the archive, and a run folder sealed once more."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bundle.core.models import LockedFile, LockedModel, ModelLock
from bundle.errors import BundleError, ModelError, UsageError
from bundle.host.engine_lock import lock_sha256
from bundle.host.folders import write_json
from bundle.host.hashing import sha256_of
from bundle.host.wheel import wheel_name
from bundle.stages import include as stage
from bundle.stages.engine_locks import LOCKS, TOOLS, freeze_locks
from bundle.stages.include import included, seal_again
from bundle.stages.pack import ACCEPTED, pack
from bundle.stages.recipe import Request
from bundle.stages.verify import Request as VerifyRequest
from bundle.stages.verify import verify
from tests import builders as made
from tests.bundles import files_of, run_folder, write
from tests.host.tiny_engine import line, write_engine, write_wheel


def say(text: str) -> None:
    """Nobody listens."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run of the tiny engine with one model in a folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    locks, links = write_engine(tmp_path)
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(links), "NO_CACHE_DIR": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("TINY_LOG", str(tmp_path / "builds.txt"))
    monkeypatch.setattr(stage, "tool_files", lambda **kw: {wheel_name(): b"wheel"})
    run = run_folder(tmp_path / "run")
    (tmp_path / "model").mkdir()
    write(tmp_path / "model" / "config.json", b"{}")
    write(tmp_path / "model" / "model.safetensors", b"weights")
    recipe = made.only(
        made.NGRAM,
        engine=made.Engine(version="0.32.0", device="cpu", lock="tiny"),
        models={"target": made.DirectoryModel(path=str(tmp_path / "model"))},
    )
    files = tuple(
        LockedFile(path=p.name, size=p.stat().st_size, sha256=sha256_of(p))
        for p in sorted((tmp_path / "model").iterdir())
    )
    lock = ModelLock(models={"target": LockedModel(source="directory", files=files)})
    write_json(run / "recipes" / "recipe.json", recipe)
    write_json(run / "locks" / "models.lock.json", lock)
    freeze_locks(run, ["tiny"], locks)
    env = stage.ensure_engine("tiny", report=say, locks=locks, uv=None)
    entry = {"lock_sha256": env.lock_sha256, "locked": True, "missing": {}}
    write_json(run / "locks" / "engines.json", {"tiny": entry})
    return run


def ask(tmp_path: Path, **changes: object) -> Request:
    return Request(recipe="", reports=tmp_path / "out", **changes)  # type: ignore[arg-type]


def test_nothing_is_included_unless_it_is_asked_for(run: Path, tmp_path: Path) -> None:
    assert included(run, ask(tmp_path), report=say) == {}
    (archive, *copies) = seal_again_without_report(run, ask(tmp_path))
    (tmp_path / "again").mkdir()
    assert pack(run, tmp_path / "again", stem="tiny").archive.read_bytes() == archive.read_bytes()
    assert copies == []


def seal_again_without_report(run: Path, request: Request) -> tuple[Path, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, "copy_reports", lambda folder, archive: ())
        return seal_again(run, request, report=say)


def test_models_and_wheels_go_into_the_archive_and_not_into_the_folder(
    run: Path, tmp_path: Path
) -> None:
    request = ask(tmp_path, include_models=True, include_wheels=True)
    (archive,) = seal_again_without_report(run, request)
    files = files_of(archive)
    assert files["data/models/target/model.safetensors"] == b"weights"
    assert files[f"data/wheels/tool/{wheel_name()}"] == b"wheel"
    wheels = {n.rpartition("/")[2] for n in files if n.startswith("data/wheels/")}
    assert {"alpha-1.0-py3-none-any.whl", "fast_suffix-0.3.0.tar.gz", "README.md"} <= wheels
    assert b"--no-index --find-links wheels/tool" in files["data/wheels/README.md"]
    assert not (run / "models").exists()
    assert not (run / "wheels").exists()
    found = verify(VerifyRequest(archive=archive, recompute=lambda payload: []))
    assert found.exit_code == 0, found


def test_what_stood_beside_the_engines_goes_with_them(run: Path, tmp_path: Path) -> None:
    own = write_wheel(tmp_path / "links", "harness", "2.0")
    (run / LOCKS / "extra.packages.lock").write_text(line(own, "harness", "2.0"))
    text = (run / LOCKS / "tiny.toml").read_text().partition("[[parts]]")[0]
    part = '[[parts]]\nfile = "extra.packages.lock"\n'
    (run / LOCKS / "extra.toml").write_text(f"{text}{part}")
    digest = lock_sha256("extra", run / LOCKS)
    write_json(run / TOOLS, {"extra": {"lock_sha256": digest}})
    found = included(run, ask(tmp_path, include_wheels=True), report=say)
    assert "wheels/harness-2.0-py3-none-any.whl" in found
    assert "wheels/alpha-1.0-py3-none-any.whl" in found


def test_a_model_that_changed_since_is_refused(run: Path, tmp_path: Path) -> None:
    (tmp_path / "model" / "model.safetensors").write_bytes(b"wEights")
    with pytest.raises(ModelError, match="expected the model that was measured"):
        included(run, ask(tmp_path, include_models=True), report=say)


def test_an_engine_that_was_only_recorded_has_no_wheels(run: Path, tmp_path: Path) -> None:
    write_json(run / "locks" / "engines.json", {"tiny": {"lock_sha256": "", "locked": False}})
    with pytest.raises(UsageError, match="recorded, not locked"):
        included(run, ask(tmp_path, include_wheels=True), report=say)


def test_what_was_accepted_is_on_record(run: Path, tmp_path: Path) -> None:
    secret = "hf_" + "aB3" * 12
    write(run / "runs/1/0-baseline/server.log", f"token {secret}\n".encode())
    with pytest.raises(BundleError, match="--accept MARK") as caught:
        seal_again_without_report(run, ask(tmp_path))
    mark = str(caught.value).partition("[")[2].partition("]")[0]
    (archive,) = seal_again_without_report(run, ask(tmp_path, accept=(mark, "f" * 16)))
    (record,) = msgspec.json.decode(files_of(archive)[f"data/{ACCEPTED}"])
    assert record == {
        "path": "runs/1/0-baseline/server.log",
        "kind": "Hugging Face token",
        "mark": mark,
    }
    assert secret.encode() not in files_of(archive)[f"data/{ACCEPTED}"]


def test_a_secret_of_this_machine_is_never_accepted(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "not-like-a-token")
    write(run / "runs/1/0-baseline/server.log", b"not-like-a-token\n")
    with pytest.raises(BundleError, match="a secret of this machine") as caught:
        seal_again_without_report(run, ask(tmp_path))
    mark = str(caught.value).partition("[")[2].partition("]")[0]
    with pytest.raises(BundleError, match="a secret of this machine"):
        seal_again_without_report(run, ask(tmp_path, accept=(mark,)))
