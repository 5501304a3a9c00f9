"""A run goes on with the engine it began with, or not at all."""

from pathlib import Path

import pytest

from bundle.errors import UsageError
from bundle.host.engine import EngineEnv
from bundle.host.folders import write_json
from bundle.stages.measuring import require_same_engines


def engine(sha256: str, *, locked: bool = True, **files: str) -> dict[str, EngineEnv]:
    bin = Path("/nowhere/bin")
    return {
        "cpu": EngineEnv(
            name="cpu",
            python=bin / "python",
            bin=bin,
            lock_sha256=sha256,
            locked=locked,
            files=files,
        )
    }


def begun(folder: Path, env: dict[str, EngineEnv]) -> Path:
    """A run folder with one finished start."""
    rows = {n: {"lock_sha256": e.lock_sha256, "locked": e.locked} for n, e in env.items()}
    write_json(folder / "locks" / "engines.json", rows)
    if env["cpu"].files:
        write_json(folder / "locks" / "vllm-files.cpu.json", env["cpu"].files)
    done = folder / "runs" / "1" / "0-baseline" / "DONE"
    done.parent.mkdir(parents=True)
    done.touch()
    return folder


def test_the_same_engine_goes_on(tmp_path: Path) -> None:
    require_same_engines(begun(tmp_path / "a", engine("aa")), engine("aa"))
    found = engine("", locked=False, vllm="1")
    require_same_engines(begun(tmp_path / "b", found), found)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (engine("aa"), engine("bb")),
        (engine("aa"), engine("", locked=False, vllm="1")),
        (engine("", locked=False, vllm="1"), engine("", locked=False, vllm="2")),
    ],
    ids=["another lock", "a found one instead", "another found one"],
)
def test_another_engine_is_refused(
    tmp_path: Path, before: dict[str, EngineEnv], now: dict[str, EngineEnv]
) -> None:
    with pytest.raises(UsageError, match="another engine") as caught:
        require_same_engines(begun(tmp_path, before), now)
    assert "--fresh" in caught.value.next_step


def test_before_the_first_start_any_engine_will_do(tmp_path: Path) -> None:
    require_same_engines(tmp_path, engine("aa"))
    folder = begun(tmp_path, engine("aa"))
    (folder / "runs" / "1" / "0-baseline" / "DONE").unlink()
    require_same_engines(folder, engine("bb"))
