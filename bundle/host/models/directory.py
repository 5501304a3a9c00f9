"""Models that are a local folder already; used in place."""

from __future__ import annotations

from pathlib import Path

from bundle.core.models import LockedModel
from bundle.core.recipe import DirectoryModel
from bundle.errors import ModelError
from bundle.host.models.snapshots import hash_files, list_files, locked_from, verify_snapshot


def open_directory(model: DirectoryModel) -> tuple[Path, LockedModel]:
    """The folder and its lock; held against the recipe's hashes where it gives any.

    Raises:
        ModelError: no such folder, no configuration in it, or files other than the recipe's.
    """
    path = Path(model.path).expanduser().absolute()
    files = list_files(path)
    if "config.json" not in files:
        raise ModelError(
            "expected a model's snapshot, found a folder without config.json",
            where=str(path),
            next_step="name the folder that holds config.json and the weights",
        )
    if not model.files:
        return path, LockedModel(source="directory", files=hash_files(files), licence=model.licence)
    pinned = LockedModel(
        source="directory", files=locked_from(model.files, path), licence=model.licence
    )
    verify_snapshot(path, pinned)
    return path, pinned
