"""Plan: what a recipe would run and take, shown without GPU, network or engine."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from bundle.core.design import cells, expanded_groups, planned_runs, serve_vector
from bundle.core.fit import fit_problems
from bundle.core.lm_eval_args import LmEvalTarget, evaluated_runs, lm_eval_vector
from bundle.core.lm_eval_tasks import LM_EVAL_FOLDER, Task
from bundle.core.models import needed_models, unpinned
from bundle.core.outlook import memory_lines, memory_of_groups, outlook, outlook_lines
from bundle.core.quality_items import parse_acceptance
from bundle.core.recipe import Recipe
from bundle.host.gpu import MIB, open_gpus
from bundle.host.models.configs import known_facts
from bundle.stages.freeze import InputFile, find_inputs
from bundle.stages.lm_eval_files import tasks_of
from bundle.stages.recipe import Request, load

_GIB = 1024**3


def plan_lines(request: Request, *, gpu_memory: float | None = None) -> Iterator[str]:
    """The argument vector of every group, the order of runs, memory, fit and time.

    Args:
        request: what would be run.
        gpu_memory: GiB of one device; default: what this machine's has.

    Raises:
        SpecbundleError: the recipe is not valid, or one of its files is missing or changed.
    """
    recipe, _, file = load(request)
    inputs = find_inputs(recipe, file)
    yield f"{recipe.title} ({file})"
    yield ""
    yield from _vectors(recipe)
    yield ""
    runs = planned_runs(recipe)
    yield f"{len(runs)} server starts in order: " + ", ".join(run.folder for run in runs)
    carried = sorted({run.block for run in runs if run.quality})
    if carried:
        items = recipe.quality.items or "all"
        yield f"quality pass in block {', '.join(map(str, carried))}: {items} items"
    else:
        yield "no quality pass: no verdict can be SHIP"
    tasks = tasks_of(recipe, file)
    yield from _evaluation(recipe, tasks)
    yield ""
    yield from _estimates(recipe, file, gpu_memory, tasks, _items(recipe, inputs))


def _evaluation(recipe: Recipe, tasks: tuple[Task, ...]) -> Iterator[str]:
    """What lm-evaluation-harness is asked, on which starts, with which vector."""
    spec, runs = recipe.quality.lm_eval, evaluated_runs(recipe)
    if spec is None or not runs:
        return
    asked = ", ".join(f"{task.name} ({task.items} items, {task.output_type})" for task in tasks)
    yield f"lm-evaluation-harness (environment {spec.lock}) at the end of block {runs[0].block}:"
    yield f"  {asked}"
    yield f"  on {', '.join(run.folder for run in runs)}"
    target = LmEvalTarget(
        base_url="http://127.0.0.1:8000",
        served_name=str(recipe.serve.flags.get("served-model-name", _names(recipe)["target"])),
        tokenizer=_names(recipe)["target"],
        tasks=f"inputs/{LM_EVAL_FOLDER}",
        output="lm_eval",
    )
    yield f"  lm_eval {shlex.join(lm_eval_vector(recipe, spec, target))}"


def _vectors(recipe: Recipe) -> Iterator[str]:
    for group in expanded_groups(recipe):
        vector = serve_vector(recipe, group, port=8000, models=_names(recipe))
        env = " ".join(f"{k}={v}" for k, v in {**recipe.serve.env, **group.env}.items())
        yield f"{group.name} ({group.role}, engine {group.lock or recipe.engine.lock})"
        yield f"  {env + ' ' if env else ''}vllm {shlex.join(vector)}"
        yield "  cells: " + ", ".join(f"{c.key} x {c.requests}" for c in cells(recipe, group))


def _estimates(
    recipe: Recipe, file: Path, gpu_memory: float | None, tasks: tuple[Task, ...], items: int
) -> Iterator[str]:
    """Fit, memory and time, as far as the models' configurations are known here."""
    facts = known_facts(recipe, file)
    for key in unpinned(recipe):
        yield f"model {key} is not pinned: specbundle pin {file} (needs the Hub once)"
    unknown = [key for key in needed_models(recipe) if key not in facts]
    if "target" in unknown:
        yield "memory and time are told once the target's configuration is here: a run brings it"
        return
    if unknown:
        yield f"not known here yet, so not held against the target: {', '.join(unknown)}"
    problems = fit_problems(recipe, facts)
    yield from (f"does not fit: {problem}" for problem in problems)
    if not problems:
        yield "every model that is known here fits its target"
    device = _device_bytes(recipe, gpu_memory)
    rows = memory_of_groups(recipe, facts, device_bytes=device)
    yield f"memory, estimated{f' for a GPU of {device / _GIB:.0f} GiB' if device else ''}:"
    yield from (f"  {line}" for line in memory_lines(rows))
    longest = recipe.serve.flags.get("max-model-len")
    for row in rows:
        if row.capacity is not None and longest and row.capacity.tokens < int(longest):
            yield f"  {row.group} cannot start there: one request may take {longest} tokens"
    evaluated = sum(task.items for task in tasks)
    found = outlook(recipe, rows[0].target.weights, items=items, evaluated=evaluated)
    yield from outlook_lines(found)
    yield "  (no gain assumed; the servers themselves say what memory they have)"


def _device_bytes(recipe: Recipe, gpu_memory: float | None) -> int | None:
    if recipe.engine.device == "cpu":
        return None
    if gpu_memory is not None:
        return int(gpu_memory * _GIB)
    found = [gpu.facts().memory_mib for gpu in open_gpus(os.environ)]
    return int(found[0] * MIB) if found and found[0] else None


def _items(recipe: Recipe, inputs: Sequence[InputFile]) -> int:
    """Requests of one quality pass."""
    found = {one.path: one.file.read_text(encoding="utf-8") for one in inputs}
    asked = parse_acceptance(found[recipe.quality.acceptance_path], recipe.quality.acceptance_path)
    rows = [line for line in found[recipe.quality.path].splitlines() if line.strip()]
    return (recipe.quality.items or len(rows)) + len(asked)


def _names(recipe: Recipe) -> dict[str, str]:
    """What stands for each model: the Hub repository, else its key."""
    return {key: getattr(model, "repo", key) for key, model in recipe.models.items()}
