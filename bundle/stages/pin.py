"""Pin: a recipe's Hub models to commits, and every file of them to a size and a hash."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bundle.core.models import LockedModel, ModelLock, compare_listings
from bundle.core.recipe import HubModel, Recipe
from bundle.core.recipe_edit import with_revision
from bundle.core.recipe_reading import parse_recipe
from bundle.errors import ModelError
from bundle.host.cache import GIB, Report
from bundle.host.folders import write_json, write_whole
from bundle.host.models.configs import keep_config
from bundle.host.models.hub import list_commit

BRANCH = "main"


def lock_path(recipe: Path) -> Path:
    """Where a recipe's own models lock lies: beside it."""
    return recipe.with_name(f"{recipe.stem}.models.lock.json")


def read_model_lock(path: Path) -> ModelLock | None:
    """A models lock, or None where there is none.

    Raises:
        ModelError: the file is not a models lock.
    """
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=ModelLock)
    except (msgspec.MsgspecError, OSError) as error:
        raise ModelError(
            f"expected a models lock, found: {error}",
            where=str(path),
            next_step="restore it, or make it anew: specbundle pin RECIPE",
        ) from error


def pin(
    recipe: Path, *, report: Report, update: bool = False, check: bool = False
) -> tuple[str, ...]:
    """Resolve what is not pinned yet, list every file, and write both down.

    Args:
        recipe: the recipe's file; its ``revision`` lines are rewritten where they change.
        report: gets a line per model.
        update: also move pinned models to where the branch is now.
        check: write nothing; a pinned commit that the branch has left, or a lock that the Hub
            does not confirm, is an error.

    Returns:
        What was done, one line per model.

    Raises:
        ModelError: a repository, revision or access is missing, or the check found a change.
        RecipeError: the recipe is not valid, or a revision is not on a line of its own.
        HostError: recipe or lock cannot be written.
    """
    text = recipe.read_text(encoding="utf-8")
    old = read_model_lock(lock_path(recipe)) or ModelLock()
    lines, locked = [], {}
    for key, model in _hub_models(parse_recipe(text, str(recipe))).items():
        report(f"{key}: asking for {model.repo}")
        found = _resolve(key, model, update=update, check=check)
        _confirm(key, old.models.get(key), found)
        if found.revision != model.revision:
            text = with_revision(text, key, found.revision)
        locked[key] = found
        lines.append(_line(key, model, found))
    if not locked:
        return ("the recipe names no model of the Hub: nothing to pin",)
    parse_recipe(text, str(recipe))
    if not check:
        for key, one in locked.items():
            try:
                keep_config(recipe, one)
            except ModelError as error:  # a gated repository shows its list to everybody
                lines.append(f"{key}: `plan` cannot tell its memory: {error}")
        write_json(lock_path(recipe), ModelLock(models=locked))
        write_whole(recipe, text)
    return (*lines, f"{'checked' if check else 'wrote'} {lock_path(recipe)}")


def _hub_models(recipe: Recipe) -> dict[str, HubModel]:
    return {key: m for key, m in recipe.models.items() if isinstance(m, HubModel)}


def _resolve(key: str, model: HubModel, *, update: bool, check: bool) -> LockedModel:
    if update or model.revision == "unpinned":
        return list_commit(model, BRANCH)
    found = list_commit(model)
    if found.revision != model.revision:
        raise ModelError(
            f"asked for commit {model.revision}, the Hub answered with {found.revision}",
            where=f"models.{key}",
            next_step="use the Hub itself or a faithful mirror (HF_ENDPOINT)",
        )
    now = list_commit(model, BRANCH).revision if check else found.revision
    if now != model.revision:
        raise ModelError(
            f"the branch {BRANCH} has moved from {model.revision} to {now}",
            where=f"models.{key} {model.repo}",
            next_step="the pinned commit still works; to follow: specbundle pin --update RECIPE",
        )
    return found


def _confirm(key: str, old: LockedModel | None, found: LockedModel) -> None:
    """A commit never changes: what was locked of it must be what the Hub lists now."""
    if old is None or old.revision != found.revision or old.repo != found.repo:
        return
    changed = [d for d in compare_listings(old, found) if d.kind != "extra"]
    if changed:
        raise ModelError(
            f"the Hub now lists other files for the same commit: {changed[0]}",
            where=f"models.{key} {found.repo}@{found.revision}",
            next_step="a mirror may serve other bytes: use the Hub itself (HF_ENDPOINT)",
        )


def _line(key: str, model: HubModel, found: LockedModel) -> str:
    gate = ", gated" if found.gated else ""
    moved = f" (was {model.revision})" if model.revision != found.revision else ""
    return (
        f"{key}: {found.repo}@{found.revision}{moved}, {len(found.files)} files, "
        f"{found.size / GIB:.2f} GiB, {found.licence or 'no licence named'}{gate}"
    )
