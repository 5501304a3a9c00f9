"""The set-up of two bundles: facts by name, the recipe leaf by leaf, and what differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from bundle.core.recipe import Recipe

_ABSENT = "not recorded"


class SetUp(Struct, frozen=True, kw_only=True):
    """One thing that was not the same on both sides."""

    what: str
    a: str
    b: str


def recipe_differences(a: Recipe, b: Recipe) -> tuple[SetUp, ...]:
    """Every key in which two recipes differ; two bundles are comparable only if none does."""
    return facts_apart(leaves(msgspec.to_builtins(a)), leaves(msgspec.to_builtins(b)))


def facts_apart(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[SetUp, ...]:
    """Facts that are not equal, in the order of ``a``, then what only ``b`` has."""
    return tuple(
        SetUp(what=name, a=a.get(name, _ABSENT), b=b.get(name, _ABSENT))
        for name in dict.fromkeys([*a, *b])
        if a.get(name) != b.get(name)
    )


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
