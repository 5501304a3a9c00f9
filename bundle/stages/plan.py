"""Plan: what a recipe would run, shown without GPU, network or engine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from bundle.core.design import cells, expanded_groups, planned_runs, serve_vector
from bundle.core.recipe import Recipe
from bundle.stages.recipe import Request, load


def plan_lines(request: Request) -> Iterator[str]:
    """The argument vector of every group, the order of runs, the cells of one start."""
    recipe, _, file = load(request)
    yield f"{recipe.title} ({file})"
    yield ""
    for group in expanded_groups(recipe):
        vector = serve_vector(recipe, group, port=8000, models=_names(recipe))
        env = " ".join(f"{k}={v}" for k, v in {**recipe.serve.env, **group.env}.items())
        yield f"{group.name} ({group.role}, engine {group.lock or recipe.engine.lock})"
        yield f"  {env + ' ' if env else ''}vllm {shlex.join(vector)}"
        yield "  cells: " + ", ".join(f"{c.key} x {c.requests}" for c in cells(recipe, group))
    yield ""
    runs = planned_runs(recipe)
    yield f"{len(runs)} server starts in order: " + ", ".join(run.folder for run in runs)
    carried = sorted({run.block for run in runs if run.quality})
    items = recipe.quality.items or "all"
    yield f"quality pass in block {', '.join(map(str, carried))}: {items} items"


def _names(recipe: Recipe) -> dict[str, str]:
    """What stands for each model: the Hub repository, else its key."""
    return {key: getattr(model, "repo", key) for key, model in recipe.models.items()}
