"""Snapshots that somebody else brought: a folder of the user's, or the copies inside a bundle."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bundle.core.models import LockedModel
from bundle.errors import ModelError
from bundle.host.cache import Report, cache_root, exclusive, remove_tree, require_space, unwritable
from bundle.host.models.snapshots import differences, verify_snapshot


def find_snapshot(folder: Path, key: str, locked: LockedModel) -> Path | None:
    """The folder of one model below ``folder``, or None.

    Args:
        folder: holds one folder for each model, named by its key in the recipe, by the last part
            of its repository, or as the Hub's own cache names it.
        key: the model's name in the recipe.
        locked: its entry of the lock.
    """
    return next((path for path in _places(folder, key, locked) if path.is_dir()), None)


def _places(folder: Path, key: str, locked: LockedModel) -> Iterator[Path]:
    """Where a model may lie. Names from a foreign lock lead nowhere but below ``folder``."""
    cached = f"models--{locked.repo.replace('/', '--')}"
    for parts in (
        (key,),
        (locked.repo.rpartition("/")[2],),
        (cached, "snapshots", locked.revision),
    ):
        if all(part and part not in {".", ".."} and "/" not in part for part in parts):
            yield folder.joinpath(*parts)


def brought_snapshot(folder: Path, key: str, locked: LockedModel, *, report: Report) -> Path | None:
    """A model in the user's own folder, used in place; None where it has none.

    Raises:
        ModelError: it is there, and is not the locked one.
    """
    place = find_snapshot(folder, key, locked)
    if place is not None:
        report(f"model {key}: verifying {place}")
        verify_snapshot(place, locked)
    return place


def copied_snapshot(folder: Path, key: str, locked: LockedModel, *, report: Report) -> Path | None:
    """A model inside an unpacked bundle, copied to the cache; None where the bundle has none.

    The bundle's folder goes away, and its name would tell vLLM a method.

    Raises:
        ModelError: it is there, and is not the locked one.
        HostError: no space, or an unwritable cache.
    """
    source = find_snapshot(folder, key, locked)
    if source is None:
        return None
    files = sorted((f.path, f.size, f.sha256 or f.git_sha1) for f in locked.files)
    content = hashlib.sha256(msgspec.json.encode(files)).hexdigest()
    root = cache_root() / "models"
    target = root / f"copied-{content[:16]}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with exclusive(root / f"{target.name}.lock", report=report, what=f"model {key}"):
            if not target.is_dir() or differences(target, locked):
                report(f"model {key}: copying it out of the bundle")
                require_space(root, locked.size, f"model {key}")
                _copy(source, target, locked)
    except OSError as error:
        raise unwritable(target, error) from error
    return target


def _copy(source: Path, target: Path, locked: LockedModel) -> None:
    """Copy beside, verify, then give it its name."""
    half = target.with_name(f"{target.name}.half")
    remove_tree(half)
    remove_tree(target)
    try:
        shutil.copytree(source, half)
        verify_snapshot(half, locked)
        half.replace(target)
    except BaseException:
        remove_tree(half)
        raise


def require_same(key: str, found: Path, locked: LockedModel) -> None:
    """Refuse a snapshot that was made or fetched here and is not what was measured before.

    Raises:
        ModelError: it differs.
    """
    apart = differences(found, locked)
    if apart:
        raise ModelError(
            f"expected the model that was measured, found another: {apart[0]}",
            where=f"models.{key}",
            next_step="bring the snapshot itself with --models DIR",
        )
