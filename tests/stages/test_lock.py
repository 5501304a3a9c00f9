"""Making locks anew, by uv from a folder of local distributions."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from bundle.errors import EngineError
from bundle.host.engine_lock import pins, read_lock
from bundle.host.installer import find_uv
from bundle.stages import lock as stage
from bundle.stages.lock import make_locks
from tests.host.tiny_engine import write_engine, write_wheel

needs_uv = pytest.mark.skipif(find_uv() is None, reason="uv is not installed")
MORE = """
schema = "specbundle.engine/1"
python = "3.12"
platform = "x86_64-manylinux_2_31"
disk_gib = 0.1
extends = "tiny"

[[parts]]
file = "more.build.lock"
feature = "suffix"
sdists = ["fast-suffix"]
requirements = ["fast-suffix==0.3.0", "tool"]
"""


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder, links = write_engine(tmp_path)
    write_index(tmp_path / "simple", links)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    monkeypatch.setenv("UV_NO_CACHE", "1")
    for name in ("UV_FIND_LINKS", "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    return folder


def write_index(simple: Path, links: Path) -> None:
    """An index of the files in ``links``, with their hashes, as pip and uv read it."""
    for path in links.iterdir():
        name = path.name.partition("-")[0].replace("_", "-")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        page = simple / name / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        with page.open("a") as out:
            out.write(f'<a href="{path.as_uri()}#sha256={digest}">{path.name}</a>\n')


@needs_uv
def test_the_lists_are_resolved_and_split(locks: Path) -> None:
    before = {path.name: path.read_text() for path in locks.glob("*.lock")}
    for path in locks.glob("*.lock"):
        path.unlink()
    lines: list[str] = []
    made = make_locks(("tiny",), report=lines.append, folder=locks)
    found = {path.name: path.read_text() for path in locks.glob("*.lock")}
    assert {n: pins(t) for n, t in found.items()} == {n: pins(t) for n, t in before.items()}
    assert made == {"tiny": read_lock("tiny", locks).sha256}
    assert "lock tiny: tiny.packages.lock, 1 packages" in lines
    # The hashes are those of the very files, and nothing says where they came from.
    assert sorted(found["tiny.torch.lock"].split()) == sorted(before["tiny.torch.lock"].split())
    assert not any("links" in text or "index" in text for text in found.values())


@needs_uv
def test_an_engine_on_top_of_another_moves_nothing(locks: Path) -> None:
    toml = locks / "tiny.toml"
    head, _, _ = toml.read_text().partition('[[parts]]\nfile = "tiny.build.lock"')
    toml.write_text(head)
    (locks / "more.toml").write_text(MORE)
    newer = locks.parent / "newer"
    newer.mkdir()
    write_wheel(newer, "alpha", "1.1")
    write_index(locks.parent / "simple", newer)
    # alpha 1.1 is there now, but only the extension is made: alpha stays where tiny has it.
    make_locks(("more",), report=str, folder=locks)
    assert read_lock("more", locks).pins == read_lock("tiny", locks).pins | {
        "fast-suffix": "0.3.0",
        "tool": "4.0",
    }
    make_locks(report=str, folder=locks)
    assert read_lock("more", locks).pins["alpha"] == "1.1"


@needs_uv
def test_requirements_that_cannot_be_met(locks: Path) -> None:
    toml = locks / "tiny.toml"
    toml.write_text(toml.read_text().replace('["alpha", "beta"]', '["alpha==9"]'))
    before = {path.name: path.read_text() for path in locks.glob("*.lock")}
    with pytest.raises(EngineError, match="alpha==9"):
        make_locks(("tiny",), report=str, folder=locks)
    assert {path.name: path.read_text() for path in locks.glob("*.lock")} == before


def test_without_uv(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "find_uv", lambda: None)
    with pytest.raises(EngineError, match="expected uv") as caught:
        make_locks(report=str, folder=locks)
    assert "pip install uv" in caught.value.next_step


@needs_uv
def test_the_checkout_one_stands_in_is_written(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (locks.parent / "recipes").mkdir()
    locks.rename(locks.parent / "recipes/engines")
    monkeypatch.chdir(locks.parent)
    (line,) = stage.lock(("tiny",), report=str)
    assert line == f"tiny: {read_lock('tiny', Path('recipes/engines')).sha256}"
