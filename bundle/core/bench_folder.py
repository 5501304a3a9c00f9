"""Folders of ``vllm bench serve`` results as one report, one folder per side.

Files belong together when they measured the same workload under the same load: concurrency, rate,
number of prompts and total input tokens. Several such files of one side are repeats; their
geometric mean counts and their spread is reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from bundle.core.observed import Observation, ObservedAcceptance, ObservedArm, ObservedCell
from bundle.core.observed_names import METRIC
from bundle.errors import InputError

_SPEC = "spec_decode_"


class _Required(Struct):
    """What every result has."""

    num_prompts: int
    completed: int
    failed: int
    total_input_tokens: int
    total_output_tokens: int
    duration: float
    output_throughput: float
    max_concurrency: int | None = None
    request_rate: float | str | None = None
    spec_decode_num_drafts: int | None = None
    spec_decode_draft_tokens: int | None = None
    spec_decode_accepted_tokens: int | None = None


Load = tuple[int | None, float | None]
Raw = dict[str, Any]


def observation_of_folders(baseline: Mapping[str, str], method: Mapping[str, str]) -> Observation:
    """Pair two folders, given as file name to text.

    Raises:
        InputError: a file is no such result, a folder is empty, or nothing can be paired.
    """
    sides = [_read(baseline, "baseline"), _read(method, "method")]
    cells: list[ObservedCell] = []
    for load in sorted({*sides[0], *sides[1]}, key=str):
        cells += _cells(load, sides[0].get(load, {}), sides[1].get(load, {}))
    names = {
        str(raw.get("label")) for side in sides[1].values() for f in side.values() for raw in f
    }
    label = names.pop() if len(names) == 1 else "None"
    drafted = any(
        f"{_SPEC}num_drafts" in raw
        for side in sides[0].values()
        for f in side.values()
        for raw in f
    )
    return Observation(
        id="bench folders",
        reference="a speculative server: its results count drafts" if drafted else None,
        method=None if label == "None" else label,
        cells=tuple(cells),
    )


def _read(files: Mapping[str, str], side: str) -> dict[Load, dict[tuple[int, int], list[Raw]]]:
    """The results of one folder by load, then by prompts and input tokens."""
    found: dict[Load, dict[tuple[int, int], list[Raw]]] = {}
    for name, text in files.items():
        raw = _result(text, name)
        rate = raw.get("request_rate")
        load = (raw.get("max_concurrency"), None if rate in (None, "inf") else float(rate))
        work = (int(raw["num_prompts"]), int(raw["total_input_tokens"]))
        found.setdefault(load, {}).setdefault(work, []).append({**raw, "file": name})
    if not found:
        raise InputError(
            f"expected results of `vllm bench serve` for the {side}, found no JSON file",
            where=side,
            next_step="name the folder given to --result-dir",
        )
    return found


def _result(text: str, name: str) -> Raw:
    try:
        raw = msgspec.json.decode(text, type=dict[str, Any])
        msgspec.convert(raw, _Required)
    except msgspec.MsgspecError as error:
        raise InputError(
            f"expected a result of `vllm bench serve`, found something else: {error}",
            where=name,
            next_step="make it with --save-result",
        ) from None
    return raw


def _cells(
    load: Load,
    baseline: Mapping[tuple[int, int], list[Raw]],
    method: Mapping[tuple[int, int], list[Raw]],
) -> list[ObservedCell]:
    """Pair by workload; what is left over pairs only where one of each side is left."""
    shared = [work for work in baseline if work in method]
    left = ([w for w in baseline if w not in shared], [w for w in method if w not in shared])
    pairs = [(baseline[work], method[work]) for work in shared]
    if len(left[0]) == 1 and len(left[1]) == 1:
        pairs.append((baseline[left[0][0]], method[left[1][0]]))
    else:
        pairs += [(baseline[work], []) for work in left[0]]
        pairs += [([], method[work]) for work in left[1]]
    return [_cell(load, a, b) for a, b in pairs]


def _cell(load: Load, baseline: Sequence[Raw], method: Sequence[Raw]) -> ObservedCell:
    name = (*method, *baseline)[0]["file"]
    return ObservedCell(
        task=str(name).rsplit("/", 1)[-1].removesuffix(".json"),
        concurrency=load[0],
        request_rate=load[1],
        baseline=_arm(baseline),
        speculative=_arm(method),
        acceptance=_acceptance(method),
    )


def _arm(results: Sequence[Raw]) -> ObservedArm:
    """Counts of the first result; metrics as geometric means, with their spread if repeated.

    A run with failed or missing requests speaks for its side, whichever repeat it was.
    """
    if not results:
        return ObservedArm()
    worst = max(results, key=lambda r: (r["failed"], r["num_prompts"] - r["completed"]))
    metrics: dict[str, float] = {}
    for key in _metric_names(results):
        values = [float(r[key]) for r in results]
        if min(values) <= 0:
            continue
        logs = [math.log(v) for v in values]
        mean = math.fsum(logs) / len(logs)
        metrics[key] = math.exp(mean)
        if len(values) > 1:
            spread = math.sqrt(math.fsum((x - mean) ** 2 for x in logs) / (len(logs) - 1))
            metrics[f"{key}_sd"] = spread * metrics[key]
    return ObservedArm(
        metrics=metrics,
        duration_s=float(worst["duration"]),
        output_tokens=worst["total_output_tokens"],
        input_tokens=worst["total_input_tokens"],
        requests=worst["num_prompts"],
        completed=worst["completed"],
        failed=worst["failed"],
    )


def _metric_names(results: Sequence[Raw]) -> list[str]:
    """Metrics that every repeat has as a number."""
    return [
        key
        for key in results[0]
        if METRIC.match(key) and all(isinstance(r.get(key), int | float) for r in results)
    ]


def _acceptance(results: Sequence[Raw]) -> ObservedAcceptance:
    """Counts summed over the repeats; a server that never drafted writes none."""
    counts = [
        [r.get(f"{_SPEC}{key}") for r in results]
        for key in ("accepted_tokens", "draft_tokens", "num_drafts")
    ]
    if not results or any(None in values for values in counts):
        return ObservedAcceptance()
    accepted, drafted, rounds = (sum(v for v in values if v) for values in counts)
    positions = results[0].get(f"{_SPEC}per_position_acceptance_rates")
    return ObservedAcceptance(
        accepted=accepted,
        drafted=drafted,
        rounds=rounds,
        per_position=tuple(positions) if positions and len(results) == 1 else None,
    )
