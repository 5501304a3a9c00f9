"""Level V4: snapshots on this machine, or in the bundle, file by file against its models lock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bundle.core.models import LockedModel
from bundle.errors import ModelError
from bundle.host.models.local import find_snapshot
from bundle.host.models.snapshots import differences
from bundle.stages.checks import Comparison, Outcome
from bundle.stages.include import MODELS
from bundle.stages.pin import read_model_lock


def local_models(folder: Path | None) -> Comparison:
    """A comparison for V4.

    Args:
        folder: holds one folder for each model, named by its key in the recipe, by the last part
            of its repository, or as the Hub's own cache names it. None: the copies inside the
            bundle, if it has any.
    """

    def compare(payload: Path) -> tuple[str, ...] | Outcome:
        place = folder or payload / MODELS
        if folder is None and not place.is_dir():
            return Outcome(unchecked="no local models were given (--models DIR)")
        lock = read_model_lock(payload / "locks/models.lock.json")
        if lock is None or not lock.models:
            return ("the bundle has no locks/models.lock.json to hold models against",)
        found = tuple(
            text for key, locked in lock.models.items() for text in _model(place, key, locked)
        )
        note = "" if folder else "these are the copies in the bundle"
        return Outcome(differences=found, note=note) if note else found

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
