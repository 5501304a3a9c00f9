"""Quality of a group: its row in the report and its facts for the rules, from replies and checks.

Worlds have one block: the first baseline, the method and the last baseline, 130 items of one kind.
"""

import pytest
from msgspec.structs import astuple, replace

from bundle.core.evidence import Gap
from bundle.core.findings.subject import QualityFacts
from bundle.core.quality import GroupQuality, judge_quality, normal_lengths
from bundle.core.results import Divergence, QualityRow
from tests import builders as made
from tests.builders import EAGLE, evidence, only, recipe, with_quality

FIRST, METHOD, LAST = "1/0-baseline", "1/1-eagle3", "1/2-baseline"
ONE_BLOCK = replace(recipe().design, rounds=1)
TOKENS = (1, 2, 3, 4, 5)


def world(lost=(), count=130):
    given = evidence(only(EAGLE, design=ONE_BLOCK))
    return with_quality(given, count=count, lost=lost, group="eagle3")


def told(given, folder, **replies):
    """The start in this folder gives other tokens, or another reply, to the named items."""

    def changed(reply):
        other = replies.get(reply.item)
        if other is None:
            return reply
        return made.reply(reply.item, tokens=other) if isinstance(other, tuple) else other

    starts = tuple(
        replace(s, replies=tuple(map(changed, s.replies))) if s.folder == folder else s
        for s in given.starts
    )
    return replace(given, starts=starts)


def checked(given, folder, passed, items):
    checks = {**given.checks, folder: {**given.checks[folder], **dict.fromkeys(items, passed)}}
    return replace(given, checks=checks)


def names(count):
    return [f"q{i}" for i in range(count)]


def test_the_row_and_the_facts_of_a_pass():
    given = told(world(lost=(0, 1)), LAST, q5=(1, 2, 3, 7, 5))
    given = told(given, METHOD, q1=(1, 2, 3, 9, 5))
    found = judge_quality(given, "eagle3")
    reason = "2 of 130 items lost, 0 won (exact p = 0.25)"
    assert found.row == QualityRow(
        group="eagle3",
        state="SHOWN",
        reason=reason,
        items=130,
        excluded=0,
        wins=0,
        losses=2,
        p_value=0.25,
        by_kind={"arithmetic": (130, 128, 130)},
        identical_outputs=128,
        compared_outputs=130,
        aa_identical=129,
        aa_compared=130,
        finish_reasons={"stop": 130},
        first_divergences=(
            Divergence(item="q0", position=2, baseline_text="1 2 3 4 5", group_text="1 2 9 4 5"),
            Divergence(item="q1", position=3, baseline_text="1 2 3 4 5", group_text="1 2 3 9 5"),
        ),
    )
    assert found.facts == QualityFacts(
        state="SHOWN",
        reason=reason,
        diverged=2,
        comparable=130,
        aa_diverged=1,
        aa_comparable=130,
        outputs_p=0.5,
        first_divergence=2,
        divergences=2,
        asked=0,
        wide=0,
        truncated=0,
        replies=130,
    )


@pytest.mark.parametrize(
    ("given", "reason", "reasons"),
    [
        (evidence(only(EAGLE, design=ONE_BLOCK)), "no quality pass of the baseline", {}),
        (
            made.change_starts(world(count=4), "baseline", lambda s: replace(s, replies=())),
            "no quality pass of the baseline",
            {"stop": 4},
        ),
        (
            made.change_starts(world(count=4), "eagle3", lambda s: replace(s, replies=())),
            "no quality pass of eagle3",
            {},
        ),
    ],
)
def test_what_was_not_measured_counts_nothing(given, reason, reasons):
    assert judge_quality(given, "eagle3").row == QualityRow(
        group="eagle3",
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
        finish_reasons=reasons,
    )


