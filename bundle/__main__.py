"""The command ``specbundle``: the only place that prints and exits."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

import bundle
from bundle.errors import SpecbundleError, UsageError
from bundle.options import (
    Accept,
    Archive,
    AsJson,
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

app = typer.Typer(
    name="specbundle",
    help="Evidence for speculative decoding with vLLM: run a recipe, verify and rerun an archive.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Show it.")] = False) -> None:
    if version:
        out.print(f"specbundle {bundle.__version__}")
        raise typer.Exit


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
    _print(made.lines)


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
    _print(plan_lines(request, gpu_memory=gpu_memory))


@app.command()
def verify(
    archive: Archive,
    trust: Trust = None,
    require_signed: Annotated[bool, typer.Option(help="An unsigned bundle fails.")] = False,
    models: Models = None,
    engine_python: Annotated[
        Path | None,
        typer.Option(help="Hold this interpreter's packages against the lock, not the cached."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check an archive level by level; executes nothing from it, needs no network."""
    from bundle.core.levels import render_json, render_text
    from bundle.host.verify_progress import verify_progress
    from bundle.stages import verify as stage
    from bundle.stages.local_environment import local_environment
    from bundle.stages.local_models import local_models
    from bundle.stages.recompute import recompute

    with ExitStack() as stack:
        request = stage.Request(
            archive=archive,
            trust=trust,
            require_signed=require_signed,
            recompute=recompute,
            models=local_models(models),
            environment=local_environment(python=engine_python),
            progress=None if as_json else stack.enter_context(verify_progress(err)),
        )
        found = stage.verify(request)
    print(render_json(found) if as_json else render_text(found))
    return found.exit_code


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
            ask=typer.confirm,
            show=lambda line: out.print(line, markup=False),
            strange=consent.strange_locks(parent.payload),
            signed=bool(parent.signed_by),
        )
        with progress_for(out) as progress:
            made = make(request, progress)
    _print(made.lines)


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
    made = seal_again(run_folder, request, report=lambda text: out.print(text, markup=False))
    _print(str(path) for path in made)


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="An archive or a run folder.")],
    b: Annotated[Path, typer.Argument(help="Another of the same recipe.")],
    as_json: AsJson = False,
) -> None:
    """Hold two bundles of one recipe side by side: set-up first, then every claim."""
    from bundle.stages.compare import compare as stage
    from bundle.stages.compare import lines_of

    found = stage(a, b)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        _print(lines_of(found))


@app.command()
def report(
    source: Annotated[Path, typer.Argument(help="An archive or a run folder.")],
    into: Annotated[Path, typer.Option("--into", help="Where the files go.")] = Path("reports"),
    formats: Annotated[
        str, typer.Option("--format", help="Some of html,pdf,md,json,csv,parquet.")
    ] = "html,pdf",
    paper: Annotated[str, typer.Option(help="A4 or Letter.")] = "A4",
) -> None:
    """Render the report again, in any form, from an archive or run folder alone."""
    from bundle.stages.rerender import formats_named, rerender

    _print(
        str(path) for path in rerender(source, into, paper=paper, formats=formats_named(formats))
    )


@app.command()
def index(
    folder: Annotated[Path, typer.Argument(help="A folder of archives.")] = Path("reports"),
    trust: Trust = None,
) -> None:
    """Write index.html, which lists every bundle of a folder with verdicts and signature."""
    from bundle.stages.index import index as stage

    out.print(str(stage(folder, trust=trust)), markup=False)


