"""Writing a commit into a recipe's text, everything else left as its author wrote it."""

from __future__ import annotations

import re

from bundle.errors import RecipeError

_TABLE = re.compile(r"^\s*\[(?P<name>[^\[\]]+)\]\s*(#.*)?$")
_REVISION = re.compile(
    r"^(?P<head>\s*revision\s*=\s*)(?P<quote>[\"'])[^\"']*(?P=quote)(?P<tail>.*)$"
)


def with_revision(text: str, key: str, revision: str) -> str:
    """The recipe's text with another ``revision`` in its table ``[models.<key>]``.

    Raises:
        RecipeError: the table or its revision is not written on lines of their own.
    """
    lines = text.splitlines(keepends=True)
    inside = False
    for number, line in enumerate(lines):
        table = _TABLE.match(line)
        if table:
            inside = re.sub(r"[\"'\s]", "", table["name"]) == f"models.{key}"
        match = _REVISION.match(line.rstrip("\r\n")) if inside else None
        if match:
            end = line[len(line.rstrip("\r\n")) :]
            lines[number] = f'{match["head"]}"{revision}"{match["tail"]}{end}'
            return "".join(lines)
    raise RecipeError(
        "expected a line `revision = ...` below its table",
        where=f"[models.{key}]",
        next_step=f'write revision = "{revision}" there by hand',
    )
