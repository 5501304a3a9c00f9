"""Freeze: inputs, recipe, code, machine, engine: recorded before anything is measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec

from bundle.core.design import expanded_groups, planned_runs, serve_vector
from bundle.core.lm_eval_tasks import LM_EVAL_FOLDER
from bundle.core.quality_items import parse_acceptance, parse_quality
from bundle.core.recipe import Recipe
from bundle.core.workloads import parse_workload
from bundle.errors import InputError
from bundle.host import secrets
from bundle.host.engine_facts import EngineFacts
from bundle.host.folders import host_errors, write_json, write_whole
from bundle.host.hashing import sha256_of
from bundle.host.resources import resource_root
from bundle.host.system import allowed_environment, host_facts
from bundle.host.wheel import source_commit, wheel_bytes, wheel_name
from bundle.stages.lm_eval_files import find_task_files, read_task_files
from bundle.stages.resume import HOST, require_same_machine


class InputFile(msgspec.Struct, frozen=True, kw_only=True):
    """One pinned input: its place in the recipe, its file here, its hash.

    ``task`` names a file among the tasks of lm-evaluation-harness, which keep their folder.
    """

    path: str
    sha256: str
    file: Path
    task: str = ""

    @property
    def name(self) -> str:
        """Its name below ``inputs/``."""
        return f"{LM_EVAL_FOLDER}/{self.task}" if self.task else Path(self.path).name


def find_inputs(recipe: Recipe, recipe_file: Path) -> tuple[InputFile, ...]:
    """Every input of the recipe, found and checked against its hash.

    A path is looked for among the inputs of an unpacked bundle, beside the recipe's folder, in
    the working folder, then among the tool's own data.

    Raises:
        InputError: missing, or not the file that was pinned.
    """
    pinned = {w.path: w.sha256 for w in recipe.workloads}
    pinned[recipe.quality.path] = recipe.quality.sha256
    pinned[recipe.quality.acceptance_path] = recipe.quality.acceptance_sha256
    tasks = (
        InputFile(path=f"{recipe.quality.lm_eval.path}/{name}", sha256=sha, file=file, task=name)
        for name, sha, file in find_task_files(recipe, recipe_file)
        if recipe.quality.lm_eval is not None
    )
    return (*(_found(path, sha, recipe_file) for path, sha in pinned.items()), *tasks)


def _found(path: str, sha256: str, recipe_file: Path) -> InputFile:
    beside = recipe_file.parent.parent
    frozen = beside / "inputs" / Path(path).name
    places = [frozen, beside / path, recipe_file.parent / path, Path(path)]
    if path.startswith("data/"):
        places.append(resource_root("data") / path.removeprefix("data/"))
    file = next((p for p in places if p.is_file()), None)
    if file is None:
        raise InputError(
            f"no such file; looked at {', '.join(str(p) for p in places)}",
            where=path,
            next_step="mend the path in the recipe",
        )
    found = sha256_of(file)
    if found != sha256:
        raise InputError(
            f"expected sha256 {sha256}, found {found}",
            where=str(file),
            next_step="restore the file, or pin the new one in the recipe",
        )
    return InputFile(path=path, sha256=sha256, file=file)


def refuse_broken_rows(recipe: Recipe, inputs: tuple[InputFile, ...]) -> None:
    """Read every row now, not after the engine was built.

    Raises:
        InputError: a broken row; names file and line.
        RecipeError: a task of lm-evaluation-harness that holds code.
    """
    if recipe.quality.lm_eval is not None:
        read_task_files(recipe.quality.lm_eval, {one.task: one.file for one in inputs if one.task})
    for one in (one for one in inputs if not one.task):
        text = one.file.read_text(encoding="utf-8")
        if one.path == recipe.quality.path:
            parse_quality(text, str(one.file))
        elif one.path == recipe.quality.acceptance_path:
            parse_acceptance(text, str(one.file))
        else:
            parse_workload(text, str(one.file))


def freeze_inputs(
    folder: Path, recipe: Recipe, recipe_text: str, inputs: tuple[InputFile, ...]
) -> dict[str, Path]:
    """Copy inputs, recipe and code into the run folder.

    Returns:
        The frozen copy of each input by its path in the recipe.
    """
    copies = {one.path: folder / "inputs" / one.name for one in inputs}
    with host_errors(folder):
        for one in inputs:
            copies[one.path].parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(one.file, copies[one.path])
    sums = "".join(f"{one.sha256}  {one.name}\n" for one in inputs)
    write_whole(folder / "inputs" / "SHA256SUMS", sums)
    write_whole(folder / "recipes" / "recipe.toml", recipe_text)
    write_json(folder / "recipes" / "recipe.json", recipe)
    write_whole(folder / "code" / wheel_name(), wheel_bytes())
    write_whole(folder / "code" / "COMMIT", source_commit() + "\n")
    return copies


def freeze_plan(folder: Path, recipe: Recipe) -> None:
    """Record the argument vector of every group and the order of runs, with no shell anywhere."""
    names = {key: f"models/{key}" for key in recipe.models}
    vectors = {
        group.name: ["vllm", *serve_vector(recipe, group, port=0, models=names)]
        for group in expanded_groups(recipe)
    }
    write_json(folder / "recipes" / "vectors.json", vectors)
    order = [plan.folder for plan in planned_runs(recipe)]
    write_json(folder / "recipes" / "order.json", order)


def freeze_host(folder: Path) -> None:
    """Record the machine and the variables that may change a measurement.

    Raises:
        UsageError: the run began on another machine.
    """
    here = host_facts()
    require_same_machine(folder, here)
    write_json(folder / HOST, here)
    known = secrets.environment_secrets()
    write_json(
        folder / "system" / "environment.json",
        secrets.scrub_env(allowed_environment(), known=known),
    )


def engine_is_frozen(folder: Path, name: str) -> bool:
    """Whether an earlier start recorded this engine already."""
    return _inspect_file(folder, name).exists()


def _inspect_file(folder: Path, name: str) -> Path:
    return folder / "locks" / f"pip-inspect.{name}.json"


def freeze_engine(folder: Path, name: str, facts: EngineFacts) -> None:
    """Record what the engine says of itself (a minute on a slow machine)."""
    home = str(Path.home())
    texts = {file: secrets.without_home(text, home) for file, text in facts.read().items()}
    known = secrets.environment_secrets()
    for file, text in texts.items():
        if file != "pip-inspect.json":
            stem, _, ending = file.rpartition(".")
            clean = secrets.scrub_text(text, known=known)
            write_whole(folder / "system" / f"{stem}.{name}.{ending}", clean)
    short = _short_inspect(texts["pip-inspect.json"])
    write_json(_inspect_file(folder, name), secrets.scrub_json(short, known=known))


def _short_inspect(text: str) -> object:
    """``pip inspect`` without the packages' long descriptions (2 MB become 0.2)."""
    report = json.loads(text)
    for one in report["installed"]:
        one["metadata"].pop("description", None)
        one.pop("metadata_location", None)
    return report
