"""Quality and outputs of a group against its baseline, out of replies and their checks.

One score per item, the majority over starts; items on which the baselines disagree among
themselves are excluded (:mod:`bundle.core.paired` has the tests).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bundle.core.design import baseline
from bundle.core.divergences import WIDE_GAP, is_wide
from bundle.core.evidence import Evidence, Gap, Start
from bundle.core.findings.subject import QualityFacts
from bundle.core.lm_eval_judge import judge_lm_eval, with_lm_eval
from bundle.core.lm_eval_results import LmEvalGroup
from bundle.core.outputs import EARLY_TOKENS, Outputs, compare_outputs, replies_by_item
from bundle.core.paired import ItemScores, Quality, compare, majority, sign_test
from bundle.core.records import Reply
from bundle.core.results import Divergence, QualityRow

WIDE_GAPS_ALLOWED = 1
SHOWN_DIVERGENCES = 8
_EARLY_P = 0.05

Output = tuple[int, ...] | str


class GroupQuality(Struct, frozen=True, kw_only=True):
    """The row for the report, and the facts for the rules; the evaluation is part of both."""

    row: QualityRow
    facts: QualityFacts
    lm_eval: LmEvalGroup | None = None


def judge_quality(evidence: Evidence, group: str) -> GroupQuality:
    """Compare one group with the baseline over all starts that carried a quality pass."""
    base = [s for s in evidence.of(baseline(evidence.recipe).name) if s.replies]
    mine = [s for s in evidence.of(group) if s.replies]
    lm_eval = judge_lm_eval(evidence, group)
    if not base or not mine:
        side = "the baseline" if not base else group
        return _unmeasured(group, f"no quality pass of {side}", mine, lm_eval)
    outputs = compare_outputs(base, mine)
    scores = _scores(evidence, base, mine)
    gaps = evidence.gaps.get(group, {})
    quality = compare(
        scores,
        broken_replies=_broken_replies(base, mine),
        doubts=(*_doubts(outputs, gaps), *_lost(mine)),
    )
    row = _row(group, quality, outputs, scores, _kinds(mine), mine)
    row = replace(row, first_divergences=_with_gaps(row.first_divergences, gaps))
    row = with_lm_eval(row, lm_eval)
    return GroupQuality(row=row, facts=_facts(row, outputs, mine, gaps), lm_eval=lm_eval)


def _unmeasured(
    group: str, reason: str, mine: Sequence[Start], lm_eval: LmEvalGroup | None
) -> GroupQuality:
    row = QualityRow(
        group=group,
        state="NOT MEASURED",
        reason=reason,
        items=0,
        excluded=0,
        wins=0,
        losses=0,
        p_value=None,
        by_kind={},
        identical_outputs=None,
        compared_outputs=None,
        aa_identical=None,
        aa_compared=None,
        finish_reasons=_finish_reasons(mine),
    )
    row = with_lm_eval(row, lm_eval)
    facts = QualityFacts(state=row.state, reason=row.reason)
    return GroupQuality(row=row, facts=facts, lm_eval=lm_eval)


def _scores(evidence: Evidence, base: Sequence[Start], mine: Sequence[Start]) -> list[ItemScores]:
    """Passes of every checked item by first baselines, last baselines and the method."""
    items = sorted({i for s in (*base, *mine) for i in evidence.checks.get(s.folder, {})})
    leading = [s for s in base if s.run.position == 0]
    trailing = [s for s in base if s.run.position != 0]
    return [
        ItemScores(
            item=item,
            first=_passes(evidence, leading, item),
            last=_passes(evidence, trailing, item),
            method=_passes(evidence, mine, item),
            same_output=_same_output(base, mine, item),
        )
        for item in items
    ]


def _passes(evidence: Evidence, starts: Sequence[Start], item: str) -> tuple[bool, ...]:
    found = (evidence.checks.get(s.folder, {}).get(item) for s in starts)
    return tuple(passed for passed in found if passed is not None)


def _same_output(base: Sequence[Start], mine: Sequence[Start], item: str) -> bool:
    """Every output of the method is one that the baseline wrote as well."""
    theirs = {_output(r) for s in base if (r := replies_by_item(s.replies).get(item))}
    own = {_output(r) for s in mine if (r := replies_by_item(s.replies).get(item))}
    return bool(own) and own <= theirs


def _output(reply: Reply) -> Output:
    return reply.text if reply.token_ids is None else reply.token_ids


def _broken_replies(base: Sequence[Start], mine: Sequence[Start]) -> int:
    """Items of the method with an empty or one-token reply where the baseline has none.

    A baseline that itself answers with one token somewhere makes short replies of the method
    unsuspicious; an empty reply stays one wherever the baseline says something.
    """
    theirs, own = _items(base, _is_broken), _items(mine, _is_broken)
    return len(own if not theirs else _items(mine, _is_empty) - theirs)


def _items(starts: Sequence[Start], such: Callable[[Reply], bool]) -> set[str]:
    return {i for s in starts for i, r in replies_by_item(s.replies).items() if such(r)}


def _is_broken(reply: Reply) -> bool:
    return reply.completion_tokens <= 1 or _is_empty(reply)


def _is_empty(reply: Reply) -> bool:
    return not reply.text.strip()


def _doubts(outputs: Outputs, gaps: Mapping[str, Gap]) -> tuple[str, ...]:
    """What keeps quality from being shown although the scores would allow it."""
    doubts = []
    wide = [gap for gap in gaps.values() if is_wide(gap)]
    if len(wide) > WIDE_GAPS_ALLOWED:
        doubts.append(
            f"{len(wide)} of {len(gaps)} first divergences are no near ties: more than "
            f"{WIDE_GAP:g} nat between the baseline's two best tokens, or another token than these"
        )
    if sign_test(outputs.early, outputs.aa_early) <= _EARLY_P:
        doubts.append(
            f"{outputs.early} outputs leave the baseline in their first {EARLY_TOKENS} tokens, "
            f"{outputs.aa_early} between the baselines"
        )
    return tuple(doubts)


def _lost(mine: Sequence[Start]) -> tuple[str, ...]:
    """Requests of the method that brought no reply: their items have no score to lose."""
    failed = sum(len(s.replies) - len(replies_by_item(s.replies)) for s in mine)
    return (f"{failed} requests of the quality pass failed",) if failed else ()


def _with_gaps(
    divergences: Sequence[Divergence], gaps: Mapping[str, Gap]
) -> tuple[Divergence, ...]:
    """The divergences with what the baseline said of the same place when it was asked again."""
    return tuple(
        replace(d, gap=gap.nats, ranked=gap.ranked)
        if (gap := gaps.get(d.item)) is not None and gap.position == d.position
        else d
        for d in divergences
    )


def _kinds(starts: Sequence[Start]) -> dict[str, str]:
    return {r.item: r.kind for s in starts for r in s.replies}


def _row(
    group: str,
    quality: Quality,
    outputs: Outputs,
    scores: Sequence[ItemScores],
    kinds: Mapping[str, str],
    mine: Sequence[Start],
) -> QualityRow:
    return QualityRow(
        group=group,
        state="NOT MEASURED" if quality.state == "OFF" else quality.state,
        reason="; ".join(quality.reasons),
        items=quality.items,
        excluded=quality.excluded,
        wins=quality.wins,
        losses=quality.losses,
        p_value=quality.p if quality.items else None,
        by_kind=_by_kind(scores, kinds),
        identical_outputs=outputs.identical if outputs.compared else None,
        compared_outputs=outputs.compared or None,
        aa_identical=outputs.aa_identical if outputs.aa_compared else None,
        aa_compared=outputs.aa_compared or None,
        finish_reasons=_finish_reasons(mine),
        first_divergences=outputs.divergences[:SHOWN_DIVERGENCES],
    )


def _by_kind(
    scores: Sequence[ItemScores], kinds: Mapping[str, str]
) -> dict[str, tuple[int, int, int]]:
    """Items passed by the baseline and by the method, by kind, where both have a score."""
    counts: dict[str, tuple[int, int, int]] = {}
    for score in scores:
        base, method = majority((*score.first, *score.last)), majority(score.method)
        if base is None or method is None:
            continue
        kind = kinds.get(score.item, "other")
        a, b, n = counts.get(kind, (0, 0, 0))
        counts[kind] = (a + base, b + method, n + 1)
    return counts


def _finish_reasons(starts: Sequence[Start]) -> dict[str, int]:
    replies = (r for s in starts for r in s.replies)
    return dict(sorted(Counter(r.finish_reason or "error" for r in replies).items()))


def _facts(
    row: QualityRow, outputs: Outputs, mine: Sequence[Start], gaps: Mapping[str, Gap]
) -> QualityFacts:
    first = outputs.divergences[0].position if outputs.divergences else None
    against_itself = outputs.items > 0
    return QualityFacts(
        state=row.state,
        reason=row.reason,
        diverged=outputs.diverged if against_itself else outputs.compared - outputs.identical,
        comparable=outputs.items or outputs.compared,
        aa_diverged=outputs.wavering if against_itself else None,
        aa_comparable=outputs.items,
        outputs_p=outputs.p,
        first_divergence=first,
        divergences=len(outputs.divergences),
        asked=len(gaps),
        wide=sum(is_wide(gap) for gap in gaps.values()),
        truncated=row.finish_reasons.get("length", 0),
        replies=sum(len(s.replies) for s in mine),
    )


def normal_lengths(
    base: Sequence[Start], mine: Sequence[Start], task: str
) -> tuple[float | None, float | None]:
    """Mean output length over the items of a task that end by themselves on both sides."""
    sides = [_lengths(starts, task) for starts in (base, mine)]
    shared = sorted(sides[0].keys() & sides[1].keys())
    if not shared:
        return None, None
    means = [sum(side[item] for item in shared) / len(shared) for side in sides]
    return means[0], means[1]


def _lengths(starts: Sequence[Start], task: str) -> dict[str, float]:
    found: dict[str, list[int]] = {}
    for start in starts:
        for reply in start.replies:
            if reply.task == task and reply.finish_reason == "stop":
                found.setdefault(reply.item, []).append(reply.completion_tokens)
    return {item: sum(values) / len(values) for item, values in found.items()}
