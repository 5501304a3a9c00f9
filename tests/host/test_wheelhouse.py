"""Wheels for a room without a network: fetched once, held against the lock, installed offline."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from bundle.errors import EngineError
from bundle.host import wheelhouse as host
from bundle.host.engine import ensure_engine
from bundle.host.engine_lock import read_lock
from bundle.host.installer import installed
from bundle.host.wheel import wheel_name
from tests.host.tiny_engine import write_engine, write_wheel
from tests.offline import offline

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    "alpha-1.0-py3-none-any.whl",
    "beta-2.0-py3-none-any.whl",
    "fast_suffix-0.3.0.tar.gz",
    "tool-4.0-py3-none-any.whl",
]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny engine, whose distributions pip finds through the user's settings."""
    _, links = write_engine(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("TINY_LOG", str(tmp_path / "builds.txt"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


BUILD = (
    "import json, sys; from pathlib import Path; from bundle.host.engine import ensure_engine\n"
    "f = Path(sys.argv[1])\n"
    "e = ensure_engine('tiny', report=lambda s: None, root=f / 'elsewhere', locks=f / 'locks',"
    " uv='find' if sys.argv[3] == 'uv' else None, source=Path(sys.argv[2]))\n"
    "print(json.dumps([str(e.python), e.missing]))"
)


@pytest.mark.parametrize("program", ["pip", "uv"])
def test_an_engine_from_its_own_wheels_with_the_network_cut(tiny: Path, program: str) -> None:
    lock = read_lock("tiny", tiny / "locks")
    lines: list[str] = []
    env = ensure_engine(
        "tiny", report=lines.append, root=tiny / "root", locks=tiny / "locks", uv=None
    )
    files = host.engine_files(lock, env, report=lines.append)
    assert sorted(files) == FILES
    assert host.engine_files(lock, env, report=lines.append) == files
    carried = tiny / "carried"
    carried.mkdir()
    for name, path in files.items():
        (carried / name).write_bytes(path.read_bytes())
    # No setting leads anywhere now but to the folder that was carried here.
    bare = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
    bare |= {"PYTHONPATH": str(ROOT), "UV_NO_CACHE": "1", "PIP_NO_CACHE_DIR": "1"}
    for path in (tiny / "links").iterdir():
        path.unlink()
    done = offline([sys.executable, "-c", BUILD, str(tiny), str(carried), program], env=bare)
    assert done.returncode == 0, done.stderr
    python, missing = json.loads(done.stdout)
    found = installed(Path(python))
    assert missing == {}
    assert {found[n] for n in ("alpha", "beta", "fast-suffix", "tool")} == {
        "1.0", "2.0", "0.3.0", "4.0",
    }  # fmt: skip


def test_a_carried_wheel_that_is_not_the_locked_one_is_refused(tiny: Path) -> None:
    carried = tiny / "links"
    (carried / FILES[0]).unlink()
    write_wheel(carried, "alpha", "1.0")
    with (carried / FILES[0]).open("ab") as out:
        out.write(b"x")
    with pytest.raises(EngineError, match=r"(?i)hash"):
        ensure_engine(
            "tiny",
            report=lambda text: None,
            root=tiny / "root",
            locks=tiny / "locks",
            uv=None,
            source=carried,
        )


def test_what_cannot_be_fetched_is_named(tiny: Path) -> None:
    env = ensure_engine(
        "tiny", report=lambda text: None, root=tiny / "root", locks=tiny / "locks", uv=None
    )
    (tiny / "links" / FILES[0]).unlink()
    with pytest.raises(EngineError, match="alpha"):
        host.engine_files(read_lock("tiny", tiny / "locks"), env, report=lambda text: None)


def test_the_tool_needs_itself_and_everything_below() -> None:
    found = host.tool_versions()
    for name in ("msgspec", "typer", "click", "weasyprint", "securesystemslib", "cryptography"):
        assert name in found
    assert "pytest" not in found


def test_a_dependency_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_own_requirements", lambda: ["no-such-thing>=1"])
    with pytest.raises(EngineError, match="expected no-such-thing, which this tool needs"):
        host.tool_versions()


def test_files_of_the_tool_come_with_their_lock(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "tool_versions", lambda: {"alpha": "1.0", "beta": "2.0"})
    found = host.tool_files(report=lambda text: None)
    assert sorted(found) == [*FILES[:2], wheel_name(), "tool.lock"]
    text = bytes(found["tool.lock"]).decode()
    assert [line.split(" ")[0] for line in text.splitlines()[::2]] == ["alpha==1.0", "beta==2.0"]
    assert text.count("--hash=sha256:") == 2
