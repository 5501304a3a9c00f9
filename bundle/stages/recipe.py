"""Finding and loading a recipe, and narrowing it to what was asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from bundle.core.design import expanded_groups, narrowed
from bundle.core.recipe import Recipe
from bundle.core.recipe_reading import parse_recipe
from bundle.errors import InputError, UsageError
from bundle.host.folders import read_json
from bundle.host.resources import resource_root


class Request(Struct, frozen=True, kw_only=True):
    """What the user asked of ``specbundle run`` or ``rerun``.

    ``engine_locks``, ``wheels``, ``models_lock`` and ``bundled_models`` are parts of the bundle
    that is run again; ``models`` is a folder of snapshots that the user brought. ``accept`` are
    marks of the secret scan that a person found harmless.
    """

    recipe: str
    reports: Path = Path("reports")
    fresh: bool = False
    rounds: int | None = None
    groups: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    concurrency: tuple[int, ...] = ()
    quality: bool = True
    engine_python: Path | None = None
    gpu: int | None = None
    port: int | None = None
    engine_locks: Path | None = None
    wheels: Path | None = None
    models_lock: Path | None = None
    models: Path | None = None
    bundled_models: Path | None = None
    include_models: bool = False
    include_wheels: bool = False
    accept: tuple[str, ...] = ()
    parent: str | None = None
    parent_payload: Path | None = None
    inherited: tuple[str, ...] = ()


def find_recipe(name: str) -> Path:
    """A recipe by its file, or by the name of one in the working folder or shipped.

    Raises:
        InputError: there is none.
    """
    shipped = resource_root("recipes")
    places = [Path(name), Path("recipes") / f"{name}.toml", shipped / f"{name}.toml"]
    for place in places:
        if place.is_file():
            return place
    known = ", ".join(sorted(p.stem for p in shipped.glob("*.toml")))
    raise InputError(
        f"no such recipe; shipped are: {known}", where=name, next_step="name one of them or a file"
    )


def load(request: Request) -> tuple[Recipe, str, Path]:
    """The narrowed recipe, the text of its file, and the file.

    Raises:
        InputError: no such file.
        RecipeError: not a valid recipe.
        UsageError: a name to narrow to that the recipe does not have.
    """
    file = find_recipe(request.recipe)
    recipe, text = _read(file)
    _known("--groups", request.groups, [g.name for g in expanded_groups(recipe)])
    _known("--tasks", request.tasks, [w.task for w in recipe.workloads])
    loads = [str(x.concurrency) for x in recipe.loads if x.concurrency is not None]
    _known("--concurrency", [str(c) for c in request.concurrency], loads)
    small = narrowed(
        recipe,
        rounds=request.rounds,
        groups=request.groups,
        tasks=request.tasks,
        concurrency=request.concurrency,
        quality=request.quality,
    )
    # A smaller copy must hold together too: its target load may be gone.
    if small.design.target.label not in [x.label for x in small.loads]:
        raise UsageError(
            f"--concurrency leaves out the target load {small.design.target.label}",
            next_step="keep it, or set another target in the recipe",
        )
    return small, text, file


def _read(file: Path) -> tuple[Recipe, str]:
    """A recipe and the text of its TOML file.

    The resolved recipe of a bundle is JSON, with the TOML that it came from beside it.
    """
    if file.suffix == ".json":
        return read_json(file, Recipe), file.with_suffix(".toml").read_text(encoding="utf-8")
    text = file.read_text(encoding="utf-8")
    return parse_recipe(text, str(file)), text


def _known(option: str, asked: Sequence[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            raise UsageError(
                f"{option} {name}: the recipe has {', '.join(known)}", next_step="name one of those"
            )


def narrowing(request: Request) -> tuple[str, ...]:
    """In words, what a narrowed run left out; empty for the whole recipe."""
    words = {
        "rounds": str(request.rounds) if request.rounds else "",
        "groups": ", ".join(request.groups),
        "tasks": ", ".join(request.tasks),
        "concurrency": ", ".join(map(str, request.concurrency)),
        "quality pass": "" if request.quality else "none",
    }
    own = tuple(f"{name}: {value}" for name, value in words.items() if value)
    return tuple(dict.fromkeys([*request.inherited, *own]))


def digest(recipe: Recipe, parent: str | None = None) -> str:
    """sha256 of the resolved recipe without its rounds: more rounds extend the same run.

    A rerun is a run of its own for each parent.
    """
    same = msgspec.structs.replace(recipe.design, rounds=1)
    resolved = msgspec.structs.replace(recipe, design=same)
    return hashlib.sha256(msgspec.json.encode([resolved, parent])).hexdigest()
