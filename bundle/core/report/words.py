"""Labels, loads, groups and verdicts in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bundle.core.design import expanded_groups
from bundle.core.recipe import Group, Recipe
from bundle.core.report.numbers import setting
from bundle.core.report.parts import Tone
from bundle.core.report.text import counted, listed
from bundle.core.results import VerdictRow

_METHODS = {
    "ngram": "n-gram lookup",
    "ngram_gpu": "n-gram lookup on the GPU",
    "suffix": "suffix decoding",
    "draft_model": "draft model",
    "eagle": "EAGLE",
    "eagle3": "EAGLE-3",
    "mtp": "multi-token prediction",
}

VERDICT_TONES: dict[str, Tone] = {
    "SHIP": "good",
    "ABANDON": "bad",
    "INCONCLUSIVE": "unsure",
    "INVALID": "void",
}
VERDICT_ORDER = ("SHIP", "INCONCLUSIVE", "ABANDON", "INVALID")
_LABEL = re.compile(r"^([cr])(\d+(?:\.\d+)?)$")


def load_key(label: str) -> tuple[int, float, str]:
    """Sort key of a load: closed loops by clients, then rates, then anything else."""
    match = _LABEL.match(label)
    if match is None:
        return 2, 0.0, label
    return (0 if match[1] == "c" else 1), float(match[2]), label


def load_words(label: str) -> str:
    """``c8`` is ``8 concurrent requests``, ``r2.5`` is ``2.5 requests per second``."""
    match = _LABEL.match(label)
    if match is None:
        return label
    if match[1] == "r":
        return f"{match[2]} requests per second"
    return "1 request at a time" if match[2] == "1" else f"{match[2]} concurrent requests"


def load_short(label: str) -> str:
    """``c8`` is ``8 concurrent``, for narrow columns."""
    match = _LABEL.match(label)
    if match is None:
        return label
    if match[1] == "r":
        return f"{match[2]} per second"
    return "1 at a time" if match[2] == "1" else f"{match[2]} concurrent"


def is_rate(label: str) -> bool:
    """Whether a load is a request rate, where arrivals fix the throughput."""
    return load_key(label)[0] == 1


def range_words(labels: Iterable[str]) -> str:
    """Several loads in one phrase: ``1 to 8 concurrent requests and 2 requests per second``."""
    ordered = sorted(set(labels), key=load_key)
    clients = [x for x in ordered if load_key(x)[0] == 0]
    others = [load_words(x) for x in ordered if load_key(x)[0] != 0]
    if not clients:
        return listed(others)
    if len(clients) == 1:
        return listed([load_words(clients[0]), *others])
    numbers = listed([x.removeprefix("c") for x in clients])
    return listed([f"{numbers} concurrent requests", *others])


def describe(recipe: Recipe) -> dict[str, str]:
    """Every group's method and settings in a few words, by name."""
    return {group.name: _method(group) for group in expanded_groups(recipe)}


def _method(group: Group) -> str:
    if group.speculative is None:
        return "no speculation" if group.role == "baseline" else "no speculation, matched engine"
    spec = group.speculative
    parts = [_METHODS.get(spec.method, spec.method), f"k = {spec.num_speculative_tokens}"]
    if spec.prompt_lookup_max is not None:
        parts.append(f"window {spec.prompt_lookup_min or 1}-{spec.prompt_lookup_max}")
    if spec.rejection_sample_method in ("synthetic", "block"):
        parts.append(f"{spec.rejection_sample_method} acceptance")
    return ", ".join(parts)


def tasks_of(recipe: Recipe, named: Iterable[str] = ()) -> tuple[str, ...]:
    """Tasks in the recipe's order, then any further ones that the results name."""
    ordered = dict.fromkeys(work.task for work in recipe.workloads)
    return tuple(dict.fromkeys([*ordered, *named]))


def groups_of(recipe: Recipe, named: Iterable[str] = ()) -> tuple[str, ...]:
    """Groups in the recipe's order, then any further ones that the results name."""
    ordered = [group.name for group in expanded_groups(recipe)]
    return tuple(dict.fromkeys([*ordered, *named]))


def decision(row: VerdictRow, margin: float) -> str:
    """One verdict as a sentence a design review can act on."""
    makers = {"SHIP": _ship, "ABANDON": _abandon, "INVALID": _invalid}
    return makers.get(row.verdict, _inconclusive)(row, margin)


def _ship(row: VerdictRow, _: float) -> str:
    covered = row.ship_range or (row.load,)
    return f"Ship {row.group} for {row.task}: shown at {range_words(covered)}."


_KINDS = {
    "slower": "it is slower than the baseline",
    "no useful gain": "it brings no useful gain",
    "quality": "its answers are worse than the baseline's",
    "quality broken": "its answers are worse than the baseline's",
}


def _abandon(row: VerdictRow, margin: float) -> str:
    kind = (row.kind or "").strip()
    asked = setting(margin)
    why = (
        f"its gain is real but below the {asked} asked for"
        if kind == "small gain"
        else _KINDS.get(kind, kind)
    )
    head = f"Do not ship {row.group} for {row.task}"
    sentence = f"{head} at {load_words(row.load)}: {why}." if why else f"{head}."
    if row.gain_range:
        sentence += f" It does gain at {range_words(row.gain_range)}."
    return sentence


def _inconclusive(row: VerdictRow, _: float) -> str:
    head = f"Not decided for {row.group} on {row.task}"
    if row.further_blocks is not None:
        more = counted(row.further_blocks, "more block")
        return f"{head}: about {more} would settle it (a planning figure)."
    return f"{head}: {row.further_note or listed(row.reasons, 'no reason was recorded')}."


def _invalid(row: VerdictRow, _: float) -> str:
    why = listed(row.reasons, "no reason was recorded")
    return f"No verdict for {row.group} on {row.task}: the comparison does not hold ({why})."


def by_verdict(rows: Sequence[VerdictRow]) -> list[VerdictRow]:
    """Verdicts with those to ship first; the order among equals stays."""
    return sorted(rows, key=lambda row: VERDICT_ORDER.index(row.verdict))
