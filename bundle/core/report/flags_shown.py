"""The flags of section 9: what all groups share and what differs."""

from __future__ import annotations

import msgspec

from bundle.core.design import expanded_groups, flag_vector
from bundle.core.report.context import Context
from bundle.core.report.flags import parse, split
from bundle.core.report.parts import (
    Block,
    Cell,
    Table,
    cells,
    columns,
)
from bundle.core.report.text import counted


def vectors(context: Context) -> tuple[dict[str, dict[str, str]], bool]:
    """Flags by group as they were run, or as the recipe plans them where no run is recorded."""
    ran = {s.group: {**parse(s.argv), **_env(s.env)} for s in context.provenance.starts if s.argv}
    if ran:
        return ran, True
    planned = {}
    for group in expanded_groups(context.recipe):
        words = flag_vector({**context.recipe.serve.flags, **group.flags})
        if group.speculative is not None:
            encoded = msgspec.json.encode(group.speculative).decode()
            words += ["--speculative-config", encoded]
        env = {**context.recipe.serve.env, **group.env}
        planned[group.name] = {**parse(tuple(words)), **_env(env)}
    return planned, False


def _env(env: dict[str, str]) -> dict[str, str]:
    return {f"{name} (environment)": value for name, value in env.items()}


def flags_block(context: Context) -> Block:
    """Flags that differ between the groups, then those that all share."""
    found, ran = vectors(context)
    shared, differing = split(found)
    source = (
        "as the servers were started" if ran else "as the recipe plans them; no start is recorded"
    )
    return Block(
        id="flags",
        title="Flags",
        paragraphs=(
            f"{counted(len(shared), 'flag').capitalize()} shared by all groups, "
            f"{counted(len(differing), 'flag')} that differ, {source}.",
        ),
        tables=(
            Table(
                id="differing-flags-table",
                caption="Flags that differ between groups",
                columns=columns("Flag", "Group", "Value"),
                rows=tuple(
                    cells(Cell(text=flag, code=True), group, Cell(text=_value(value), code=True))
                    for flag, values in differing.items()
                    for group, value in values.items()
                    if value is not None
                ),
                note="A group that is not listed does not have the flag.",
            ),
            Table(
                id="shared-flags-table",
                caption="Flags that all groups share",
                columns=columns("Flag", "Value"),
                rows=tuple(
                    cells(Cell(text=flag, code=True), Cell(text=_value(value), code=True))
                    for flag, value in shared.items()
                ),
            ),
        ),
    )


def _value(value: str) -> str:
    return value or "(set)"
