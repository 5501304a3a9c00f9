"""The application that commands register with, and the two consoles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import Console

import bundle

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


def show(lines: Iterable[str]) -> None:
    """Print lines as they are, whatever mark-up they look like."""
    for line in lines:
        say(line)


def say(line: str) -> None:
    """Print one line as it is."""
    out.print(line, markup=False)