@pytest.mark.parametrize("wavering", [FIRST, LAST])
def test_first_and_last_baselines_are_two_sides(wavering):
    """Six items are lost; on six others one of the baselines fails, and the method does not."""
    given = checked(world(lost=range(6)), wavering, False, names(12)[6:])
    outputs = dict.fromkeys(names(12)[6:], (1, 2, 3, 4, 6))
    row = judge_quality(told(given, METHOD, **outputs), "eagle3").row
    assert (row.state, row.excluded, row.losses) == ("NOT SHOWN", 6, 6)
    assert row.reason.split("; ")[1] == (
        "not against each baseline alone (p = 0.613): the baseline itself wavers"
    )


@pytest.mark.parametrize(
    ("ids", "text", "state"),
    [
        ((1, 2, 3, 4, 6), "same", "BROKEN"),
        (TOKENS, "other", "SHOWN"),
        (None, "same", "SHOWN"),
        (None, "other", "BROKEN"),
    ],
)
def test_the_same_output_is_that_of_the_same_tokens_and_of_the_same_text_without_any(
    ids, text, state
):
    """The method fails the check of six items: no loss where its output is the baseline's."""

    def answers(text, ids):
        return {n: made.reply(n, tokens=TOKENS, text=text, token_ids=ids) for n in names(6)}

    given = checked(world(), METHOD, False, names(6))
    for folder in (FIRST, LAST):
        given = told(given, folder, **answers("same", None if ids is None else TOKENS))
    given = told(given, METHOD, **answers(text, ids))
    assert judge_quality(given, "eagle3").row.state == state


@pytest.mark.parametrize(
    ("tokens", "text", "state"),
    [
        ((), "7", "BROKEN"),
        ((7,), "7", "BROKEN"),
        ((7, 8), "7 8", "SHOWN"),
        ((7, 8), " \n", "BROKEN"),
    ],
)
def test_a_reply_of_one_token_or_of_no_letter_is_broken(tokens, text, state):
    given = told(world(), METHOD, q0=made.reply("q0", tokens=tokens, text=text))
    assert judge_quality(given, "eagle3").row.state == state
    same = told(given, FIRST, q0=made.reply("q0", tokens=tokens, text=text))
    assert judge_quality(same, "eagle3").row.state == "SHOWN"


@pytest.mark.parametrize(
    ("tokens", "text", "state"), [((7,), "7", "SHOWN"), ((7, 8), " ", "BROKEN"), ((), "", "BROKEN")]
)
def test_a_baseline_with_a_short_reply_elsewhere_excuses_short_ones_but_no_empty_one(
    tokens, text, state
):
    short = made.reply("q1", tokens=(5,), text="5")
    given = told(
        told(world(), FIRST, q1=short), METHOD, q0=made.reply("q0", tokens=tokens, text=text)
    )
    assert judge_quality(given, "eagle3").row.state == state


def strayed(count):
    """The method leaves the baselines at token 30 of so many items."""
    given = world()
    long = (*range(100, 130), 1)
    for folder in (FIRST, LAST):
        given = told(given, folder, **dict.fromkeys(names(count), long))
    return told(given, METHOD, **dict.fromkeys(names(count), (*long[:-1], 2)))


@pytest.mark.parametrize(("wide", "state"), [(1, "SHOWN"), (2, "NOT SHOWN")])
def test_a_wide_gap_is_doubted_on_the_second_item(wide, state):
    gaps = {f"q{i}": Gap(position=30, nats=1.5 if i < wide else 1.0, ranked=True) for i in range(3)}
    found = judge_quality(replace(strayed(4), gaps={"eagle3": gaps}), "eagle3")
    assert found.row.state == state
    assert (found.facts.divergences, found.facts.asked, found.facts.wide) == (4, 3, wide)
    assert [d.gap for d in found.row.first_divergences[:4]] == (
        [1.5 if i < wide else 1.0 for i in range(3)] + [None]
    )


