"""Distribution files for a room without a network: those of an engine's lock, those of this tool.

Files are kept in the user's cache and fetched once. What the lock names is held against its hashes
by pip; the tool's own dependencies get a lock here, from the files that were fetched.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from bundle.errors import EngineError
from bundle.host.cache import Report, cache_root, exclusive, require_space
from bundle.host.engine import EngineEnv
from bundle.host.engine_lock import EngineLock, select
from bundle.host.folders import host_errors
from bundle.host.hashing import digest_files
from bundle.host.installer import Installer, clean_environment
from bundle.host.resources import resource_root
from bundle.host.wheel import wheel_bytes, wheel_name

#: A lock's packed files are smaller than what is installed from them.
_PACKED_SHARE = 0.6


def engine_files(lock: EngineLock, env: EngineEnv, *, report: Report) -> dict[str, Path]:
    """Name -> file of everything that installing the lock needs, but the metadata-only wheel.

    Args:
        lock: the engine's lock.
        env: its finished environment, whose pip fetches for its own Python and platform.
        report: gets a line per part.

    Raises:
        EngineError: a file cannot be fetched or is not the locked one.
        HostError: no space.
    """
    folder = cache_root() / "wheels" / f"{lock.name}-{lock.sha256[:12]}"
    with host_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    space = int(lock.file.disk_gib * _PACKED_SHARE * (1 << 30))
    with exclusive(
        folder.with_suffix(".lock"), report=report, what=f"wheels of {lock.name}"
    ) as held:
        if not any(folder.iterdir()):
            require_space(folder, space, f"wheels of engine {lock.name}")
        log = folder.with_suffix(".log")
        installer = Installer(python=env.python, log=log, uv=None, held=(held,))
        for part, text in lock.parts:
            report(f"wheels of engine {lock.name}: {part.file}")
            sources = set(part.sdists)
            extra = ["--extra-index-url", part.extra_index] if part.extra_index else []
            _fetch(
                installer,
                folder,
                select(text, sources, inside=False),
                "--only-binary",
                ":all:",
                *extra,
            )
            # An sdist tells its metadata by its own code, which needs the build tools around it.
            _fetch(
                installer,
                folder,
                select(text, sources, inside=True),
                "--no-build-isolation",
                *extra,
            )
    return _named(folder)


def _fetch(installer: Installer, folder: Path, text: str, *words: str) -> None:
    if not text:
        return
    with tempfile.NamedTemporaryFile("w", suffix=".lock", encoding="utf-8") as wanted:
        wanted.write(text)
        wanted.flush()
        installer.download(folder, *words, "-r", wanted.name)


def _named(folder: Path) -> dict[str, Path]:
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_file()}


def tool_files(*, report: Report, pip: Path | None = None) -> dict[str, Path | bytes]:
    """Name -> file of this tool's wheel, its dependencies as installed here, and their lock.

    Args:
        report: gets a line.
        pip: an interpreter that has pip, where the running one has none.

    Raises:
        EngineError: a dependency is not installed, or its file cannot be fetched.
        HostError: no space.
    """
    wanted = [f"{name}=={version}" for name, version in sorted(tool_versions().items())]
    folder = cache_root() / "wheels" / f"tool-{_digest(wanted)}"
    with host_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    report(f"wheels of this tool: {len(wanted)} packages")
    with exclusive(folder.with_suffix(".lock"), report=report, what="wheels of this tool") as held:
        log = folder.with_suffix(".log")
        installer = Installer(python=pip or Path(sys.executable), log=log, uv=None, held=(held,))
        # A wheel that is built here gets other bytes each time: once there, it stays.
        lacking = [text for text in wanted if text not in _pinned(folder)]
        if lacking:
            installer.run(_tool_argv(installer.python, folder, lacking), clean_environment())
    found = _named(folder)
    return {**found, wheel_name(): wheel_bytes(), "tool.lock": tool_lock(found).encode()}


def _tool_argv(python: Path, folder: Path, wanted: list[str]) -> list[str]:
    own = importlib.util.find_spec("pip") is not None
    start = [sys.executable, "-m", "pip"]
    if not own:
        start = [str(python), "-m", "pip", "--python", sys.executable]
    # What has no wheel is built into one, so that nobody needs its build tools later.
    return [*start, "wheel", "--no-deps", "--no-input", "--disable-pip-version-check",
            "--progress-bar", "off", "--wheel-dir", str(folder), *wanted]  # fmt: skip


def _pinned(folder: Path) -> set[str]:
    found = (parse_wheel_filename(name)[:2] for name in _named(folder))
    return {f"{name}=={version}" for name, version in found}


def _digest(wanted: Iterable[str]) -> str:
    text = "\n".join([*wanted, sys.version])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def tool_lock(wheels: dict[str, Path]) -> str:
    """A complete lock of wheels: name, version, sha256."""
    digests = digest_files(wheels)
    rows = sorted((*parse_wheel_filename(name)[:2], digests[name]["sha256"]) for name in wheels)
    return "".join(
        f"{name}=={version} \\\n    --hash=sha256:{digest}\n" for name, version, digest in rows
    )


def tool_versions() -> dict[str, str]:
    """Canonical name -> installed version of everything that this tool needs, all the way down.

    Raises:
        EngineError: one of them is not installed.
    """
    found: dict[str, str] = {}
    pending = [Requirement(text) for text in _own_requirements()]
    seen: set[tuple[str, str]] = set()
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *sorted(requirement.extras)):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            distribution = _installed(name)
            found[name] = distribution.version
            pending += _needed(distribution, extra)
    return found


def _needed(distribution: metadata.Distribution, extra: str) -> Iterator[Requirement]:
    for text in distribution.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def _installed(name: str) -> metadata.Distribution:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise EngineError(
            f"expected {name}, which this tool needs, found it is not installed",
            where=sys.prefix,
            next_step="install specbundle with its dependencies",
        ) from None


def _own_requirements() -> list[str]:
    """What the tool asks for: by its metadata, or by the project file of a bare checkout."""
    try:
        return list(metadata.requires("specbundle") or ())
    except metadata.PackageNotFoundError:
        project = resource_root("recipes").parent / "pyproject.toml"
        document = tomllib.loads(project.read_text(encoding="utf-8"))
        return [str(text) for text in document["project"]["dependencies"]]
