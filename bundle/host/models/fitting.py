"""Reading the configuration files that say whether models belong together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bundle.core.fit import ModelFacts, fit_problems
from bundle.core.recipe import HubModel, Recipe
from bundle.errors import ModelError
from bundle.host.hashing import sha256_of


def read_facts(recipe: Recipe, snapshots: Mapping[str, Path]) -> dict[str, ModelFacts]:
    """What the configuration files of the snapshots say, by model key.

    Raises:
        ModelError: a configuration is missing or not JSON.
    """
    return {key: _facts(recipe, key, path) for key, path in snapshots.items()}


def check_fit(recipe: Recipe, snapshots: Mapping[str, Path]) -> None:
    """Refuse helpers that do not belong to the target, before any server starts.

    Raises:
        ModelError: one sentence per group that cannot work.
    """
    refuse(recipe, fit_problems(recipe, read_facts(recipe, snapshots)))


def refuse(recipe: Recipe, problems: Sequence[str]) -> None:
    """End here if there are problems.

    Raises:
        ModelError: with all of them.
    """
    if problems:
        raise ModelError(
            "; ".join(problems),
            where=recipe.name,
            next_step="name another helper or method in the recipe, or leave the group out "
            "with --groups",
        )


def _facts(recipe: Recipe, key: str, path: Path) -> ModelFacts:
    tokenizer = path / "tokenizer.json"
    weights = [p.stat().st_size for p in path.glob("*.safetensors")]
    model = recipe.models[key]
    return ModelFacts(
        config=_config(path),
        path=str(path),
        names=(model.repo,) if isinstance(model, HubModel) else (),
        tokenizer_sha256=sha256_of(tokenizer) if tokenizer.is_file() else None,
        weights=sum(weights) if weights else None,
    )


def _config(path: Path) -> dict[str, Any]:
    file = path / "config.json"
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(
            f"expected a model's configuration, found: {error}",
            where=str(file),
            next_step="fetch the model again",
        ) from error
    if not isinstance(found, dict):
        raise ModelError("expected an object in config.json", where=str(file))
    return found
