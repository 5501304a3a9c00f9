"""What doctor says of an engine that is half built, and of a compiler under another name."""

from pathlib import Path

import pytest

from bundle.host.engine_build import MARKER
from bundle.host.engine_lock import lock_sha256
from bundle.stages import doctor


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
