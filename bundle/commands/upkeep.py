"""Commands around bundles: pins, locks, prompts, signatures, the machine, simulation, schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bundle.commands.app import app, say, show
from bundle.commands.options import (
    Archive,
    RecipeArg,
    Reports,
)


@app.command()
def pin(
    recipe: RecipeArg,
    update: Annotated[bool, typer.Option(help="Move pinned models to the branch's end.")] = False,
    check: Annotated[bool, typer.Option(help="Write nothing; a change is an error.")] = False,
) -> None:
    """Resolve a recipe's models to commits and record every file's size and hash."""
    from bundle.stages.pin import pin as stage
    from bundle.stages.recipe import find_recipe

    show(stage(find_recipe(recipe), report=say, update=update, check=check))


@app.command()
def lock(
    names: Annotated[list[str] | None, typer.Argument(help="Engines; all if none.")] = None,
) -> None:
    """Make the engine locks anew (needs uv and a package index)."""
    from bundle.stages.lock import lock as stage

    show(stage(tuple(names or ()), report=say))


@app.command()
def sign(
    archive: Archive,
    key: Annotated[Path, typer.Option(help="An OpenSSH ed25519 private key.")],
) -> None:
    """Sign an archive beside it, or countersign it; the archive does not change."""
    from bundle.stages.sign import sign as stage

    ask = lambda: typer.prompt("Passphrase", hide_input=True)  # noqa: E731 - one use
    say(str(stage(archive, key, passphrase=ask)))


@app.command()
def workloads(
    folder: Annotated[Path, typer.Argument(help="The folder of the prompts.")] = Path("data"),
    make: Annotated[bool, typer.Option(help="Write the files instead of checking them.")] = False,
) -> None:
    """Check the shipped prompts against their generator and hashes, or make them."""
    from bundle.stages import workloads as stage

    done = stage.make(folder) if make else stage.check(folder)
    show(f"{one.sha256}  {one.name}  {one.rows} rows" for one in done)


@app.command()
def doctor(reports: Reports = Path("reports")) -> int:
    """Say what this machine has and lacks."""
    from bundle.stages.doctor import examine

    found = examine(reports)
    show(f"{one.state:<6} {one.subject:<16} {one.text}" for one in found)
    return int(any(one.state == "lacks" for one in found))


@app.command()
def simulate(
    trials: Annotated[int, typer.Option(min=100, help="Trials of each cell.")] = 4000,
) -> int:
    """Simulate the statistics: coverage of intervals and rates of false verdicts."""
    from bundle.stages.simulate import simulate as stage

    table, held = stage(trials)
    show(table)
    return 0 if held else 1


@app.command()
def schema() -> None:
    """Print the JSON Schema of a recipe."""
    from bundle.core.recipe_reading import json_schema

    print(msgspec.json.format(msgspec.json.encode(json_schema()), indent=2).decode())
