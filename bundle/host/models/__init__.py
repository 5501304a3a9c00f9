"""Models behind one interface: every source gives a verified local snapshot and its lock."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from bundle.core.models import LockedModel, ModelLock, needed_models
from bundle.core.recipe import AssembledModel, DirectoryModel, HubModel, Model, PackageModel, Recipe
from bundle.errors import ModelError
from bundle.host.cache import Report
from bundle.host.engine import EngineEnv
from bundle.host.models.assembled import assemble
from bundle.host.models.directory import open_directory
from bundle.host.models.fitting import check_fit, read_facts
from bundle.host.models.hub import obtain
from bundle.host.models.local import brought_snapshot, copied_snapshot, require_same
from bundle.host.models.made import made_snapshot
from bundle.host.models.package import convert
from bundle.host.models.snapshots import verify_snapshot

__all__ = ["Brought", "check_fit", "materialise", "read_facts", "verify_snapshot"]


class Brought(Struct, frozen=True, kw_only=True):
    """Where snapshots may lie that nobody needs to fetch or make.

    ``folder`` is the user's own, whose snapshots are used in place; ``bundle`` is the models folder
    of an unpacked bundle. Both are held against ``lock``, without which neither is looked at.
    """

    folder: Path | None = None
    bundle: Path | None = None


def materialise(
    recipe: Recipe,
    *,
    engine: EngineEnv,
    report: Report,
    lock: ModelLock | None = None,
    brought: Brought | None = None,
) -> tuple[dict[str, Path], ModelLock]:
    """Every model that the recipe's groups use as a local snapshot, verified by hash.

    Args:
        recipe: the experiment.
        engine: its interpreter converts and assembles.
        report: gets a line per step.
        lock: the recipe's own lock, or that of an earlier run; every model that it names is held
            against it.
        brought: snapshots that are here already.

    Raises:
        ModelError: a model is missing, not pinned, gated, or not the recipe's.
        HostError: no space, or an unwritable cache.
    """
    paths: dict[str, Path] = {}
    locks: dict[str, LockedModel] = {}
    for key in needed_models(recipe):
        given = lock.models.get(key) if lock else None
        found = None
        if given is not None:
            require_lock_of(recipe.models[key], key, given)
            found = _brought(key, given, brought or Brought(), report)
        if given is not None and found is not None:
            paths[key], locks[key] = found, given
            continue
        paths[key], locks[key] = _one(recipe, key, paths, engine, report, given)
        if given is not None and not isinstance(recipe.models[key], HubModel):
            require_same(key, paths[key], given)
    return paths, ModelLock(models=locks)


def _brought(key: str, locked: LockedModel, brought: Brought, report: Report) -> Path | None:
    if brought.folder is not None:
        found = brought_snapshot(brought.folder, key, locked, report=report)
        if found is not None:
            return found
    if brought.bundle is None:
        return None
    return copied_snapshot(brought.bundle, key, locked, report=report)


def require_lock_of(model: Model, key: str, locked: LockedModel) -> None:
    """Refuse a lock that speaks of other files than the recipe.

    Raises:
        ModelError: it does.
    """
    if isinstance(model, HubModel):
        said, wanted = f"{locked.repo}@{locked.revision}", f"{model.repo}@{model.revision}"
    else:
        wanted = f"{len(model.files)} files {sorted(model.files.items())[:1]}"
        of_lock = {f.path: f.sha256 for f in locked.files}
        same = not model.files or of_lock == dict(model.files)
        said = wanted if same else f"{len(of_lock)} files {sorted(of_lock.items())[:1]}"
    if said != wanted:
        raise ModelError(
            f"the lock is of {said}, the recipe asks for {wanted}",
            where=f"models.{key}",
            next_step="specbundle pin RECIPE makes a recipe's lock; do not mend a bundle's",
        )


def _one(
    recipe: Recipe,
    key: str,
    made: dict[str, Path],
    engine: EngineEnv,
    report: Report,
    lock: LockedModel | None,
) -> tuple[Path, LockedModel]:
    model = recipe.models[key]
    match model:
        case HubModel():
            return obtain(model, key=key, report=report, locked=lock)
        case DirectoryModel():
            return open_directory(model)
        case PackageModel():
            return made_snapshot(
                model, lambda folder: convert(model, engine, folder), key=key, report=report
            )
        case AssembledModel():
            base = made[model.base]
            return made_snapshot(
                model, lambda folder: assemble(model, base, engine, folder), key=key, report=report
            )
