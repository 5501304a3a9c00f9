"""An engine that was put together by hand: what is read off it, and what is said about it."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from bundle.errors import EngineError
from bundle.host.engine import external_engine
from bundle.host.found_engine import probe, unsupported_pairs


def _put(folder: Path, name: str, version: str, *requires: str) -> None:
    """An unpacked distribution with one module, as a kit for a closed machine has it."""
    package = folder / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"# {version}\n")
    (package / "__init__.pyc").write_bytes(b"made by the interpreter")
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {text}" for text in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n")


def test_an_engine_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    _put(first, "vllm", "0.32.0", "torch==2.13.0", 'more; extra == "audio"')
    _put(first, "torch", "2.11.0+cu130")
    _put(second, "torch", "2.13.0")
    monkeypatch.setenv("PYTHONPATH", f"{first}:{second}")
    found = external_engine(Path(sys.executable))
    assert found.unsupported == ("torch 2.11.0+cu130, vLLM asks for ==2.13.0",)
    assert found.files == {"vllm/__init__.py": hashlib.sha256(b"# 0.32.0\n").hexdigest()}
    assert found.missing == {"suffix": "arctic-inference not installed"}
    assert not found.locked
    assert probe(Path(sys.executable)).installed["torch"] == "2.11.0+cu130", "what is imported"


def test_what_vllm_asks_for() -> None:
    requires = [
        "torch==2.13.0",
        "numpy<3",
        'pywin32; platform_system == "Windows"',
        'librosa>=0.10; extra == "audio"',
        "gguf>=0.17",
        "cbor2",
    ]
    found = {"torch": "2.13.0+cpu", "numpy": "2.5.0rc1"}
    assert unsupported_pairs(requires, found) == (
        "gguf is not there, vLLM asks for it (>=0.17)",
        "cbor2 is not there, vLLM asks for it",
    )


def test_no_engine(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="expected an interpreter with vLLM"):
        external_engine(Path(sys.executable))
    with pytest.raises(EngineError, match="expected a working interpreter"):
        external_engine(tmp_path / "no-python")
