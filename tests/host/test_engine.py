"""Building engine environments from tiny locks: by pip and by uv, cut short, without g++."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bundle.errors import EngineError, HostError
from bundle.host import engine_build
from bundle.host.engine import EngineEnv, ensure_engine, external_engine
from bundle.host.engine_build import MARKER
from bundle.host.installer import find_uv, installed
from tests.host.tiny_engine import write_engine, write_wheel

Build = Callable[..., EngineEnv]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a tiny engine; pip finds its distributions through the user's settings."""
    _, links = write_engine(tmp_path, needs="fake-g++")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    monkeypatch.setenv("TINY_LOG", str(tmp_path / "builds.txt"))
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    _compiler(tmp_path).write_text("#!/bin/sh\n")
    _compiler(tmp_path).chmod(0o755)
    return tmp_path


def _compiler(folder: Path) -> Path:
    return folder / "bin/fake-g++"


def _ensure(folder: Path, lines: list[str] | None = None, uv: str | None = None) -> EngineEnv:
    report = (lines if lines is not None else []).append
    return ensure_engine(
        "tiny", report=report, root=folder / "engines", locks=folder / "locks", uv=uv
    )


def test_pip_takes_over_where_uv_fails(tiny: Path) -> None:
    broken = tiny / "bin/uv"
    broken.write_text("#!/bin/sh\necho it broke\nexit 2\n")
    broken.chmod(0o755)
    env = _ensure(tiny, uv=str(broken))
    assert installed(env.python)["alpha"] == "1.0"
    assert '"tiny.packages.lock":"pip"' in (env.bin.parent / MARKER).read_text()
    log = next((tiny / "engines").glob("*.log")).read_text()
    # Two lists with one index each, one list that names a second index.
    assert log.count("it broke") == 4


@pytest.mark.parametrize("program", ["pip", "uv"])
def test_an_environment_has_exactly_what_its_lock_says(tiny: Path, program: str) -> None:
    uv = find_uv() if program == "uv" else None
    if program == "uv" and uv is None:
        pytest.skip("uv is not installed")
    lines: list[str] = []
    env = _ensure(tiny, lines, str(uv) if uv else None)
    found = installed(env.python)
    assert found.items() >= {
        "alpha": "1.0", "beta": "2.0", "tool": "4.0", "fast-suffix": "0.3.0",
        "vllm": "0.32.0+cpu",
    }.items()  # fmt: skip
    assert env.missing == {}
    assert env.locked
    assert env.python.parent == env.bin
    assert env.bin.parent.name == f"tiny-{env.lock_sha256[:12]}"
    assert f'"tiny.packages.lock":"{program}"' in (env.bin.parent / MARKER).read_text()
    # The build looks up python3 on PATH and must find the environment's.
    build = (tiny / "builds.txt").read_text().split()
    assert build == ["build", str(env.bin), str(env.bin / "python3")]
    # The second time nothing is built, and a process that has no index at all is content.
    again: list[str] = []
    assert _ensure(tiny, again) == env
    assert again == []


def test_without_a_compiler_only_the_feature_is_missing(tiny: Path) -> None:
    _compiler(tiny).unlink()
    env = _ensure(tiny)
    assert env.missing == {"suffix": "fake-g++ not found: suffix cannot be built"}
    assert "fast-suffix" not in installed(env.python)
    assert _ensure(tiny).missing == env.missing
    # Once it is there, the part is built after all.
    _compiler(tiny).write_text("#!/bin/sh\n")
    _compiler(tiny).chmod(0o755)
    assert _ensure(tiny).missing == {}
    assert "fast-suffix" in installed(env.python)


