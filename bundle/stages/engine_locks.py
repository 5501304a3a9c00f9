"""The engine locks inside a bundle: written before anything runs, read by verify and rerun."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from bundle.core.recipe import Name, Recipe
from bundle.errors import BundleError, EngineError
from bundle.host.engine_lock import (
    EngineLock,
    engine_names,
    engines_folder,
    lock_sha256,
    read_engine_file,
    read_lock,
)
from bundle.host.folders import host_errors, read_json

#: Below a run folder or payload.
LOCKS = "locks/engines"
ENGINES = "locks/engines.json"
TOOLS = "locks/tools.json"


class Recorded(Struct, frozen=True, kw_only=True):
    """One engine of ``locks/engines.json``, or one environment of ``locks/tools.json``."""

    lock_sha256: str = ""
    locked: bool = True
    missing: dict[str, str] = {}


def engines_of(recipe: Recipe) -> tuple[str, ...]:
    """The engines that the recipe's groups use, the shared one first."""
    own = (group.lock for group in recipe.groups if group.lock is not None)
    return tuple(dict.fromkeys([recipe.engine.lock, *own]))


def tools_of(recipe: Recipe) -> tuple[str, ...]:
    """The environments beside the engines': lm-evaluation-harness's, where it is asked for."""
    found = recipe.quality.lm_eval
    return (found.lock,) if found is not None and recipe.quality.enabled else ()


def freeze_locks(folder: Path, names: Iterable[str], source: Path | None = None) -> None:
    """Copy the lock files of the named engines into a run folder.

    Args:
        folder: the run folder.
        names: engines.
        source: where the lock files lie; default: the tool's own.
    """
    place = source or engines_folder()
    target = folder / LOCKS
    with host_errors(target):
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            for file in _files(name, place):
                shutil.copyfile(place / file, target / file)


def _files(name: str, place: Path) -> tuple[str, ...]:
    file = read_engine_file(name, place)
    inherited = _files(file.extends, place) if file.extends else ()
    return (*inherited, f"{name}.toml", *(part.file for part in file.parts))


def recorded(payload: Path) -> dict[str, Recorded]:
    """The engines that a bundle was measured with, by name.

    Raises:
        BundleError: the record is missing, or a name in it is no name.
    """
    return _recorded(payload / ENGINES)


def recorded_tools(payload: Path) -> dict[str, Recorded]:
    """The environments beside the engines' that took part, by name; none where none did.

    Raises:
        BundleError: a name in the record is no name.
    """
    path = payload / TOOLS
    return _recorded(path) if path.is_file() else {}


def recorded_all(payload: Path) -> dict[str, Recorded]:
    """Every environment that took part: engines, then what stood beside them."""
    return {**recorded(payload), **recorded_tools(payload)}


def _recorded(path: Path) -> dict[str, Recorded]:
    found = read_json(path, dict[str, Recorded])
    try:
        # A name becomes part of a path.
        msgspec.convert(list(found), list[Name])
    except msgspec.ValidationError as error:
        raise BundleError(f"expected names of engines, found: {error}", where=str(path)) from error
    return found


def locks_folder(payload: Path) -> Path | None:
    """Where a bundle's own lock files lie; None where it has none (an older bundle)."""
    folder = payload / LOCKS
    return folder if folder.is_dir() else None


def bundled_lock(payload: Path, name: str, expected: str) -> EngineLock | None:
    """An engine's lock as the bundle has it, held against the hash that was recorded.

    Args:
        payload: the unpacked payload.
        name: the engine.
        expected: its ``lock_sha256`` in ``locks/engines.json``.

    Returns:
        None where neither the bundle (an older one) nor this tool has that lock.

    Raises:
        EngineError: the bundle has another lock than it recorded.
    """
    folder = locks_folder(payload)
    if folder is None:
        return read_lock(name) if is_own(name, expected) else None
    lock = read_lock(name, folder)
    if lock.sha256 != expected:
        raise EngineError(
            f"expected the lock of engine {name} with sha256 {expected}, found {lock.sha256}",
            where=f"{LOCKS}/{name}.toml",
            next_step="do not use the bundle: its lock is not the one it was measured with",
        )
    return lock


def is_own(name: str, expected: str) -> bool:
    """Whether this tool carries the very same lock."""
    return name in engine_names() and lock_sha256(name) == expected
