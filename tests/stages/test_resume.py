"""A run goes on with the engine, machine and devices it began with, or not at all."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from bundle.errors import UsageError
from bundle.host.engine import EngineEnv
from bundle.host.folders import read_json, write_json
from bundle.host.gpu import GpuFacts
from bundle.host.system import Host, host_facts
from bundle.stages.freeze import freeze_host
from bundle.stages.resume import (
    GPUS,
    HOST,
    require_same_engines,
    require_same_gpus,
    require_same_machine,
)


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


MACHINE = Host(
    fingerprint="aaaa",
    machine_class="x86_64 / P / 2 cores",
    processor="P",
    cores=2,
    memory_gib=8.0,
    kernel="6.1",
    system="S",
    python="3.11.9",
    container=False,
)
DEVICE = GpuFacts(
    index=0,
    name="H200",
    uuid_sha256="1234567890",
    memory_mib=1.0,
    driver="570",
    cuda="12.8",
    power_limit=None,
    max_sm_clock=None,
    max_memory_clock=None,
    ecc=None,
    mig=None,
    compute_capability=None,
)


def done(folder: Path) -> None:
    file = folder / "runs" / "1" / "0-baseline" / "DONE"
    file.parent.mkdir(parents=True)
    file.touch()


def test_the_same_machine_goes_on(tmp_path: Path) -> None:
    require_same_machine(tmp_path, MACHINE)
    write_json(tmp_path / HOST, MACHINE)
    done(tmp_path)
    require_same_machine(tmp_path, replace(MACHINE, kernel="6.2"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fingerprint": "bbbb"}, "another machine of the same class than this one"),
        ({"machine_class": "x86_64 / P / 4 cores"}, "another machine than this one"),
    ],
)
def test_another_machine_is_refused(tmp_path: Path, changes: dict[str, str], said: str) -> None:
    write_json(tmp_path / HOST, MACHINE)
    require_same_machine(tmp_path, replace(MACHINE, **changes))
    done(tmp_path)
    with pytest.raises(UsageError, match=said) as caught:
        require_same_machine(tmp_path, replace(MACHINE, **changes))
    assert "--fresh" in caught.value.next_step


def test_the_record_of_another_machine_is_not_written_over(tmp_path: Path) -> None:
    write_json(tmp_path / HOST, MACHINE)
    done(tmp_path)
    with pytest.raises(UsageError):
        freeze_host(tmp_path)
    assert read_json(tmp_path / HOST, Host) == MACHINE
    (tmp_path / "runs" / "1" / "0-baseline" / "DONE").unlink()
    freeze_host(tmp_path)
    assert read_json(tmp_path / HOST, Host) == host_facts()
    assert (tmp_path / "system" / "environment.json").is_file()


def test_other_devices_are_refused(tmp_path: Path) -> None:
    require_same_gpus(tmp_path, [DEVICE])
    write_json(tmp_path / GPUS, [DEVICE])
    done(tmp_path)
    require_same_gpus(tmp_path, [replace(DEVICE, power_limit=600.0)])
    for other in ([replace(DEVICE, uuid_sha256="99")], [replace(DEVICE, driver="580")], []):
        with pytest.raises(UsageError, match="H200 12345678, driver 570") as caught:
            require_same_gpus(tmp_path, other)
        assert "--gpu" in caught.value.next_step
