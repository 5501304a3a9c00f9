"""Configurations of models that are not on this machine yet, kept beside the recipes.

``pin`` keeps those of Hub models. Those of models that are made here come with the recipe that
records their hash: they are named as the folder of the snapshot will be.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import huggingface_hub

from bundle.core.fit import ModelFacts, fit_problems
from bundle.core.models import LockedModel, unpinned
from bundle.core.recipe import AssembledModel, DirectoryModel, HubModel, Model, PackageModel, Recipe
from bundle.errors import ModelError
from bundle.host.folders import write_whole
from bundle.host.hashing import sha256_of
from bundle.host.models.fitting import read_facts, refuse
from bundle.host.models.hub import snapshot_folder
from bundle.host.models.hub_errors import hub_errors
from bundle.host.models.made import made_folder
from bundle.host.resources import resource_root

FOLDER = "configs"


def config_file(folder: Path, repo: str, revision: str) -> Path:
    """Where the configuration of one commit lies: ``OWNER--NAME@REVISION12.json``."""
    return folder / FOLDER / f"{repo.replace('/', '--')}@{revision[:12]}.json"


def keep_config(recipe: Path, model: LockedModel) -> None:
    """Fetch ``config.json`` of a commit and keep it beside the recipe.

    Raises:
        ModelError: the Hub does not give the file.
        HostError: the folder cannot be written.
    """
    if "config.json" not in {f.path for f in model.files}:
        return
    with tempfile.TemporaryDirectory() as folder:
        with hub_errors(model.repo, model.revision):
            path = huggingface_hub.hf_hub_download(
                model.repo, "config.json", revision=model.revision, local_dir=folder
            )
        content = Path(path).read_bytes()
    write_whole(config_file(recipe.parent, model.repo, model.revision), content)


def known_facts(recipe: Recipe, file: Path) -> dict[str, ModelFacts]:
    """What is known here of the recipe's models without network, by key; others are left out.

    Raises:
        ModelError: a snapshot is here, or a configuration beside a recipe, and it is damaged.
    """
    found: dict[str, ModelFacts] = {}
    for key, model in recipe.models.items():
        folder = _snapshot(model)
        if (folder / "config.json").is_file():
            found |= read_facts(recipe, {key: folder})
        elif not isinstance(model, DirectoryModel) and (config := known_config(file, model)):
            found[key] = _facts(model, config, folder)
    return found


def _snapshot(model: Model) -> Path:
    if isinstance(model, HubModel):
        return snapshot_folder(model)
    if isinstance(model, DirectoryModel):
        return Path(model.path).expanduser()
    return made_folder(model)


def _facts(model: Model, config: dict[str, Any], folder: Path) -> ModelFacts:
    if isinstance(model, HubModel):
        return ModelFacts(config=config, path=model.repo, names=(model.repo,))
    tokenizer = model.files.get("tokenizer.json")
    return ModelFacts(config=config, path=str(folder), tokenizer_sha256=tokenizer)


def refuse_unpinned(recipe: Recipe, file: Path) -> None:
    """Refuse a recipe before anything is made for it, where a model's commit is not known.

    Raises:
        ModelError: names the models.
    """
    loose = unpinned(recipe)
    if loose:
        raise ModelError(
            f"expected commits, found `unpinned` for {', '.join(loose)}",
            where=str(file),
            next_step=f"specbundle pin {file} (needs the Hub once)",
        )


def refuse_known_misfits(recipe: Recipe, file: Path) -> None:
    """Refuse helpers that do not belong to the target as far as their configurations are here.

    Raises:
        ModelError: one sentence per group that cannot work.
    """
    facts = known_facts(recipe, file)
    if "target" in facts:
        refuse(recipe, fit_problems(recipe, facts))


def known_config(
    recipe: Path, model: HubModel | PackageModel | AssembledModel
) -> dict[str, Any] | None:
    """The configuration of a pinned model, from beside the recipe or from those shipped.

    Raises:
        ModelError: the file is not the one whose hash the recipe has.
    """
    for folder in (recipe.parent, resource_root("recipes")):
        if isinstance(model, HubModel):
            path = config_file(folder, model.repo, model.revision)
        else:
            path = folder / FOLDER / f"{made_folder(model).name}.json"
        if path.is_file():
            if not isinstance(model, HubModel):
                _require_same(path, model.files.get("config.json", "none"))
            found = json.loads(path.read_bytes())
            return found if isinstance(found, dict) else None
    return None


def _require_same(path: Path, expected: str) -> None:
    found = sha256_of(path)
    if found != expected:
        raise ModelError(
            f"expected sha256 {expected}, found {found}",
            where=str(path),
            next_step="restore the file, or remove it: a run makes the model anew",
        )
