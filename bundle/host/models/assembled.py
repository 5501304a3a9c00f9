"""Helpers put together from trained weights of this repository and rows of another model."""

from __future__ import annotations

from pathlib import Path

import bundle.host
from bundle.core.recipe import AssembledModel
from bundle.errors import ModelError
from bundle.host.engine import EngineEnv
from bundle.host.hashing import sha256_of
from bundle.host.models.package import run_in_engine
from bundle.host.resources import resource_root

ASSEMBLER = Path(bundle.host.__file__).with_name("assemble.py")


def assemble(model: AssembledModel, base: Path, engine: EngineEnv, folder: Path) -> None:
    """Write the helper's snapshot into an empty folder.

    Args:
        model: the recipe's entry; ``weights`` is relative to the tool's files (``data/...``), or
            a path of the user's own.
        base: the snapshot whose rows are copied.
        engine: whose interpreter does it.
        folder: where the snapshot goes.

    Raises:
        ModelError: the weights are missing or not the ones of the recipe, or assembling failed.
    """
    weights = locate_weights(model)
    argv = [str(ASSEMBLER), "--kind", model.kind, "--base", str(base)]
    argv += ["--weights", str(weights), "--out", str(folder)]
    run_in_engine(engine, argv, what=model.weights)


def locate_weights(model: AssembledModel) -> Path:
    """The trained weights, their sha256 checked.

    Raises:
        ModelError: they are missing or not the ones of the recipe.
    """
    named = Path(model.weights)
    inside = named.parts[:1] == ("data",)
    path = resource_root("data") / named.relative_to("data") if inside else named
    if not path.is_file():
        raise ModelError(
            "expected trained weights, found no such file",
            where=str(path),
            next_step="name the file in the recipe, or install the tool with its data",
        )
    found = sha256_of(path)
    if found != model.weights_sha256:
        raise ModelError(
            f"expected sha256 {model.weights_sha256}, found {found}",
            where=str(path),
            next_step="restore the file, or record the new hash in the recipe on purpose",
        )
    return path
