"""lm-evaluation-harness against the baseline, item by item; what did not run is never a pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from bundle.core.decide import Decided, decide
from bundle.core.evidence import Evidence, Start
from bundle.core.judging import judge
from bundle.core.lm_eval_judge import judge_lm_eval, with_lm_eval
from bundle.core.lm_eval_output import LmEvalOutput, Sample
from bundle.core.lm_eval_results import LmEvalGroup
from bundle.core.quality import judge_quality
from bundle.core.records import LmEvalRun, LmEvalScore
from tests.builders import NGRAM, World, evidence, only, with_quality
from tests.core.test_lm_eval_args import SPEC

ITEMS = 130
ONE = replace(SPEC, tasks=("t",))


def output(
    failed: set[int] = frozenset(),  # type: ignore[assignment]
    *,
    task: str = "t",
    metric: str = "exact_match",
    items: int = ITEMS,
    **changes: object,
) -> LmEvalOutput:
    """One metric of one task; the items numbered ``failed`` score 0."""
    samples = tuple(
        Sample(
            task=task,
            filter="none",
            doc_id=i,
            asked=(f"doc {i}", f"prompt {i}", f"target {i}"),
            answer=f"{i} {i in failed}",
            scores={metric: 0.0 if i in failed else 1.0},
        )
        for i in range(items)
    )
    score = LmEvalScore(
        task=task,
        metric=metric,
        filter="none",
        value=1 - len(failed) / items,
        stderr=0.01,
        items=items,
    )
    made = LmEvalOutput(scores=(score,), samples=samples, version="0.4.13")
    return replace(made, **changes)


def both(first: LmEvalOutput, second: LmEvalOutput) -> LmEvalOutput:
    return replace(
        first,
        scores=first.scores + second.scores,
        samples=first.samples + second.samples,
    )


def evaluated(
    mine: LmEvalOutput | None = None,
    base: Callable[[int], LmEvalOutput | None] = lambda _: output(),
    spec: object = ONE,
) -> Evidence:
    """Block 1 of a recipe with one method, every start of it evaluated; quality is shown."""
    made = only(NGRAM)
    made = replace(made, quality=replace(made.quality, lm_eval=spec))

    def with_output(start: Start) -> Start:
        run = start.run
        if run.block != 1:
            return start
        found = (mine or output()) if run.group == "ngram" else base(run.position)
        said = LmEvalRun(status="ok" if found else "failed", reason=None if found else "it died")
        return replace(start, lm_eval=found, run=replace(run, lm_eval=said))

    given = with_quality(evidence(made, World(speed={"ngram": 1.5})))
    return replace(given, starts=tuple(with_output(s) for s in given.starts))


def judged(given: Evidence) -> LmEvalGroup:
    found = judge_lm_eval(given, "ngram")
    assert found is not None
    return found


def test_a_recipe_without_it_has_no_word_on_it() -> None:
    given = evaluated(spec=None)
    assert judge_lm_eval(given, "ngram") is None
    assert judge(given).lm_eval == ()
    row = judge_quality(given, "ngram").row
    assert with_lm_eval(row, None) is row
    assert row.state == "SHOWN"


def test_the_same_answers_are_shown() -> None:
    found = judged(evaluated())
    assert (found.state, found.version) == ("SHOWN", "0.4.13")
    (row,) = found.rows
    assert (row.task, row.metric, row.value, row.baseline) == ("t", "exact_match", 1.0, 1.0)
    assert (row.compared, row.excluded, row.won, row.lost) == (ITEMS, 0, 0, 0)
    assert row.p_value == 1.0
    assert "0 of 130 items lost" in found.reason


def test_items_lost_break_quality_and_that_abandons() -> None:
    given = evaluated(output(set(range(20))))
    found = judged(given)
    assert found.state == "BROKEN"
    assert found.rows[0].lost == 20
    assert found.rows[0].value == pytest.approx(110 / 130)
    results = judge(given)
    assert results.lm_eval == (found,)
    assert results.quality[0].state == "BROKEN"
    assert "lm-eval BROKEN: 20 of 130 items lost" in results.quality[0].reason
    assert {v.verdict for v in results.verdicts} == {"ABANDON"}
    regression = [f for f in results.findings if f.id == "quality-regression"]
    assert {f.state for f in regression} == {"TRIGGERED"}
    assert "lm-eval" in results.verdicts[0].checks_run


def test_a_metric_where_less_is_better_turns_pass_and_fail_round() -> None:
    def less(failed: set[int]) -> LmEvalOutput:
        made = output(failed)
        return replace(made, scores=(replace(made.scores[0], higher_is_better=False),))

    assert judged(evaluated(less(set(range(20))), lambda _: less(set()))).rows[0].won == 20


def test_what_the_baseline_itself_wavers_on_is_excluded() -> None:
    wavering = set(range(10))
    given = evaluated(output(wavering), lambda at: output(wavering if at else set()))
    found = judged(given)
    assert found.state == "SHOWN"
    assert (found.rows[0].excluded, found.rows[0].lost) == (10, 0)
    assert found.rows[0].baseline == pytest.approx(1 - 5 / 130)


def test_one_baseline_alone_stands_for_both() -> None:
    given = evaluated(output(set(range(20))), lambda at: None if at else output())
    assert judged(given).state == "BROKEN"


def test_the_same_answer_cannot_lose() -> None:
    mine = output(set(range(20)))
    same = tuple(replace(s, answer=f"{s.doc_id} False") for s in mine.samples)
    assert judged(evaluated(replace(mine, samples=same))).rows[0].lost == 0


def test_several_tasks_are_one_test() -> None:
    spec = replace(SPEC, tasks=("t", "u"))
    mine = both(output({0, 1, 2}), output({0, 1, 2}, task="u"))
    given = evaluated(mine, lambda _: both(output(), output(task="u")), spec)
    found = judged(given)
    assert found.state == "BROKEN", "six of 260 lost and none won is not chance"
    assert [row.lost for row in found.rows] == [3, 3]
    assert all(row.p_value > 0.05 for row in found.rows if row.p_value is not None)


@pytest.mark.parametrize(
    ("mine", "words"),
    [
        (output(metric="bleu"), "t: bleu does not pass or fail an item"),
        (output(items=129), "t: the items asked differ from the baseline's"),
        (
            replace(output(), samples=tuple(replace(s, scores={}) for s in output().samples)),
            "t: an item has no score of 0 or 1",
        ),
        (
            replace(
                output(),
                samples=tuple(replace(s, asked=("a", "b", "c")) for s in output().samples),
            ),
            "t: the items asked differ",
        ),
        (output(scores=()), "t: no score"),
    ],
)
def test_what_cannot_be_paired_is_not_measured(mine: LmEvalOutput, words: str) -> None:
    given = evaluated(mine)
    found = judged(given)
    assert found.state == "NOT MEASURED"
    assert words in found.reason
    assert all(row.compared is None and row.reason for row in found.rows)
    results = judge(given)
    assert results.quality[0].state == "NOT MEASURED"
    for verdict in results.verdicts:
        assert verdict.verdict != "SHIP"
        assert any(words in text for text in verdict.checks_not_run if "lm-eval (" in text)


def test_a_value_that_the_baseline_lacks() -> None:
    found = judged(evaluated(output(metric="bleu"), lambda _: output(scores=())))
    assert found.rows[0].baseline is None


def test_one_task_lost_is_broken_though_another_was_not_measured() -> None:
    spec = replace(SPEC, tasks=("t", "u"))
    mine = both(output(set(range(20))), output(task="u", metric="bleu"))
    given = evaluated(mine, lambda _: both(output(), output(task="u", metric="bleu")), spec)
    assert judged(given).state == "BROKEN"
    fine = both(output(), output(task="u", metric="bleu"))
    given = evaluated(fine, lambda _: fine, spec)
    assert judged(given).state == "NOT MEASURED"


@pytest.mark.parametrize("side", ["baseline", "ngram"])
def test_a_failed_evaluation_is_a_check_not_run_and_touches_no_cell(side: str) -> None:
    given = evaluated()

    def failed(start: Start) -> Start:
        if start.run.group != side or start.run.lm_eval is None:
            return start
        said = LmEvalRun(status="failed", reason="lm_eval ended with exit code 1: no")
        return replace(start, lm_eval=None, run=replace(start.run, lm_eval=said))

    given = replace(given, starts=tuple(failed(s) for s in given.starts))
    found = judged(given)
    assert found.state == "NOT MEASURED"
    assert found.reason == f"no evaluation of {side}: lm_eval ended with exit code 1: no"
    results, untouched = judge(given), judge(evaluated())
    assert {v.verdict for v in untouched.verdicts} == {"SHIP"}
    assert results.effects == untouched.effects
    assert results.cells == untouched.cells
    for verdict in results.verdicts:
        assert verdict.verdict == "INCONCLUSIVE"
        assert any(found.reason in text for text in verdict.reasons)
        assert f"lm-eval ({found.reason})" in verdict.checks_not_run


def test_an_evaluation_that_never_ran() -> None:
    given = evaluated()
    bare = tuple(replace(s, lm_eval=None, run=replace(s.run, lm_eval=None)) for s in given.starts)
    assert "it was not run" in judged(replace(given, starts=bare)).reason


def test_without_a_quality_pass_the_evaluation_still_counts() -> None:
    given = evaluated(output(set(range(20))))
    bare = replace(given, starts=tuple(replace(s, replies=()) for s in given.starts), checks={})
    found = judge_quality(bare, "ngram")
    assert found.row.state == found.facts.state == "BROKEN"
    assert found.row.reason.startswith("no quality pass of the baseline; lm-eval BROKEN: ")


def test_quality_that_is_switched_off_stays_off() -> None:
    given = evaluated(output(set(range(20))))
    policy = replace(given.recipe.policy, limits_off=("quality",))
    given = replace(given, recipe=replace(given.recipe, policy=policy))
    quality = {"ngram": judge_quality(given, "ngram")}
    (row,) = decide(given, Decided(fits={}, findings=(), quality=quality))
    assert row.verdict != "ABANDON"
    assert "lm-eval" in row.checks_run


def test_of_two_evaluations_of_a_method_the_first_counts() -> None:
    given = evaluated()
    worse = output(set(range(20)))

    def twice(start: Start) -> Start:
        again = start.run.group == "ngram" and start.run.block == 2
        return replace(start, lm_eval=worse) if again else start

    assert judged(replace(given, starts=tuple(map(twice, given.starts)))).rows[0].lost == 0


def test_the_first_reason_is_told() -> None:
    def failed(start: Start) -> Start:
        if start.run.lm_eval is None or start.run.group != "baseline":
            return start
        said = LmEvalRun(status="failed", reason=f"no answer at {start.run.position}")
        return replace(start, lm_eval=None, run=replace(start.run, lm_eval=said))

    given = evaluated()
    given = replace(given, starts=tuple(failed(s) for s in given.starts))
    assert judged(given).reason == "no evaluation of baseline: no answer at 0"
    first = output(metric="bleu")
    second = output(metric="chrf")
    mine = replace(first, scores=first.scores + second.scores)
    found = judged(evaluated(mine, lambda _: mine))
    assert found.reason.startswith("t: bleu does not pass or fail an item")
