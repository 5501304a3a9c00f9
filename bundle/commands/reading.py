"""Commands that read what is there: verify, compare, render, list, judge."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bundle.commands.app import app, err, say, show
from bundle.commands.options import (
    Archive,
    AsJson,
    Models,
    Trust,
)


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
        show(lines_of(found))


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

    show(str(path) for path in rerender(source, into, paper=paper, formats=formats_named(formats)))


@app.command()
def index(
    folder: Annotated[Path, typer.Argument(help="A folder of archives.")] = Path("reports"),
    trust: Trust = None,
) -> None:
    """Write index.html, which lists every bundle of a folder with verdicts and signature."""
    from bundle.stages.index import index as stage

    say(str(stage(folder, trust=trust)))


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
        float, typer.Option(min=0, max=1, help="Standard deviation of a log ratio, as a share.")
    ] = 0.05,
    margin: Annotated[
        float, typer.Option(min=0, max=1, help="The gain asked for, as a share.")
    ] = 0.05,
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
            show(lines_of(result))
    if error := refusal(results):
        raise error
