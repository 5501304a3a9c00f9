"""What lm-evaluation-harness wrote for one server: its results file and its logged samples.

Both are kept as they were written; every number of the report comes from them again. A value that
is a mean must be the mean of its samples, or the two files do not belong together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from bundle.core.jsonl import load_json, parse_rows
from bundle.core.lm_eval_tasks import PASSED_OR_FAILED
from bundle.core.records import LmEvalScore
from bundle.errors import InputError

_STDERR = "_stderr"
_TOLERANCE = 1e-9


class Sample(Struct, frozen=True, kw_only=True):
    """One scored item: what was asked (as hashes), what came back, the score by metric.

    ``filter`` is the harness's name for how the answer was taken out of the reply.
    """

    task: str
    filter: str
    doc_id: int
    asked: tuple[str, str, str]
    answer: str
    scores: dict[str, float]


class LmEvalOutput(Struct, frozen=True, kw_only=True):
    """Scores of every task, and the samples behind them; ``version`` is the harness's."""

    scores: tuple[LmEvalScore, ...]
    samples: tuple[Sample, ...] = ()
    version: str = ""


class _Count(Struct, frozen=True, kw_only=True):
    effective: int


class _Results(Struct, frozen=True, kw_only=True):
    """The parts of a results file that are read."""

    results: dict[str, dict[str, Any]]
    counts: dict[str, _Count] = field(name="n-samples")
    better: dict[str, dict[str, bool | None]] = field(name="higher_is_better", default_factory=dict)
    lm_eval_version: str = ""


class _Row(Struct, frozen=True, kw_only=True):
    """The fixed part of a logged sample; the scores stand beside it under their metrics' names."""

    doc_id: int
    doc_hash: str
    prompt_hash: str
    target_hash: str
    filter: str
    filtered_resps: list[Any]
    metrics: tuple[str, ...]


def parse_results(text: str, where: str, tasks: Sequence[str]) -> LmEvalOutput:
    """The scores of a results file, task by task in the recipe's order.

    Raises:
        InputError: it is no such file, or lacks a task or its number of items.
    """
    try:
        raw = msgspec.convert(load_json(text), _Results)
    except ValueError as error:
        raise InputError(
            f"expected results of lm_eval, found something else: {error}", where=where
        ) from None
    missing = [task for task in tasks if task not in raw.results or task not in raw.counts]
    if missing:
        raise InputError(f"expected results of every task, found none of {missing[0]}", where=where)
    scores = tuple(score for task in tasks for score in _scores(raw, task))
    return LmEvalOutput(scores=scores, version=raw.lm_eval_version)


def _scores(raw: _Results, task: str) -> Iterator[LmEvalScore]:
    found = raw.results[task]
    for key, value in found.items():
        metric, comma, chosen = key.partition(",")
        given = _number(value)
        if not comma or metric.endswith(_STDERR) or given is None:
            continue
        better = raw.better.get(task, {}).get(metric)
        yield LmEvalScore(
            task=task,
            metric=metric,
            filter=chosen,
            value=given,
            stderr=_number(found.get(f"{metric}{_STDERR},{chosen}")),
            items=raw.counts[task].effective,
            higher_is_better=better is not False,
        )


def parse_samples(text: str, where: str, task: str) -> tuple[Sample, ...]:
    """The logged samples of one task.

    Raises:
        InputError: a line is no such sample.
    """
    fixed = parse_rows(text, where, _Row)
    lines = text.removesuffix("\n").split("\n")
    return tuple(
        Sample(
            task=task,
            filter=row.filter,
            doc_id=row.doc_id,
            asked=(row.doc_hash, row.prompt_hash, row.target_hash),
            answer=json.dumps(row.filtered_resps, ensure_ascii=False),
            scores=_numbers(json.loads(line), row.metrics),
        )
        for row, line in zip(fixed, lines, strict=True)
    )


def _numbers(row: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, float]:
    """The scores that are single numbers; a perplexity's are pairs."""
    found = {name: _number(row.get(name)) for name in metrics}
    return {name: value for name, value in found.items() if value is not None}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def check_output(output: LmEvalOutput, where: str) -> None:
    """Hold the results against the samples: as many as they say, and the mean that they give.

    Raises:
        InputError: they do not belong together.
    """
    for score in output.scores:
        of = [s for s in output.samples if (s.task, s.filter) == (score.task, score.filter)]
        name = f"{score.task} {score.metric} ({score.filter})"
        if len(of) != score.items or len({s.doc_id for s in of}) != score.items:
            raise InputError(
                f"expected {score.items} samples of {name}, found {len(of)}", where=where
            )
        values = [s.scores[score.metric] for s in of if score.metric in s.scores]
        mean = sum(values) / len(values) if values and score.metric in PASSED_OR_FAILED else None
        if mean is not None and not math.isclose(score.value, mean, abs_tol=_TOLERANCE):
            raise InputError(
                f"expected {name} to be the mean of its samples, {mean:.6g}, found "
                f"{score.value:.6g}",
                where=where,
            )
