"""Files of lm-evaluation-harness: a recipe's tasks before a run, its output in a run folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from bundle.core.jsonl import decode_text
from bundle.core.lm_eval_output import (
    LmEvalOutput,
    check_output,
    parse_results,
    parse_samples,
)
from bundle.core.lm_eval_tasks import LM_EVAL_FOLDER, Task, read_tasks
from bundle.core.recipe import LmEval, Recipe
from bundle.core.records import RunRecord
from bundle.errors import BundleError, InputError
from bundle.host.hashing import sha256_of
from bundle.host.lm_eval import RESULTS, samples_name

OUTPUT = "lm_eval"
LOG = "lm_eval.log"


def find_task_files(recipe: Recipe, recipe_file: Path) -> Iterator[tuple[str, str, Path]]:
    """Name below the tasks' folder, sha256 and place of every file that the recipe pins.

    The folder is looked for among the inputs of an unpacked bundle, beside the recipe's folder, in
    it, then in the working folder.

    Raises:
        InputError: missing, or not the file that was pinned.
    """
    spec = recipe.quality.lm_eval
    if spec is None:
        return
    beside = recipe_file.parent.parent
    places = [beside / "inputs" / LM_EVAL_FOLDER, beside / spec.path]
    places += [recipe_file.parent / spec.path, Path(spec.path)]
    folder = next((p for p in places if p.is_dir()), None)
    if folder is None:
        raise InputError(
            f"no such folder; looked at {', '.join(map(str, places))}",
            where=spec.path,
            next_step="mend quality.lm_eval.path in the recipe",
        )
    for name, sha256 in spec.files.items():
        found = sha256_of(folder / name) if (folder / name).is_file() else "no file"
        if found != sha256:
            raise InputError(
                f"expected sha256 {sha256}, found {found}",
                where=str(folder / name),
                next_step="restore the file, or pin the new one in quality.lm_eval.files",
            )
        yield name, sha256, folder / name


def tasks_of(recipe: Recipe, recipe_file: Path) -> tuple[Task, ...]:
    """The recipe's tasks, read from where they are found.

    Raises:
        RecipeError: a task holds code or reaches outside its folder.
        InputError: a file is missing, changed or no text.
    """
    found = {name: file for name, _, file in find_task_files(recipe, recipe_file)}
    return read_task_files(recipe.quality.lm_eval, found) if recipe.quality.lm_eval else ()


def read_task_files(spec: LmEval, files: Mapping[str, Path]) -> tuple[Task, ...]:
    """:func:`bundle.core.lm_eval_tasks.read_tasks` of files by their names below the folder."""
    texts = {name: decode_text(file.read_bytes(), str(file)) for name, file in files.items()}
    return read_tasks(spec, texts, spec.path)


def read_output(run: Path, tasks: Sequence[str]) -> LmEvalOutput:
    """What the harness wrote in one start's folder, results held against samples.

    Raises:
        InputError: a file is missing, not what it should be, or they do not belong together.
    """
    folder = run / OUTPUT
    output = parse_results(_text(folder / RESULTS), f"{OUTPUT}/{RESULTS}", tasks)
    samples = (
        sample
        for task in tasks
        for sample in parse_samples(
            _text(folder / samples_name(task)), f"{OUTPUT}/{samples_name(task)}", task
        )
    )
    output = replace(output, samples=tuple(samples))
    check_output(output, OUTPUT)
    return output


def recorded_output(run: Path, record: RunRecord, recipe: Recipe) -> LmEvalOutput | None:
    """The output behind a start's record; None where there is no evaluation to read.

    Raises:
        BundleError: the record says other numbers than the files.
    """
    spec, said = recipe.quality.lm_eval, record.lm_eval
    if spec is None or said is None or said.status == "failed":
        return None
    try:
        output = read_output(run, spec.tasks)
    except InputError as error:
        raise BundleError(error.message, where=str(run / OUTPUT)) from error
    if output.scores != said.scores:
        raise BundleError(
            "expected the numbers of lm_eval that the start's record says, found others",
            where=str(run / OUTPUT / RESULTS),
            next_step="one of the two is not as it was written; verify the bundle",
        )
    return output


def _text(path: Path) -> str:
    try:
        return decode_text(path.read_bytes(), path.name)
    except OSError as error:
        raise InputError(
            f"expected what lm_eval wrote, found: {error.strerror}", where=path.name
        ) from None
