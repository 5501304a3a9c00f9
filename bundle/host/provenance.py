"""Read what a run folder says of its origins. A missing file is a gap in the report, not an error.

A file that is there and cannot be read as what it should be is named as such, so that a damaged
run folder never looks like an old one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bundle.core.models import LockedModel, ModelLock
from bundle.core.records import RunRecord, ServerFacts
from bundle.core.report.numbers import number, quantity
from bundle.core.report.provenance import (
    EngineEntry,
    InputEntry,
    ModelEntry,
    Provenance,
    StartFacts,
)

T = TypeVar("T")


class _Engine(msgspec.Struct, frozen=True, kw_only=True):
    """One engine of ``locks/engines.json``."""

    lock_sha256: str = ""
    locked: bool = True
    missing: dict[str, str] = {}
    unsupported: tuple[str, ...] = ()


class _Host(msgspec.Struct, frozen=True, kw_only=True):
    """The part of ``system/host.json`` that is shown."""

    processor: str = ""
    cores: int | None = None
    memory_gib: float | None = None
    kernel: str = ""
    system: str = ""
    python: str = ""
    container: bool | None = None


class _Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """The part of one device in ``system/gpu.json`` that is shown."""

    name: str = ""
    memory_mib: float | None = None
    driver: str = ""
    cuda: str = ""
    power_limit: float | None = None
    max_sm_clock: float | None = None
    max_memory_clock: float | None = None
    mig: bool | None = None


class _Reader:
    """Reads files below a folder and remembers what was not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.missing: list[str] = []

    def json(self, name: str, kind: type[T]) -> T | None:
        """A file as a record, or None with its name remembered."""
        try:
            return msgspec.json.decode((self.folder / name).read_bytes(), type=kind)
        except OSError:
            self.missing.append(name)
        except msgspec.MsgspecError as error:
            self.missing.append(f"{name} (not readable: {error})")
        return None


def read_provenance(folder: Path) -> Provenance:
    """Read models, engines, inputs, machine and starts of a run folder as far as they are there."""
    reader = _Reader(folder)
    lock = reader.json("locks/models.lock.json", ModelLock)
    engines = reader.json("locks/engines.json", dict[str, _Engine])
    tools = None
    if (folder / "locks" / "tools.json").exists():
        tools = reader.json("locks/tools.json", dict[str, _Engine])
    environments = sorted((engines or {}).items()) + sorted((tools or {}).items())
    host = reader.json("system/host.json", _Host)
    gpus = _gpus(reader)
    starts = tuple(_starts(folder))
    versions = dict.fromkeys(v for start in starts for v in start.engine_version)
    head = folder / "bundle.json"
    return Provenance(
        run_id=hashlib.sha256(head.read_bytes()).hexdigest()[:12] if head.exists() else None,
        engines=tuple(_engine(folder, name, one) for name, one in environments),
        engine_versions=tuple(versions),
        models=tuple(_model(key, one) for key, one in (lock.models if lock else {}).items()),
        inputs=_inputs(folder),
        starts=starts,
        host=_host_pairs(host) if host is not None else (),
        gpu=tuple(pair for i, one in enumerate(gpus or []) for pair in _gpu_pairs(i, one)),
        gpu_state="not recorded" if gpus is None else "recorded" if gpus else "none",
        missing=tuple(reader.missing),
    )


def _gpus(reader: _Reader) -> list[_Gpu] | None:
    """The devices; None where nothing is recorded, and empty where there are none."""
    if not (reader.folder / "system" / "gpu.json").exists():
        return None
    return reader.json("system/gpu.json", list[_Gpu])


def _engine(folder: Path, name: str, one: _Engine) -> EngineEntry:
    inspect = folder / "locks" / f"pip-inspect.{name}.json"
    return EngineEntry(
        name=name,
        kind="locked" if one.locked else "recorded, not locked",
        sha256=one.lock_sha256 or None,
        packages=_packages(inspect),
        missing=tuple(f"{feature}: {why}" for feature, why in one.missing.items()),
        unsupported=one.unsupported,
    )


def _packages(inspect: Path) -> int | None:
    try:
        report: Any = msgspec.json.decode(inspect.read_bytes())
        return len(report["installed"])
    except (OSError, msgspec.MsgspecError, KeyError, TypeError):
        return None


def _model(key: str, one: LockedModel) -> ModelEntry:
    return ModelEntry(
        role=key,
        source=one.repo or f"{one.source} model",
        revision=one.revision or None,
        sha256=max(one.files, key=lambda f: f.size).sha256 if one.files else None,
        licence=one.licence or None,
        files=len(one.files),
        octets=one.size,
        gated=one.gated,
    )


def _inputs(folder: Path) -> tuple[InputEntry, ...]:
    """The frozen inputs by their name, hashed now: what is there, not what a list says."""
    inputs = folder / "inputs"
    files = sorted(p for p in inputs.rglob("*") if p.is_file() and p != inputs / "SHA256SUMS")
    return tuple(
        InputEntry(
            path=p.relative_to(inputs).as_posix(), sha256=hashlib.sha256(p.read_bytes()).hexdigest()
        )
        for p in files
    )


def _starts(folder: Path) -> Iterable[StartFacts]:
    """One entry per group: the vector of its first measured start, every distinct fact of all."""
    found: dict[str, list[tuple[RunRecord, ServerFacts | None]]] = {}
    for path in sorted(folder.glob("runs/*/*/run.json")):
        record = _decoded(path, RunRecord)
        if record is not None:
            facts = _decoded(path.with_name("facts.json"), ServerFacts)
            found.setdefault(record.group, []).append((record, facts))
    for group, pairs in found.items():
        measured = [record for record, _ in pairs if not record.primer]
        first = (measured or [record for record, _ in pairs])[0]
        known = [facts for _, facts in pairs if facts is not None]
        yield StartFacts(
            group=group,
            argv=first.argv,
            env=first.env,
            runner=_distinct(facts.runner for facts in known),
            async_scheduling=_distinct(facts.async_scheduling for facts in known),
            attention=_distinct(facts.attention_backend for facts in known),
            engine_version=_distinct(facts.engine_version for facts in known),
        )


def _decoded(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def _distinct(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(sorted({str(value) for value in values if value is not None}))


def _host_pairs(host: _Host) -> tuple[tuple[str, str], ...]:
    cores = f", {host.cores} cores" if host.cores is not None else ""
    container = {None: "", True: ", in a container", False: ""}[host.container]
    return (
        ("Processor", f"{host.processor}{cores}"),
        ("Memory", quantity(host.memory_gib, "GiB", absent="not recorded")),
        ("System", f"{host.system}, kernel {host.kernel}{container}"),
        ("Python of the tool", host.python),
    )


def _gpu_pairs(index: int, gpu: _Gpu) -> tuple[tuple[str, str], ...]:
    memory = gpu.memory_mib / 1024 if gpu.memory_mib is not None else None
    mig = ", MIG" if gpu.mig else ""
    clocks = (
        f"{number(gpu.max_sm_clock, absent='?')} MHz compute, "
        f"{number(gpu.max_memory_clock, absent='?')} MHz memory, "
        f"power limit {quantity(gpu.power_limit, 'W', absent='not recorded')}"
    )
    return (
        (f"GPU {index}", f"{gpu.name}, {quantity(memory, 'GiB', absent='memory unknown')}{mig}"),
        (f"GPU {index} driver", f"{gpu.driver}, CUDA {gpu.cuda}"),
        (f"GPU {index} highest clocks", clocks),
    )
