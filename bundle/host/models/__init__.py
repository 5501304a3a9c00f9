"""Models behind one interface: every source gives a verified local snapshot and its lock."""

from __future__ import annotations

from pathlib import Path

from bundle.core.models import LockedModel, ModelLock, needed_models
from bundle.core.recipe import AssembledModel, DirectoryModel, HubModel, PackageModel, Recipe
from bundle.host.cache import Report
from bundle.host.engine import EngineEnv
from bundle.host.models.assembled import assemble
from bundle.host.models.directory import open_directory
from bundle.host.models.fitting import check_fit, read_facts
from bundle.host.models.hub import obtain
from bundle.host.models.made import made_snapshot
from bundle.host.models.package import convert
from bundle.host.models.snapshots import verify_snapshot

__all__ = ["check_fit", "materialise", "read_facts", "verify_snapshot"]


def materialise(
    recipe: Recipe, *, engine: EngineEnv, report: Report, lock: ModelLock | None = None
) -> tuple[dict[str, Path], ModelLock]:
    """Every model that the recipe's groups use as a local snapshot, verified by hash.

    Args:
        recipe: the experiment.
        engine: its interpreter converts and assembles.
        report: gets a line per step.
        lock: the recipe's own lock, where it has one; Hub models are held against it.

    Raises:
        ModelError: a model is missing, not pinned, gated, or not the recipe's.
        HostError: no space, or an unwritable cache.
    """
    paths: dict[str, Path] = {}
    locks: dict[str, LockedModel] = {}
    for key in needed_models(recipe):
        given = lock.models.get(key) if lock else None
        paths[key], locks[key] = _one(recipe, key, paths, engine, report, given)
    return paths, ModelLock(models=locks)


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