@pytest.mark.parametrize(("count", "shown"), [(7, 7), (8, 8), (12, 8)])
def test_the_first_eight_divergences_are_shown_and_all_are_counted(count, shown):
    found = judge_quality(strayed(count), "eagle3")
    assert len(found.row.first_divergences) == shown
    assert found.facts.divergences == count


@pytest.mark.parametrize(("early", "state"), [(4, "SHOWN"), (5, "NOT SHOWN")])
def test_an_excess_of_early_divergences_is_doubted(early, state):
    outputs = dict.fromkeys(names(early), (1, 2, 3, 4, 6))
    row = judge_quality(told(world(), METHOD, **outputs), "eagle3").row
    assert row.state == state
    said = f"{early} outputs leave the baseline in their first 16 tokens, 0 between the baselines"
    assert (said in row.reason) == (state == "NOT SHOWN")


def test_kinds_count_the_items_that_both_sides_have_a_score_for():
    given = world(lost=(1,), count=4)
    checks = {k: v for k, v in given.checks[METHOD].items() if k != "q0"}
    found = judge_quality(replace(given, checks={**given.checks, METHOD: checks}), "eagle3")
    assert found.row.by_kind == {"arithmetic": (3, 2, 3)}


def test_one_item_of_two_baselines_is_compared_with_the_baseline_itself():
    given = told(world(count=1), METHOD, q0=(1, 2, 3, 4, 6))
    facts = judge_quality(told(given, LAST, q0=(1, 2, 3, 9)), "eagle3").facts
    assert (facts.diverged, facts.comparable) == (0, 1)
    assert (facts.aa_diverged, facts.aa_comparable) == (1, 1)


def test_without_a_second_baseline_replies_are_counted():
    given = told(world(count=5), METHOD, q0=(1, 2, 3, 4, 6), q1=(1, 2, 3, 4, 6))
    alone = tuple(replace(s, replies=()) if s.folder == LAST else s for s in given.starts)
    found = judge_quality(replace(given, starts=alone), "eagle3")
    facts, row = found.facts, found.row
    assert (facts.diverged, facts.comparable) == (2, 5)
    assert (facts.aa_diverged, facts.aa_comparable) == (None, 0)
    assert (row.identical_outputs, row.compared_outputs) == (3, 5)
    assert (row.aa_identical, row.aa_compared) == (None, None)


def test_what_no_check_reads_has_no_p_value():
    row = judge_quality(replace(world(count=4), checks={}), "eagle3").row
    assert (row.state, row.reason, row.p_value) == ("NOT MEASURED", "no item was scored", None)


def wrote(*replies):
    """A start that gave these replies: item, its task, tokens, finish reason."""
    return replace(
        world(count=1).starts[0],
        replies=tuple(
            made.reply(item, task=own, completion_tokens=tokens, finish_reason=end)
            for item, own, tokens, end in replies
        ),
    )


def test_lengths_are_those_of_replies_of_the_task_that_end_by_themselves_on_both_sides():
    base = wrote(
        ("a", "code", 10, "stop"),
        ("b", "code", 30, "stop"),
        ("c", "code", 99, "stop"),
        ("d", "chat", 99, "stop"),
    )
    again = wrote(("a", "code", 20, "stop"))
    mine = wrote(
        ("a", "code", 20, "stop"),
        ("b", "code", 40, "stop"),
        ("c", "code", 50, "length"),
        ("d", "chat", 50, "stop"),
    )
    assert normal_lengths([base, again], [mine], "code") == (22.5, 30.0)
    assert normal_lengths([again], [wrote(("b", "code", 9, "stop"))], "code") == (
        None,
        None,
    )


def test_a_result_stays_as_it_is_and_is_named():
    found = judge_quality(world(count=1), "eagle3")
    with pytest.raises(AttributeError, match="immutable"):
        found.lm_eval = None
    with pytest.raises(TypeError, match="positional"):
        GroupQuality(*astuple(found))
