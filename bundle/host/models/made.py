"""Snapshots that are made here: converted or assembled once, kept by the hash of their content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from bundle.core.models import LockedModel
from bundle.core.recipe import AssembledModel, PackageModel
from bundle.errors import ModelError
from bundle.host.cache import Report, cache_root, exclusive, remove_tree, unwritable
from bundle.host.models.snapshots import differences, locked_from, verify_snapshot

Make = Callable[[Path], None]


def made_snapshot(
    model: PackageModel | AssembledModel, make: Make, *, key: str, report: Report
) -> tuple[Path, LockedModel]:
    """The snapshot with exactly the recipe's files, from the cache or made now.

    Args:
        model: the recipe's entry; its ``files`` name the content and so the folder.
        make: writes the snapshot into an empty folder.
        key: the model's name in the recipe.
        report: gets a line when something is made.

    Raises:
        ModelError: what was made is not what the recipe says.
        HostError: the cache cannot be written.
    """
    folder = made_folder(model)
    root = folder.parent
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(root, error) from error
    with exclusive(root / f"{folder.name}.lock", report=report, what=f"model {key}"):
        if folder.is_dir():
            found = differences(folder, _lock(model, folder))
            if not found:
                return folder, _lock(model, folder)
            report(f"model {key}: the cached snapshot is damaged ({found[0]}), making it again")
            remove_tree(folder)
        else:
            report(f"model {key}: making its snapshot")
        _make_whole(model, make, folder, key)
    return folder, _lock(model, folder)


def made_folder(model: PackageModel | AssembledModel) -> Path:
    """Where the snapshot with exactly these files is kept."""
    content = hashlib.sha256(msgspec.json.encode(sorted(model.files.items()))).hexdigest()
    # vLLM reads a method's name off a draft's path: no folder here may carry one.
    name = "packaged" if isinstance(model, PackageModel) else "helper"
    return cache_root() / "models" / f"{name}-{content[:16]}"


def _make_whole(model: PackageModel | AssembledModel, make: Make, folder: Path, key: str) -> None:
    """Make it beside, verify it, then give it its name."""
    half = folder.with_name(f"{folder.name}.half")
    remove_tree(half)
    try:
        half.mkdir()
        make(half)
        verify_snapshot(half, _lock(model, half))
        for path in half.rglob("*"):
            _sync(path)
        half.replace(folder)
    except ModelError as error:
        remove_tree(half)
        raise ModelError(
            error.message, where=f"models.{key}", next_step=_next_step(error)
        ) from error
    except OSError as error:
        remove_tree(half)
        raise unwritable(half, error) from error
    except BaseException:
        remove_tree(half)
        raise


def _next_step(error: ModelError) -> str:
    if error.message.startswith("the snapshot is not the locked one"):
        return (
            "the engine has other versions than the recipe's lock; use the locked engine, or name "
            "a snapshot made elsewhere with source = 'directory'"
        )
    return error.next_step


def _sync(path: Path) -> None:
    if path.is_file():
        with path.open("rb") as stream:
            os.fsync(stream.fileno())


def _lock(model: PackageModel | AssembledModel, folder: Path) -> LockedModel:
    files = locked_from(model.files, folder)
    if isinstance(model, AssembledModel):
        return LockedModel(source="assembled", files=files, licence=model.licence)
    return LockedModel(
        source="package",
        repo=model.distribution,
        revision=model.version,
        files=files,
        licence=model.licence,
    )
