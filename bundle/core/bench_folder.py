"""Folders of ``vllm bench serve`` results as one report, one folder per side.

Files belong together when they measured the same workload under the same load: concurrency, rate,
number of prompts and total input tokens. Several such files of one side are repeats where they made
the same number of output tokens to within 1 %; their geometric mean counts and their spread is
reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from bundle.core.findings.comparison import WORK_TOLERANCE
from bundle.core.observed import Observation, ObservedAcceptance, ObservedArm, ObservedCell
from bundle.core.observed_names import ALIASES, METRIC
from bundle.errors import InputError

_SPEC = "spec_decode_"


class _Required(Struct, frozen=True, kw_only=True):
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
Work = tuple[int, int]
Raw = dict[str, Any]
Repeats = list[Raw]


def observation_of_folders(baseline: Mapping[str, str], method: Mapping[str, str]) -> Observation:
    """Pair two folders, given as file name to text.

    Raises:
        InputError: a file is no such result, a folder is empty, or nothing can be paired.
    """
    sides = [_read(baseline, "baseline"), _read(method, "method")]
    cells: list[ObservedCell] = []
    for load in sorted({*sides[0], *sides[1]}, key=str):
        cells += _cells(load, sides[0].get(load, {}), sides[1].get(load, {}))
    files = [[f for works in side.values() for fs in works.values() for f in fs] for side in sides]
    names = {str(raw.get("label")) for raw in files[1]}
    label = names.pop() if len(names) == 1 else "None"
    drafted = any(f"{_SPEC}num_drafts" in raw for raw in files[0])
    return Observation(
        id="bench folders",
        reference="a speculative server: its results count drafts" if drafted else None,
        method=None if label == "None" else label,
        cells=tuple(cells),
    )


def _read(files: Mapping[str, str], side: str) -> dict[Load, dict[Work, list[Raw]]]:
    """The results of one folder by load, then by prompts and input tokens."""
    found: dict[Load, dict[Work, list[Raw]]] = {}
    for name, text in files.items():
        raw = _result(text, name)
        load = (raw.get("max_concurrency"), _rate(raw.get("request_rate"), name))
        work = (int(raw["num_prompts"]), int(raw["total_input_tokens"]))
        found.setdefault(load, {}).setdefault(work, []).append({**raw, "file": name})
    if not found:
        raise InputError(
            f"expected results of `vllm bench serve` for the {side}, found no JSON file",
            where=side,
            next_step="name the folder given to --result-dir",
        )
    return found


def _rate(value: float | str | None, name: str) -> float | None:
    """Requests per second; None where all requests were sent at once."""
    try:
        rate = math.inf if value is None else float(value)
    except ValueError:
        rate = math.nan
    if not rate > 0:
        raise InputError(f"expected requests per second or inf, found {value!r}", where=name)
    return None if math.isinf(rate) else rate


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
    load: Load, baseline: Mapping[Work, list[Raw]], method: Mapping[Work, list[Raw]]
) -> list[ObservedCell]:
    """Pair by workload and output; what is left over pairs only where one of each side is left."""
    pairs: list[tuple[Repeats, Repeats]] = []
    left: tuple[list[Repeats], list[Repeats]] = ([], [])
    for work in dict.fromkeys([*baseline, *method]):
        theirs, mine = _repeats(baseline.get(work, [])), _repeats(method.get(work, []))
        for one in tuple(mine):
            equal = next((r for r in theirs if _same_output(r[0], one[0])), None)
            if equal is not None:
                pairs.append((equal, one))
                theirs.remove(equal)
                mine.remove(one)
        if len(theirs) == len(mine) == 1:
            pairs.append((theirs.pop(), mine.pop()))
        left[0].extend(theirs)
        left[1].extend(mine)
    if len(left[0]) == 1 and len(left[1]) == 1:
        pairs.append((left[0][0], left[1][0]))
    else:
        pairs += [(one, []) for one in left[0]]
        pairs += [([], one) for one in left[1]]
    return [_cell(load, a, b) for a, b in pairs]


def _repeats(results: Sequence[Raw]) -> list[Repeats]:
    """Results of one workload, apart where they made different amounts of text."""
    found: list[Repeats] = []
    for raw in results:
        known = next((r for r in found if _same_output(r[0], raw)), None)
        if known is None:
            found.append([raw])
        else:
            known.append(raw)
    return found


def _same_output(a: Raw, b: Raw) -> bool:
    """Output tokens equal to within the tolerance, failed requests left out of the count."""
    per_request = [r["total_output_tokens"] / max(1, r["completed"]) for r in (a, b)]
    return bool(abs(per_request[0] - per_request[1]) <= WORK_TOLERANCE * max(per_request))


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

    A run with failed requests speaks for its side, whichever repeat it was.
    """
    if not results:
        return ObservedArm()
    worst = max(results, key=lambda r: r["failed"])
    metrics: dict[str, float] = {}
    for key in _metric_names(results):
        name = ALIASES.get(key, key)
        values = [float(r[key]) for r in results]
        if min(values) <= 0:
            continue
        logs = [math.log(v) for v in values]
        mean = math.fsum(logs) / len(logs)
        metrics[name] = math.exp(mean)
        if len(values) > 1:
            spread = math.sqrt(math.fsum((x - mean) ** 2 for x in logs) / (len(logs) - 1))
            metrics[f"{name}_sd"] = spread * metrics[name]
    return ObservedArm(
        metrics=metrics,
        duration_s=float(worst["duration"]),
        output_tokens=worst["total_output_tokens"],
        input_tokens=worst["total_input_tokens"],
        # The bench fails every request that it sent and that did not complete; it may send fewer
        # than `num_prompts`, where the data set is shorter and is not to be repeated.
        requests=worst["completed"] + worst["failed"],
        completed=worst["completed"],
        failed=worst["failed"],
    )


def _metric_names(results: Sequence[Raw]) -> list[str]:
    """Metrics that every repeat has as a number."""
    return [
        key
        for key in results[0]
        if METRIC.match(ALIASES.get(key, key))
        and all(isinstance(r.get(key), int | float) for r in results)
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
