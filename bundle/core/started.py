"""Whether a recorded start is one of the recipe: its argument vector, but for paths and the port.

A recipe that was changed after the measurement (another k, another flag) no longer gives the
vectors that the records hold, whoever made the manifests anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bundle.core.design import serve_vector
from bundle.core.recipe import Group, Recipe
from bundle.core.secret_patterns import STARS

_PLACE = "PLACE"
_CONFIG = "--speculative-config"


def vector_problem(recipe: Recipe, group: Group, argv: Sequence[str]) -> str | None:
    """How a recorded vector differs from the recipe's, or None where it does not.

    Args:
        recipe: the experiment.
        group: the group that the record names.
        argv: the recorded vector; what stands before ``serve`` is the machine's own.
    """
    models = dict.fromkeys(recipe.models, _PLACE)
    expected = _plain(serve_vector(recipe, group, port=0, models=models))
    found = _plain(argv[argv.index("serve") :] if "serve" in argv else argv)
    if len(expected) != len(found):
        extra = [w for w in found if w not in expected] or [w for w in expected if w not in found]
        return f"{len(found)} arguments instead of {len(expected)}: {' '.join(extra[:4])}"
    for wanted, word in zip(expected, found, strict=True):
        if wanted != word and STARS not in word:
            return f"{word!a} instead of {wanted!a}"
    return None


def _plain(argv: Sequence[str]) -> list[str]:
    """The vector with places, port and the key order of its JSON taken out."""
    words = list(argv)
    for index, word in enumerate(argv):
        before = argv[index - 1] if index else ""
        if before == "serve":
            words[index] = _PLACE
        elif before == "--port":
            words[index] = "0"
        elif before == _CONFIG:
            words[index] = _config(word)
    return words


def _config(text: str) -> str:
    try:
        document: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    if isinstance(document, dict) and "model" in document:
        document["model"] = _PLACE
    return msgspec.json.encode(document, order="sorted").decode()


def narrowing_problem(whole: Recipe, part: Recipe, groups: Mapping[str, Group]) -> str | None:
    """What of a resolved recipe is not the whole one narrowed, or None.

    Args:
        whole: the recipe as its TOML says.
        part: the recipe as it was run: fewer groups, tasks, loads or another number of rounds.
        groups: the whole recipe's groups by name, sweeps expanded.
    """
    for group in part.groups:
        same = msgspec.structs.replace(group, sweep=None)
        if group.name not in groups or groups[group.name] != same:
            return f"group {group.name} is not the recipe's"
    for name, mine, theirs in (
        ("workload", part.workloads, whole.workloads),
        ("load", part.loads, whole.loads),
    ):
        if [one for one in mine if one not in theirs]:
            return f"a {name} is not the recipe's"
    rest = msgspec.structs.replace(
        part,
        groups=whole.groups,
        workloads=whole.workloads,
        loads=whole.loads,
        design=msgspec.structs.replace(part.design, rounds=whole.design.rounds),
        quality=msgspec.structs.replace(part.quality, enabled=whole.quality.enabled),
    )
    for field in Recipe.__struct_fields__:
        if getattr(rest, field) != getattr(whole, field):
            return f"{field} is not the recipe's"
    return None
