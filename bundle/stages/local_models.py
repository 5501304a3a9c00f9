"""Level V4: snapshots on this machine, file by file against the bundle's models.lock.json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bundle.core.models import LockedModel
from bundle.errors import ModelError
from bundle.host.models.local import find_snapshot
from bundle.host.models.snapshots import differences
from bundle.stages.checks import Comparison
from bundle.stages.pin import read_model_lock


def local_models(folder: Path) -> Comparison:
    """A comparison for V4.

    Args:
        folder: holds one folder for each model, named by its key in the recipe, by the last part
            of its repository, or as the Hub's own cache names it.
    """

    def compare(payload: Path) -> tuple[str, ...]:
        lock = read_model_lock(payload / "locks/models.lock.json")
        if lock is None or not lock.models:
            return ("the bundle has no locks/models.lock.json to hold models against",)
        return tuple(
            text for key, locked in lock.models.items() for text in _model(folder, key, locked)
        )

    return compare


def _model(folder: Path, key: str, locked: LockedModel) -> Iterator[str]:
    place = find_snapshot(folder, key, locked)
    if place is None:
        yield f"{key}: no folder of it in {folder.name} ({locked.repo or 'no repository'})"
        return
    try:
        yield from (f"{key}: {difference}" for difference in differences(place, locked))
    except ModelError as error:
        yield f"{key}: {error.message}"
