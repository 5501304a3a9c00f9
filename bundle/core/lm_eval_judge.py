"""lm-evaluation-harness on a method's server against the baseline's, item by item.

The rule is that of the quality pass (:mod:`bundle.core.paired`): items of all tasks are compared
together, so that many tasks are one test. What was not evaluated, or cannot be paired, is not
measured, and that is never a pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bundle.core.design import baseline
from bundle.core.evidence import Evidence, Start
from bundle.core.lm_eval_output import LmEvalOutput, Sample
from bundle.core.lm_eval_results import LmEvalGroup, LmEvalRow, LmEvalState
from bundle.core.lm_eval_tasks import PASSED_OR_FAILED
from bundle.core.paired import ItemScores, compare
from bundle.core.records import LmEvalScore
from bundle.core.results import QualityRow

_WORST_FIRST: tuple[LmEvalState, ...] = ("BROKEN", "NOT MEASURED", "NOT SHOWN", "SHOWN")


class _Sides(Struct, frozen=True, kw_only=True):
    """What both sides were given: the method once, the baseline first and last."""

    mine: LmEvalOutput
    base: tuple[LmEvalOutput, ...]


def judge_lm_eval(evidence: Evidence, group: str) -> LmEvalGroup | None:
    """Judge one method; None where the recipe asks for no evaluation."""
    if evidence.recipe.quality.lm_eval is None:
        return None
    name = baseline(evidence.recipe).name
    sides = {one: _evaluated(evidence.of(one)) for one in (name, group)}
    for one, outputs in sides.items():
        if not outputs:
            reason = f"no evaluation of {one}: {_why_not(evidence.of(one))}"
            return LmEvalGroup(group=group, state="NOT MEASURED", reason=reason)
    found = _Sides(mine=sides[group][0], base=sides[name])
    paired = [(score, _paired(found, score)) for score in found.mine.scores]
    state, reason = _state(evidence.recipe.quality.lm_eval.tasks, paired)
    return LmEvalGroup(
        group=group,
        state=state,
        reason=reason,
        version=found.mine.version,
        rows=tuple(_row(found, score, items) for score, items in paired),
    )


def with_lm_eval(row: QualityRow, found: LmEvalGroup | None) -> QualityRow:
    """The quality of a group with its evaluation: the worse of the two counts."""
    if found is None:
        return row
    state = min(row.state, found.state, key=_WORST_FIRST.index)
    said = f"{row.reason}; " if row.reason else ""
    return replace(row, state=state, reason=f"{said}lm-eval {found.state}: {found.reason}")


def _evaluated(starts: Sequence[Start]) -> tuple[LmEvalOutput, ...]:
    return tuple(s.lm_eval for s in starts if s.lm_eval is not None)


def _why_not(starts: Sequence[Start]) -> str:
    reasons = [s.run.lm_eval.reason for s in starts if s.run.lm_eval and s.run.lm_eval.reason]
    return reasons[0] if reasons else "it was not run"


def _paired(sides: _Sides, score: LmEvalScore) -> tuple[ItemScores, ...] | str:
    """The items of one number by side, or why they cannot be paired."""
    if score.metric not in PASSED_OR_FAILED:
        return f"{score.metric} does not pass or fail an item"
    mine, *base = (_samples(output, score) for output in (sides.mine, *sides.base))
    if any(_asked(one) != _asked(mine) for one in base):
        return "the items asked differ from the baseline's"
    values = {s.scores.get(score.metric) for one in (mine, *base) for s in one.values()}
    if not values <= {0.0, 1.0}:
        return "an item has no score of 0 or 1"
    return tuple(
        ItemScores(
            item=f"{score.task} {doc}",
            # One baseline alone stands for both: how it wavers is not known then.
            first=(_passed(base[0][doc], score),),
            last=(_passed(base[-1][doc], score),),
            method=(_passed(sample, score),),
            same_output=any(sample.answer == one[doc].answer for one in base),
        )
        for doc, sample in mine.items()
    )


def _samples(output: LmEvalOutput, score: LmEvalScore) -> dict[int, Sample]:
    wanted = (score.task, score.filter)
    return {s.doc_id: s for s in output.samples if (s.task, s.filter) == wanted}


def _asked(samples: Mapping[int, Sample]) -> dict[int, tuple[str, str, str]]:
    return {doc: sample.asked for doc, sample in samples.items()}


def _passed(sample: Sample, score: LmEvalScore) -> bool:
    return (sample.scores[score.metric] == 1.0) is score.higher_is_better


def _state(
    tasks: Sequence[str],
    paired: Sequence[tuple[LmEvalScore, tuple[ItemScores, ...] | str]],
) -> tuple[LmEvalState, str]:
    """The state over all tasks; a task without paired items leaves it not measured."""
    items: list[ItemScores] = []
    missing: list[str] = []
    for task in tasks:
        of = [found for score, found in paired if score.task == task]
        first = next((found for found in of if not isinstance(found, str)), None)
        if first is None:
            missing.append(f"{task}: {of[0] if of else 'no score'}")
        items += first or ()
    quality = compare(items)
    reasons = "; ".join((*missing, *quality.reasons))
    if quality.state == "OFF" or (missing and quality.state != "BROKEN"):
        return "NOT MEASURED", reasons
    return quality.state, reasons


def _row(sides: _Sides, score: LmEvalScore, items: tuple[ItemScores, ...] | str) -> LmEvalRow:
    row = LmEvalRow(
        task=score.task,
        metric=score.metric,
        filter=score.filter,
        items=score.items,
        value=score.value,
        stderr=score.stderr,
        baseline=_baseline(sides, score),
    )
    if isinstance(items, str):
        return replace(row, reason=items)
    quality = compare(items)
    return replace(
        row,
        compared=quality.items,
        excluded=quality.excluded,
        won=quality.wins,
        lost=quality.losses,
        p_value=quality.p if quality.items else None,
    )


def _baseline(sides: _Sides, score: LmEvalScore) -> float | None:
    """The mean of the baseline's values of the same number."""
    key = (score.task, score.metric, score.filter)
    found = [s.value for o in sides.base for s in o.scores if (s.task, s.metric, s.filter) == key]
    return sum(found) / len(found) if found else None
