"""Level V5: this machine against the bundle's: the engine's packages, then the host.

An environment is read from its folder of packages; no interpreter is started. A host that differs
is stated and fails nothing: a bundle is mostly verified elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

from packaging.utils import canonicalize_name

from bundle.core.bundlefile import BundleFile
from bundle.errors import HostError
from bundle.host.engine import cached_engine
from bundle.host.engine_lock import EngineLock
from bundle.host.folders import read_json
from bundle.host.gpu import open_gpus
from bundle.host.system import Host, host_facts
from bundle.stages.checks import Comparison, Outcome
from bundle.stages.engine_locks import Recorded, bundled_lock, recorded_all
from bundle.stages.set_up import gpu_names, with_gpus


def local_gpus(wanted: int) -> tuple[str, ...]:
    """Names of the GPUs that servers would use here; none where the driver does not answer."""
    try:
        return tuple(gpu.facts().name for gpu in open_gpus(os.environ, wanted=wanted))
    except HostError:
        return ()


def local_environment(
    *,
    python: Path | None = None,
    root: Path | None = None,
    host: Host | None = None,
    gpus: Callable[[int], Sequence[str]] = local_gpus,
) -> Comparison:
    """A comparison for V5.

    Args:
        python: an engine's interpreter to look at instead of the cached environments.
        root: the folder of cached environments; default: this user's.
        host: this machine; default: asked now.
        gpus: see :func:`host_line`.
    """

    def compare(payload: Path) -> Outcome:
        note = host_line(payload, host or host_facts(), gpus)
        differences: list[str] = []
        looked: list[str] = []
        absent: list[str] = []
        for name, engine in recorded_all(payload).items():
            if not engine.locked:
                absent.append(f"engine {name} was recorded, not locked: there is no lock to hold")
                continue
            place = python or cached_engine(name, engine.lock_sha256, root)
            if place is None:
                absent.append(f"engine {name} is not on this machine: {_how(payload)}")
                continue
            lock = bundled_lock(payload, name, engine.lock_sha256)
            if lock is None:
                absent.append(f"the lock of engine {name} is not in the bundle, nor in this tool")
                continue
            looked.append(name)
            differences += _differences(lock, engine, place)
        if differences:
            return Outcome(differences=differences, note=note)
        if absent or not looked:
            return Outcome(unchecked="; ".join(absent) or "the bundle names no engine", note=note)
        return Outcome(note=note)

    return compare


def _how(payload: Path) -> str:
    head = read_json(payload / "bundle.json", BundleFile)
    return (
        f"`specbundle rerun` or `specbundle run {head.name}` builds it, "
        "--engine-python PATH names another"
    )


def _differences(lock: EngineLock, engine: Recorded, python: Path) -> Iterator[str]:
    """Every distribution that is missing, of another version, or not of the lock."""
    name = lock.name
    optional = set(lock.optional(engine.missing))
    found = installed_beside(python)
    for distribution, version in sorted(lock.pins.items()):
        here = found.pop(distribution, None)
        if here is None and distribution not in optional:
            yield f"engine {name}: {distribution} {version} is not installed"
        elif here is not None and here != version:
            yield f"engine {name}: {distribution} is {here}, the lock says {version}"
    for distribution, version in sorted(found.items()):
        if distribution not in _OF_THE_VENV:
            yield f"engine {name}: {distribution} {version} is not in the lock"


#: ``python -m venv`` puts these into every environment.
_OF_THE_VENV = ("pip", "setuptools")


def installed_beside(python: Path) -> dict[str, str]:
    """Canonical name -> version of what lies in a virtual environment's site-packages."""
    folders = sorted((python.parent.parent / "lib").glob("python3.*/site-packages"))
    found = metadata.distributions(path=[str(folder) for folder in folders])
    return {canonicalize_name(one.name): one.version for one in found}


def host_line(payload: Path, here: Host, gpus: Callable[[int], Sequence[str]]) -> str:
    """What the bundle's machine is to this one, in words.

    Args:
        payload: the unpacked payload.
        here: this machine.
        gpus: names of this machine's first so many GPUs; not asked for a bundle of a CPU.
    """
    there = read_json(payload / "system" / "host.json", Host)
    used = gpu_names(payload)
    its, own = (
        with_gpus(there.machine_class, used),
        with_gpus(here.machine_class, gpus(len(used)) if used else ()),
    )
    if its != own:
        return f"host DIFFERENT: {its} there, {own} here"
    return f"host {'SAME' if there.fingerprint == here.fingerprint else 'SAME CLASS'}: {own}"
