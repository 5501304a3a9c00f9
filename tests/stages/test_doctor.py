"""What doctor says of engines, of what they need, and of a compiler under another name."""

from pathlib import Path

import msgspec
import pytest

from bundle.host.engine_build import MARKER
from bundle.host.engine_lock import lock_sha256, read_engine_file
from bundle.stages import doctor


class Space(msgspec.Struct):
    """What a disk has, as ``shutil.disk_usage`` says it."""

    free: float


def said(subject: str) -> str:
    return next(d.text for look in (doctor._engines, doctor._compiler) for d in look(Path())
                if d.subject == subject)  # fmt: skip


def test_only_a_finished_engine_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "specbundle" / "engines" / f"cpu-{lock_sha256('cpu')[:12]}"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    assert said("engine cpu") == "not built yet; the first run does it"
    words = "not built yet; the first run of a recipe that asks for it does it"
    assert said("engine lm-eval-3.11") == said("engine lm-eval-3.12") == words
    (folder / MARKER).touch()
    assert said("engine cpu") == "built"


def test_another_compiler_is_not_the_one_that_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"c++": "/usr/bin/c++"}
    monkeypatch.setattr(doctor.shutil, "which", known.get)
    assert "no g++" in said("compiler")
    known["g++"] = "/usr/bin/g++"
    assert said("compiler") == "/usr/bin/g++"


@pytest.mark.parametrize(("gpus", "engine"), [((), "cpu"), (("a GPU",), "cuda")])
def test_disk_and_python_are_those_of_the_engine_that_would_be_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gpus: tuple[str, ...], engine: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(doctor, "open_gpus", lambda _environ: gpus)
    file = read_engine_file(engine)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: Space(free=file.disk_gib * 2**30))
    cache, reports = doctor._disk(tmp_path)
    assert (cache.state, reports.state) == ("lacks", "ok")
    assert cache.text.endswith(f"expected {file.disk_gib + doctor.REST_DISK_GIB}; free some")
    (python,) = doctor._python(tmp_path)
    assert python.subject == f"Python {file.python}"


def test_a_python_that_is_missing_has_a_way_round(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = msgspec.structs.replace(read_engine_file("cuda"), python="3.99")
    monkeypatch.setattr(doctor, "read_engine_file", lambda _: file)
    (python,) = doctor._python(tmp_path)
    assert python.state == "lacks"
    assert "python3.99" in python.text
    assert "--engine-python" in python.text
