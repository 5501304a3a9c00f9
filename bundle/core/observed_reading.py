"""Reading a report: field names as people write them, to :mod:`bundle.core.observed`.

A field that is known has its type checked. A field that is not known is kept by name and shown,
never silently dropped. The key ``expected`` of test files is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from bundle.core.observed import (
    MOST,
    SCHEMA,
    Observation,
    ObservedAcceptance,
    ObservedCell,
)
from bundle.core.observed_names import (
    ALIASES,
    ARM_FIELDS,
    FACT_ALIASES,
    IN_SECONDS,
    METRIC,
    ON_OFF,
    OTHER_FACTS,
    SETTINGS,
    SWITCHES,
    WORDS,
)
from bundle.errors import InputError

_PER_CENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


def parse_observation(text: str, where: str) -> Observation:
    """Read one report.

    Raises:
        InputError: not JSON, another schema, or a known field of a wrong type; says where.
    """
    try:
        raw = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise _error(f"one JSON object, found something else: {error}", where) from None
    if raw.get("schema") != SCHEMA:
        raise _error(f'"schema": "{SCHEMA}", found {raw.get("schema")!r}', where)
    unread: list[str] = []
    try:
        return msgspec.convert(_normalised(raw, unread, where), Observation)
    except msgspec.ValidationError as error:
        raise _error(f"values as the schema has them, found: {error}", where) from None


def _error(message: str, where: str) -> InputError:
    return InputError(
        f"expected {message}", where=where, next_step=f"docs/judge.md has the fields of {SCHEMA}"
    )


def _normalised(raw: dict[str, Any], unread: list[str], where: str) -> dict[str, Any]:
    """The report in the shape of :class:`Observation`; nulls are absences."""
    facts: dict[str, Any] = {}
    for key, value in raw.items():
        name = FACT_ALIASES.get(key, key)
        if name in WORDS or value is None:
            continue
        if key in ("baseline_config", "speculative_config", "config"):
            _merge_config(facts, key, _mapping(value, key, where), unread, where)
        elif name in SETTINGS | OTHER_FACTS:
            facts[name] = [_fact(v, name, where) for v in _sides(value, name, where)]
        else:
            unread.append(key)
    launches = _launches(facts, where)
    cells = raw.get("cells") or []
    if not isinstance(cells, list):
        raise _error("a list of cells", f"{where}, cells")
    made = [_cell(c, f"{where}, cells[{i}]", unread) for i, c in enumerate(cells)]
    kept = ("id", "source", "method", "num_speculative_tokens", "reference")
    plain = {k: raw[k] for k in kept if raw.get(k) is not None}
    lines = raw.get("log_lines")
    return {
        "id": where,
        "log_lines": [] if lines is None else lines,
        **plain,
        "cells": made,
        "facts": facts,
        "kv_launches": launches,
        "unread": list(dict.fromkeys(unread)),
    }


def _merge_config(
    facts: dict[str, Any], key: str, value: dict[str, Any], unread: list[str], where: str
) -> None:
    """Settings given as an object per side, or as one object with both."""
    if key == "config":
        for side in ("baseline", "speculative"):
            if side in value:
                inner = _mapping(value[side], f"config.{side}", where)
                _merge_config(facts, f"{side}_config", inner, unread, where)
        rest = {k: v for k, v in value.items() if k not in ("baseline", "speculative")}
        for name in ("baseline_config", "speculative_config") if rest else ():
            _merge_config(facts, name, rest, unread, where)
        return
    if key == "speculative_config" and value.keys() & {"method", "num_speculative_tokens"}:
        # The engine's own speculative settings: they speak of the helper, not of the server.
        value = {k: v for k, v in value.items() if k == "rejection_sample_method"}
    at = 0 if key == "baseline_config" else 1
    for name, setting in value.items():
        known = FACT_ALIASES.get(name.replace("-", "_"), name.replace("-", "_"))
        if known not in SETTINGS | OTHER_FACTS:
            unread.append(f"{key}.{name}")
            continue
        pair = list(facts.get(known, (None, None)))
        pair[at] = _fact(setting, known, where)
        facts[known] = pair


def _sides(value: object, name: str, where: str) -> list[object]:
    """A fact of both sides alike, or of each."""
    if not isinstance(value, dict):
        return [value, value]
    extra = sorted(set(value) - {"baseline", "speculative"})
    if extra:
        raise _error(f"baseline and speculative in `{name}`, found {extra[0]}", where)
    # A side that is named and has no quantisation is a side without one.
    none = dict.fromkeys(value, "none") if name == "target_quantization" else {}
    return [
        none.get(side) if value.get(side) is None else value[side]
        for side in ("baseline", "speculative")
    ]


def _launches(facts: dict[str, Any], where: str) -> list[list[Any]]:
    """KV capacities of repeated launches; the mean of each side stands in the facts."""
    sides = facts.get("kv_cache_tokens", [None, None])
    found = [side if isinstance(side, list) else [] for side in sides]
    for at, tokens in enumerate(found):
        if not all(isinstance(n, int) for n in tokens):
            raise _error("whole numbers of tokens in `kv_cache_tokens`", where)
        if tokens:
            sides[at] = sum(tokens) / len(tokens)
    return found


def _fact(value: object, name: str, where: str) -> object:
    if name in SWITCHES:
        return _switch(value, name, where)
    return _throttled(value) if name == "throttled" else value


def _throttled(value: object) -> object:
    """Throttle reasons as one text, empty where the report says that there were none."""
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    if isinstance(value, bool):
        return "reported" if value else ""
    none = isinstance(value, str) and value.strip().lower() in ("", "none", "no", "false")
    return "" if none else value


def _switch(value: object, name: str, where: str) -> object:
    """A switch as true or false; words are read, anything else is refused."""
    word = ON_OFF.get(value.strip().lower()) if isinstance(value, str) else value
    if (word is None) != (value is None) or not isinstance(word, bool | None):
        raise _error(f"true or false for `{name}`, found {value!r}", where)
    return word


def _mapping(value: object, name: str, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _error(f"an object for `{name}`, found {type(value).__name__}", where)
    return value


def _cell(value: object, where: str, unread: list[str]) -> dict[str, Any]:
    raw = _mapping(value, "a cell", where)
    cell: dict[str, Any] = {}
    for key, inner in raw.items():
        if inner is None:
            continue
        if key in ("baseline", "speculative"):
            cell[key] = _arm(_mapping(inner, key, where), unread, where)
        elif key == "acceptance":
            stated = {k: _share(v) for k, v in _mapping(inner, key, where).items()}
            cell[key] = _known(stated, ObservedAcceptance, unread)
        elif key == "request_rate" and str(inner).lower() in ("inf", "infinity"):
            continue
        elif key in ObservedCell.__struct_fields__:
            cell[key] = inner
        else:
            unread.append(f"cells.{key}")
    return cell


def _share(value: object) -> object:
    """``"0.9 %"`` as the share that it is; everything else as it stands."""
    if isinstance(value, list):
        return [_share(v) for v in value]
    found = _PER_CENT.fullmatch(value) if isinstance(value, str) else None
    return value if found is None else float(found[1]) / 100


def _arm(raw: Mapping[str, Any], unread: list[str], where: str) -> dict[str, Any]:
    arm: dict[str, Any] = {"metrics": {}, "facts": {}}
    for key, value in raw.items():
        if value is None:
            continue
        name = ALIASES.get(key, key)
        name = re.sub(r"^p50_", "median_", name)
        if IN_SECONDS.match(name) and isinstance(value, int | float):
            name, value = f"{name[:-1]}ms", value * 1000
        fact = FACT_ALIASES.get(key, key)
        if METRIC.match(name):
            arm["metrics"][name] = _amount(value, key, where)
        elif name in ARM_FIELDS:
            arm[name] = value
        elif fact in SETTINGS | OTHER_FACTS:
            arm["facts"][fact] = _fact(value, fact, where)
        else:
            unread.append(f"cells.*.{key}")
    return arm


def _amount(value: object, name: str, where: str) -> object:
    """A figure of its metric; the reader of the whole cannot name it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
        raise _error(f"a number from 0 to {MOST:g} for `{name}`, found {value!r}", where)
    return value


def _known(raw: Mapping[str, Any], kind: type[Struct], unread: list[str]) -> dict[str, Any]:
    unread += [f"cells.acceptance.{k}" for k in raw if k not in kind.__struct_fields__]
    return {k: v for k, v in raw.items() if k in kind.__struct_fields__ and v is not None}
