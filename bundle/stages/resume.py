"""A run goes on where it began: starts of two machines, devices or engines do not compare.

Each check looks at what the first start left in the run folder. Without one finished start there
is nothing to go on with, and everything may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bundle.errors import UsageError
from bundle.host.engine import EngineEnv
from bundle.host.folders import read_json
from bundle.host.gpu import GpuFacts
from bundle.host.system import Host
from bundle.stages.engine_locks import ENGINES, recorded

HOST = Path("system") / "host.json"
GPUS = Path("system") / "gpu.json"


def require_same_machine(folder: Path, here: Host) -> None:
    """Refuse another machine than the one that the finished starts ran on.

    One of the same class is another one too: its first start would be a cold one in the middle of
    the experiment.

    Raises:
        UsageError: the machine is another.
    """
    if not _begun(folder, HOST):
        return
    there = read_json(folder / HOST, Host)
    if (there.fingerprint, there.machine_class) == (here.fingerprint, here.machine_class):
        return
    alike = there.machine_class == here.machine_class
    raise _refusal(
        folder,
        f"on another machine {'of the same class ' if alike else ''}than this one: "
        f"{there.machine_class} ({there.fingerprint}), here {here.machine_class} "
        f"({here.fingerprint})",
        "go on with it there",
    )


def require_same_gpus(folder: Path, here: Sequence[GpuFacts]) -> None:
    """Refuse other devices, or another driver, than those of the finished starts.

    Raises:
        UsageError: they differ.
    """
    if not _begun(folder, GPUS):
        return
    sides = [_named(gpus) for gpus in (read_json(folder / GPUS, tuple[GpuFacts, ...]), here)]
    if sides[0] != sides[1]:
        raise _refusal(
            folder,
            f"on other devices or another driver: {sides[0]}, now {sides[1]}",
            "go on with the device it began with (--gpu)",
        )


def _named(gpus: Sequence[GpuFacts]) -> str:
    return ", ".join(f"{g.name} {g.uuid_sha256[:8]}, driver {g.driver}" for g in gpus) or "none"


def require_same_engines(folder: Path, engines: Mapping[str, EngineEnv]) -> None:
    """Refuse another engine than that of the finished starts.

    Raises:
        UsageError: they were measured with another lock, or another engine that was found.
    """
    if not _begun(folder, ENGINES):
        return
    before = {name: (one.lock_sha256, one.locked) for name, one in recorded(folder).items()}
    now = {name: (env.lock_sha256, env.locked) for name, env in engines.items()}
    changed = [name for name, env in engines.items() if _files(folder, name) != env.files]
    if before != now or changed:
        raise _refusal(
            folder,
            "with another engine than the one at hand",
            "go on with the engine it began with (same lock, same --engine-python)",
        )


def _begun(folder: Path, record: str | Path) -> bool:
    """Whether a start is finished, and there is a record of what it ran on."""
    return (folder / record).is_file() and any((folder / "runs").glob("*/*/DONE"))


def _files(folder: Path, name: str) -> dict[str, str]:
    path = folder / "locks" / f"vllm-files.{name}.json"
    return read_json(path, dict[str, str]) if path.is_file() else {}


def _refusal(folder: Path, found: str, next_step: str) -> UsageError:
    return UsageError(
        f"some starts of this run were measured {found}",
        where=str(folder),
        next_step=f"{next_step}, or start over with --fresh",
    )
