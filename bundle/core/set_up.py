"""The set-up of two bundles: facts by name, the recipe leaf by leaf, and what differs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from bundle.core.recipe import Recipe

_ABSENT = "not recorded"
#: A fact that one server said of itself, or that is of one model.
_SUBJECT = re.compile(r"(server [^:]+(?=: )|model [^ ]+(?= |$))")


class SetUp(Struct, frozen=True, kw_only=True):
    """One thing that was not the same on both sides."""

    what: str
    a: str
    b: str


def recipe_differences(a: Recipe, b: Recipe) -> tuple[SetUp, ...]:
    """Every key in which two recipes differ; two bundles are comparable only if none does."""
    return facts_apart(leaves(msgspec.to_builtins(a)), leaves(msgspec.to_builtins(b)))


def facts_apart(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[SetUp, ...]:
    """Facts that are not equal, in the order of ``a``, then what only ``b`` has.

    A server or a model that only one side used is one difference, however many facts it has.
    """
    a, b = _of_both(a, b)
    return tuple(
        SetUp(what=name, a=a.get(name, _ABSENT), b=b.get(name, _ABSENT))
        for name in dict.fromkeys([*a, *b])
        if a.get(name) != b.get(name)
    )


def _of_both(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Both sides, with one fact for each server and model that only one of them used."""
    used = [{subject for name in side if (subject := _subject(name))} for side in (a, b)]
    alone = sorted(used[0] ^ used[1])

    def shortened(side: Mapping[str, str], own: set[str]) -> dict[str, str]:
        kept = {name: value for name, value in side.items() if _subject(name) not in alone}
        return {**kept, **{name: "used" if name in own else "not used" for name in alone}}

    return shortened(a, used[0]), shortened(b, used[1])


def _subject(name: str) -> str:
    """The server or model that a fact is about; empty for every other fact."""
    found = _SUBJECT.match(name)
    return found[1] if found else ""


def leaves(value: Any, path: str = "") -> dict[str, str]:
    """Dotted path -> value of every leaf. Elements that have a name go by it."""
    if isinstance(value, dict) and value:
        pairs: Iterable[tuple[str, Any]] = value.items()
    elif isinstance(value, list | tuple) and value:
        pairs = ((_label(one, i), one) for i, one in enumerate(value))
    else:
        return {path: "none" if value is None else str(value)}
    return {
        name: leaf
        for key, one in pairs
        for name, leaf in leaves(one, f"{path}.{key}" if path else str(key)).items()
    }


def _label(value: Any, index: int) -> str:
    named = value.get("name") or value.get("task") if isinstance(value, dict) else None
    return str(named or index)
