"""What the command's arguments are called and what their help says, one wording for each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundle.errors import UsageError

RecipeArg = Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's file or its name.")]
Archive = Annotated[Path, typer.Argument(help="The .tar.zst file.")]
Reports = Annotated[Path, typer.Option("--reports", help="Where archives and reports go.")]
Names = Annotated[
    list[str] | None, typer.Option(help="Narrow the run, such as a,b; may be repeated.")
]
Loads = Annotated[
    list[str] | None,
    typer.Option("--concurrency", help="Loads to keep, such as 1,4; may be repeated."),
]
Quality = Annotated[bool, typer.Option(help="Do the quality pass.")]
Fresh = Annotated[bool, typer.Option(help="Start over, even if a run is unfinished.")]
Rounds = Annotated[int | None, typer.Option(min=1, help="Blocks to run.")]
EnginePython = Annotated[
    Path | None, typer.Option(help="Use the engine of this interpreter, recorded, not locked.")
]
Gpu = Annotated[int | None, typer.Option(min=0, help="Index of the GPU to use.")]
Models = Annotated[
    Path | None, typer.Option(help="Folder of local snapshots; held against the lock.")
]
WithModels = Annotated[
    bool, typer.Option("--include-models", help="Put the models' files into the archive.")
]
WithWheels = Annotated[
    bool, typer.Option("--include-wheels", help="Put in all that a rerun installs, torch included.")
]
Accept = Annotated[
    list[str] | None,
    typer.Option(help="The mark of a finding of the secret scan that is none; goes on record."),
]
Trust = Annotated[Path | None, typer.Option(help="Public keys of signers you trust.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def split(values: list[str] | None) -> tuple[str, ...]:
    """The words of an option that may be repeated and may hold several, divided by commas."""
    return tuple(word for value in values or () for word in value.split(",") if word)


def loads(values: list[str] | None) -> tuple[int, ...]:
    """The loads of ``--concurrency``.

    Raises:
        UsageError: one of them is not a whole number above 0.
    """
    words = [word.strip() for word in split(values)]
    for word in words:
        if not (word.isascii() and word.isdigit() and int(word)):
            raise UsageError(
                f"expected numbers of requests at a time, found {word!r}",
                where="--concurrency",
                next_step="name loads of the recipe, divided by commas",
            )
    return tuple(int(word) for word in words)