def test_a_part_that_does_not_build_is_a_reason(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_FAIL", "1")
    env = _ensure(tiny)
    assert "fast-suffix could not be built" in env.missing["suffix"]
    assert "compiler exploded" in env.missing["suffix"]
    assert "to try again remove" in env.missing["suffix"]
    assert _ensure(tiny) == env


def test_another_file_than_the_locked_one_is_refused(tiny: Path) -> None:
    wheel = tiny / "links/alpha-1.0-py3-none-any.whl"
    wheel.write_bytes(write_wheel(tiny, "alpha", "1.0").read_bytes() + b"\0")
    with pytest.raises(EngineError, match=r"(?i)hash") as caught:
        _ensure(tiny)
    assert caught.value.exit_code == 6
    left = [p.name for p in (tiny / "engines").iterdir() if p.is_dir()]
    assert left == []


def test_a_lock_that_does_not_say_all_is_refused(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is installed is compared with the lock: a marker that skips a line is found."""
    lock = tiny / "locks/tiny.packages.lock"
    lock.write_text(lock.read_text().replace("alpha==1.0", 'alpha==1.0 ; sys_platform == "x"'))
    with pytest.raises(EngineError, match=r"alpha absent instead of 1\.0"):
        _ensure(tiny)


def test_a_folder_that_is_not_whole_is_made_again(tiny: Path) -> None:
    env = _ensure(tiny)
    folder = env.bin.parent
    (folder / MARKER).unlink()
    (folder / "leftover").touch()
    assert _ensure(tiny) == env
    assert not (folder / "leftover").exists()
    env.python.unlink()
    env.python.symlink_to(tiny / "removed-python")
    assert _ensure(tiny) == env
    assert env.python.exists()
    # The same environment taken as one that is there already.
    found = external_engine(env.python)
    assert (found.name, found.locked, found.lock_sha256) == ("external", False, "")
    assert found.python == env.python
    assert found.missing == {"suffix": "arctic-inference not installed"}


def test_too_little_space(tiny: Path) -> None:
    file = tiny / "locks/tiny.toml"
    file.write_text(file.read_text().replace("disk_gib = 0.1", "disk_gib = 1e9"))
    with pytest.raises(HostError, match=r"engine tiny needs 1000000000.0 GiB"):
        _ensure(tiny)


def test_no_interpreter_of_that_version(tiny: Path) -> None:
    file = tiny / "locks/tiny.toml"
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    file.write_text(file.read_text().replace(f'python = "{version}"', 'python = "3.97"'))
    with pytest.raises(HostError, match=r"expected Python 3\.97"):
        _ensure(tiny)


_BUILD = (
    "import sys; from pathlib import Path; from bundle.host.engine import ensure_engine\n"
    "f = Path(sys.argv[1])\n"
    "e = ensure_engine('tiny', report=lambda s: print(s, flush=True), root=f / 'engines',"
    " locks=f / 'locks', uv=None)\n"
    "print('ready', e.bin.parent.name, flush=True)"
)


def _start(folder: Path, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _BUILD, str(folder)],
        cwd=ROOT, env=os.environ | env, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_killed_build_is_never_used(tiny: Path) -> None:
    """Killed while an installer runs: its orphan keeps the lock, the next build waits for it."""
    killed = _start(tiny, TINY_SLEEP="6")
    assert killed.stdout is not None
    deadline = time.monotonic() + 120
    while not (tiny / "builds.txt").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    folder = next(p for p in (tiny / "engines").iterdir() if p.is_dir())
    assert not (folder / MARKER).exists()
    lines: list[str] = []
    env = _ensure(tiny, lines)
    assert lines[0] == "engine tiny: somebody else is making it, waiting"
    assert "fast-suffix" in installed(env.python)
    assert (tiny / "builds.txt").read_text().count("build ") == 2


def test_two_at_once_build_once(tiny: Path) -> None:
    first = _start(tiny, TINY_SLEEP="2")
    second = _start(tiny, TINY_SLEEP="2")
    told = [process.communicate(timeout=240)[0].splitlines() for process in (first, second)]
    assert [lines[-1].split()[0] for lines in told] == ["ready", "ready"]
    assert told[0][-1] == told[1][-1]
    assert sum("building fast-suffix" in line for lines in told for line in lines) == 1
    assert sum("waiting" in line for lines in told for line in lines) == 1


def test_what_is_lacking(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert engine_build.lacking(("sh", "g++")) == ("sh", "g++")
    (tmp_path / "sh").touch(mode=0o755)
    assert engine_build.lacking(("sh", "g++")) == ("g++",)