@app.command()
def judge(
    files: Annotated[
        list[Path] | None, typer.Argument(help="specbundle.observations/1 files.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Folder of the baseline's `vllm bench serve` JSON.")
    ] = None,
    method: Annotated[Path | None, typer.Option(help="The method's folder.")] = None,
    as_json: AsJson = False,
    assume_noise: Annotated[
        float, typer.Option(min=0, help="Standard deviation of a log ratio without repeats.")
    ] = 0.05,
    margin: Annotated[float, typer.Option(min=0, help="The gain asked for.")] = 0.05,
    target_concurrency: Annotated[
        int | None, typer.Option(min=1, help="The load that decides.")
    ] = None,
) -> None:
    """Judge numbers that exist already, by an assumed noise."""
    from bundle.stages.judge_numbers import judge_numbers, lines_of, refusal

    results = judge_numbers(
        tuple(files or ()),
        baseline=baseline,
        method=method,
        assume_noise=assume_noise,
        margin=margin,
        target_concurrency=target_concurrency,
    )
    if as_json:
        rows = [result.to_json() for result in results]
        print(msgspec.json.format(msgspec.json.encode(rows), indent=1).decode())
    else:
        for result in results:
            _print(lines_of(result))
    if error := refusal(results):
        raise error


@app.command()
def pin(
    recipe: RecipeArg,
    update: Annotated[bool, typer.Option(help="Move pinned models to the branch's end.")] = False,
    check: Annotated[bool, typer.Option(help="Write nothing; a change is an error.")] = False,
) -> None:
    """Resolve a recipe's models to commits and record every file's size and hash."""
    from bundle.stages.pin import pin as stage
    from bundle.stages.recipe import find_recipe

    say = lambda text: out.print(text, markup=False)  # noqa: E731 - one use
    _print(stage(find_recipe(recipe), report=say, update=update, check=check))


@app.command()
def lock(
    names: Annotated[list[str] | None, typer.Argument(help="Engines; all if none.")] = None,
) -> None:
    """Make the engine locks anew (needs uv and a package index)."""
    from bundle.stages.lock import lock as stage

    _print(stage(tuple(names or ()), report=lambda text: out.print(text, markup=False)))


@app.command()
def sign(
    archive: Archive,
    key: Annotated[Path, typer.Option(help="An OpenSSH ed25519 private key.")],
) -> None:
    """Sign an archive beside it, or countersign it; the archive does not change."""
    from bundle.stages.sign import sign as stage

    ask = lambda: typer.prompt("Passphrase", hide_input=True)  # noqa: E731 - one use
    out.print(str(stage(archive, key, passphrase=ask)), markup=False)


@app.command()
def workloads(
    folder: Annotated[Path, typer.Argument(help="The folder of the prompts.")] = Path("data"),
    make: Annotated[bool, typer.Option(help="Write the files instead of checking them.")] = False,
) -> None:
    """Check the shipped prompts against their generator and hashes, or make them."""
    from bundle.stages import workloads as stage

    done = stage.make(folder) if make else stage.check(folder)
    _print(f"{one.sha256}  {one.name}  {one.rows} rows" for one in done)


@app.command()
def doctor(reports: Reports = Path("reports")) -> int:
    """Say what this machine has and lacks."""
    from bundle.stages.doctor import examine

    found = examine(reports)
    _print(f"{one.state:<6} {one.subject:<16} {one.text}" for one in found)
    return int(any(one.state == "lacks" for one in found))


@app.command()
def simulate(
    trials: Annotated[int, typer.Option(min=100, help="Trials of each cell.")] = 4000,
) -> int:
    """Simulate the statistics: coverage of intervals and rates of false verdicts."""
    from bundle.stages.simulate import simulate as stage

    table, held = stage(trials)
    _print(table)
    return 0 if held else 1


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        out.print(line, markup=False)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a recipe."""
    from bundle.core.recipe_reading import json_schema

    print(msgspec.json.format(msgspec.json.encode(json_schema()), indent=2).decode())


def main(argv: list[str] | None = None) -> None:
    """Run the command and exit with the code of what went wrong, if anything did."""
    try:
        code: Any = app(args=argv, standalone_mode=False)
    except SpecbundleError as error:
        err.print(f"specbundle: {error}", markup=False)
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)
    except KeyboardInterrupt:
        err.print("specbundle: stopped; finished runs stay, the same command resumes")
        sys.exit(130)
    except Exception as error:
        if (formatted := getattr(error, "format_message", None)) is None:
            raise
        err.print(f"specbundle: {formatted()}", markup=False)
        sys.exit(UsageError.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
