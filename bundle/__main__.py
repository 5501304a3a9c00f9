"""The command ``specbundle``: the only place that prints and exits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

import bundle
from bundle.errors import SpecbundleError, UsageError

app = typer.Typer(
    name="specbundle",
    help="Evidence for speculative decoding with vLLM: run a recipe, verify and rerun an archive.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

RecipeArg = Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's file or its name.")]
Reports = Annotated[Path, typer.Option("--reports", help="Where archives and reports go.")]
Names = Annotated[list[str] | None, typer.Option(help="Narrow the run; may be repeated.")]


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Show it.")] = False) -> None:
    if version:
        out.print(f"specbundle {bundle.__version__}")
        raise typer.Exit


@app.command()
def run(
    recipe: RecipeArg,
    reports: Reports = Path("reports"),
    fresh: Annotated[bool, typer.Option(help="Start over, even if a run is unfinished.")] = False,
    resume: Annotated[bool, typer.Option(help="Go on with an unfinished run (default).")] = True,
    rounds: Annotated[int | None, typer.Option(min=1, help="Blocks to run.")] = None,
    groups: Names = None,
    tasks: Names = None,
    concurrency: Annotated[list[int] | None, typer.Option(help="Loads to keep.")] = None,
    engine_python: Annotated[
        Path | None, typer.Option(help="Use the engine of this interpreter, recorded, not locked.")
    ] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="A fixed port.")] = None,
) -> None:
    """Run a recipe: freeze, measure, judge, report, pack."""
    from bundle.pipeline import Request, make

    request = Request(
        recipe=recipe,
        reports=reports,
        fresh=fresh or not resume,
        rounds=rounds,
        groups=_split(groups),
        tasks=_split(tasks),
        concurrency=tuple(concurrency or ()),
        engine_python=engine_python,
        port=port,
    )
    from bundle.host.terminal import progress_for

    with progress_for(out) as progress:
        made = make(request, progress)
    for line in made.lines:
        out.print(line, markup=False)


def _split(values: list[str] | None) -> tuple[str, ...]:
    return tuple(word for value in values or () for word in value.split(",") if word)


@app.command()
def workloads(
    folder: Annotated[Path, typer.Argument(help="The folder of the prompts.")] = Path("data"),
    make: Annotated[bool, typer.Option(help="Write the files instead of checking them.")] = False,
) -> None:
    """Check the shipped prompts against their generator and hashes, or make them."""
    from bundle.stages import workloads as stage

    lines = stage.make(folder) if make else stage.check(folder)
    for line in lines or ():
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
