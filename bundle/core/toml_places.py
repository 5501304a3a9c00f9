"""Where something stands in a TOML file: the line of a key on a path of a msgspec error."""

from __future__ import annotations

import re
from itertools import pairwise

#: The steps of a msgspec error path: a name, or an index.
STEP = re.compile(r"\.([A-Za-z0-9_-]+)|\[(\d+|\.\.\.)\]")


def line_of(text: str, where: str, path: str, key: str) -> str:
    """``where:line`` of the key: as a key, as a table, or anywhere; ``where`` if nowhere.

    It is looked for in the part of the file that ``path`` leads to, then in all of it.
    """
    lines = text.splitlines()
    word = re.escape(key)
    outer = re.escape(next((n for n, _ in reversed(STEP.findall(path)) if n and n != key), " "))
    for first, last in (_part(lines, path), (0, len(lines))):
        for form in (
            rf"\s*{outer}\s*=.*\b{word}\b",
            rf"\s*\"?{word}\"?\s*=",
            rf"\s*\[.*\b{word}\]",
            rf"[^#]*?\b{word}\b",
        ):
            for number in range(first, last):
                if key and re.match(form, lines[number]):
                    return f"{where}:{number + 1}"
    return where


def _part(lines: list[str], path: str) -> tuple[int, int]:
    """First line and the line behind the last of the innermost TOML table on a path."""
    first, last, name = 0, len(lines), ""
    for (step, index), (_, following) in pairwise([*STEP.findall(path), ("", "")]):
        if step:
            name = f"{name}.{step}" if name else step
        if following:  # an array of tables: its index tells which
            continue
        if index == "...":
            break
        form = rf"\s*\[{re.escape(name)}[\].]" if step else rf"\s*\[\[{re.escape(name)}\]\]"
        heads = [n for n in range(first, last) if re.match(form, lines[n])]
        wanted = int(index or 0)
        if wanted < len(heads):
            first = heads[wanted]
            inner = rf"\s*\[+{re.escape(name)}\."
            others = (n for n in range(first + 1, last) if re.match(r"\s*\[", lines[n]))
            last = next((n for n in others if not re.match(inner, lines[n])), last)
    return first, last
