"""Argument vectors compared: what all groups share and what each adds."""

from __future__ import annotations

from collections.abc import Mapping

# They differ between any two starts and say nothing about the comparison.
_NOISE = frozenset({"--port"})


def parse(argv: tuple[str, ...]) -> dict[str, str]:
    """Flags of a vector: ``--name value`` and bare ``--name``; words before them are positional.

    A repeated flag keeps all its values, in order.
    """
    found: dict[str, str] = {}
    name = "(command)"
    for word in argv:
        if word.startswith("--") and len(word) > 2:
            name, _, value = word.partition("=")
            found[name] = f"{found[name]} {value}".strip() if name in found else value
        else:
            found[name] = f"{found.get(name, '')} {word}".strip()
    return {key: value for key, value in found.items() if key not in _NOISE}


def split(
    vectors: Mapping[str, Mapping[str, str]],
) -> tuple[dict[str, str], dict[str, dict[str, str | None]]]:
    """Flags that every group has with the same value, and the rest by flag and group.

    Returns:
        The shared flags; and for each differing flag its value by group, None where it is absent.
    """
    names = dict.fromkeys(name for flags in vectors.values() for name in flags)
    shared: dict[str, str] = {}
    differing: dict[str, dict[str, str | None]] = {}
    for name in names:
        values = {group: flags.get(name) for group, flags in vectors.items()}
        distinct = set(values.values())
        first = next(iter(values.values()))
        if len(distinct) == 1 and first is not None:
            shared[name] = first
        else:
            differing[name] = values
    return shared, differing
