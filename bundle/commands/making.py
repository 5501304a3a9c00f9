"""Commands that make a bundle: run and rerun, what they would do, and sealing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundle.commands.app import app, out, say, show
from bundle.commands.options import (
    Accept,
    Archive,
    EnginePython,
    Fresh,
    Gpu,
    Loads,
    Models,
    Names,
    Quality,
    RecipeArg,
    Reports,
    Rounds,
    Trust,
    WithModels,
    WithWheels,
    loads,
    split,
)


@app.command()
def run(
    recipe: RecipeArg,
    reports: Reports = Path("reports"),
    fresh: Fresh = False,
    resume: Annotated[bool, typer.Option(help="Go on with an unfinished run (default).")] = True,
    rounds: Rounds = None,
    groups: Names = None,
    tasks: Names = None,
    concurrency: Loads = None,
    quality: Quality = True,
    engine_python: EnginePython = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="A fixed port.")] = None,
    include_models: WithModels = False,
    include_wheels: WithWheels = False,
    accept: Accept = None,
    gpu: Gpu = None,
) -> None:
    """Run a recipe: freeze, measure, judge, report, pack."""
    from bundle.pipeline import Request, make

    request = Request(
        recipe=recipe,
        reports=reports,
        fresh=fresh or not resume,
        rounds=rounds,
        groups=split(groups),
        tasks=split(tasks),
        concurrency=loads(concurrency),
        quality=quality,
        engine_python=engine_python,
        port=port,
        include_models=include_models,
        include_wheels=include_wheels,
        accept=split(accept),
        gpu=gpu,
    )
    from bundle.host.terminal import progress_for

    with progress_for(out) as progress:
        made = make(request, progress)
    show(made.lines)


@app.command()
def plan(
    recipe: RecipeArg,
    rounds: Rounds = None,
    groups: Names = None,
    tasks: Names = None,
    concurrency: Loads = None,
    quality: Quality = True,
    gpu_memory: Annotated[
        float | None, typer.Option(min=1, help="GiB of one GPU, instead of this machine's.")
    ] = None,
) -> None:
    """Show argument vectors, order of runs, fit, memory and hours, without running anything."""
    from bundle.stages.plan import plan_lines
    from bundle.stages.recipe import Request

    request = Request(
        recipe=recipe,
        rounds=rounds,
        groups=split(groups),
        tasks=split(tasks),
        concurrency=loads(concurrency),
        quality=quality,
    )
    show(plan_lines(request, gpu_memory=gpu_memory))


@app.command()
def rerun(
    archive: Archive,
    reports: Reports = Path("reports"),
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    fresh: Fresh = False,
    rounds: Rounds = None,
    groups: Names = None,
    models: Models = None,
    engine_python: EnginePython = None,
    gpu: Gpu = None,
    trust: Trust = None,
    include_models: WithModels = False,
    include_wheels: WithWheels = False,
    accept: Accept = None,
) -> None:
    """Repeat an archive's experiment and judge every claim against it."""
    from bundle.host.terminal import progress_for
    from bundle.pipeline import make
    from bundle.stages import consent
    from bundle.stages import rerun as stage

    with stage.parent_of(archive, trust=trust) as parent:
        stage.require_runnable(parent)
        request = stage.request_for(
            parent,
            reports=reports,
            fresh=fresh,
            rounds=rounds,
            groups=split(groups),
            models=models,
            engine_python=engine_python,
            gpu=gpu,
            include_models=include_models,
            include_wheels=include_wheels,
            accept=split(accept),
        )
        consent.confirm(
            consent.what_will_run(parent, request),
            yes=yes,
            ask=_asked,
            show=say,
            strange=consent.strange_locks(parent.payload),
            signed=bool(parent.signed_by),
        )
        with progress_for(out) as progress:
            made = make(request, progress)
    show(made.lines)


def _asked(question: str) -> bool:
    """The answer; where nobody is there to give one, no. Ctrl-C stops, as everywhere."""
    try:
        return typer.confirm(question)
    except typer.Abort as stop:
        if isinstance(stop.__context__, KeyboardInterrupt):
            raise
        return False


@app.command()
def pack(
    run_folder: Annotated[Path, typer.Argument(help="A finished run: reports/work/NAME.")],
    reports: Reports = Path("reports"),
    models: Models = None,
    include_models: WithModels = False,
    include_wheels: WithWheels = False,
    accept: Accept = None,
) -> None:
    """Seal a finished run folder again, with models and wheels for a room without a network."""
    from bundle.stages.include import seal_again
    from bundle.stages.recipe import Request

    request = Request(
        recipe="",
        reports=reports,
        models=models,
        include_models=include_models,
        include_wheels=include_wheels,
        accept=split(accept),
    )
    made = seal_again(run_folder, request, report=say)
    show(str(path) for path in made)
