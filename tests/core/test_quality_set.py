"""The shipped items: sound, balanced, short, and not all alike."""

from collections import Counter

import pytest

from bundle.core.jsonl import to_jsonl
from bundle.core.quality_checks import check
from bundle.core.quality_draft import Dice
from bundle.core.quality_items import (
    PhraseCheck,
    SyntaxTreeCheck,
    parse_acceptance,
    parse_quality,
)
from bundle.core.quality_set import acceptance_rows, quality_rows
from tests.references import reference_reply

ITEMS = quality_rows()
KINDS = {"code-edit", "arithmetic", "json-schema", "long-text-fact", "multi-turn"}


def by_id(item):
    return item.id


def test_the_set_reads_back_as_itself_and_is_made_the_same_twice():
    assert parse_quality(to_jsonl(ITEMS).decode(), "made") == ITEMS == quality_rows()


def test_at_least_120_items_of_five_kinds():
    counts = Counter(item.kind for item in ITEMS)
    assert set(counts) == KINDS
    assert min(counts.values()) * len(KINDS) == len(ITEMS) >= 120


@pytest.mark.parametrize("taken", range(1, len(ITEMS) + 1))
def test_any_first_n_items_are_a_balanced_mix(taken):
    counts = Counter(item.kind for item in ITEMS[:taken])
    assert max(counts.values()) - min(counts[kind] for kind in KINDS) <= 1


def test_no_question_stands_twice():
    assert len({item.messages for item in ITEMS}) == len(ITEMS)


def test_most_replies_are_short():
    assert sum(item.max_tokens <= 64 for item in ITEMS) >= 0.9 * len(ITEMS)
    assert all(16 <= item.max_tokens <= 96 for item in ITEMS)


@pytest.mark.parametrize("item", ITEMS, ids=by_id)
def test_the_reference_reply_passes_and_another_items_does_not(item):
    assert check(item, reference_reply(item)).passed
    assert not check(item, "I cannot help with that.").passed


@pytest.mark.parametrize("item", [i for i in ITEMS if i.kind == "code-edit"], ids=by_id)
def test_a_code_edit_shows_its_source_and_the_source_alone_does_not_pass(item):
    assert isinstance(item.check, SyntaxTreeCheck)
    assert item.check.source in item.messages[-1].content
    assert not check(item, item.check.source).passed
    assert item.task == "code"


@pytest.mark.parametrize("item", [i for i in ITEMS if i.kind == "long-text-fact"], ids=by_id)
def test_a_long_text_is_long_and_its_text_alone_does_not_pass_where_rivals_stand(item):
    words = len(item.messages[0].content.split())
    assert 200 <= words <= 600
    if isinstance(item.check, PhraseCheck) and item.check.reject:
        assert not check(item, item.messages[0].content).passed


@pytest.mark.parametrize("item", [i for i in ITEMS if i.kind == "multi-turn"], ids=by_id)
def test_the_last_turn_needs_an_earlier_one(item):
    assert len(item.messages) >= 3
    assert not check(item, item.messages[-1].content).passed


def test_acceptance_prompts_are_two_of_each_task():
    rows = acceptance_rows()
    assert parse_acceptance(to_jsonl(rows).decode(), "made") == rows
    assert [row.task for row in rows] == ["code", "code", "chat", "chat"]
    assert [row.id for row in rows] == ["edit", "copy", "explain", "tradeoff"]


def test_dice_repeat_and_stay_in_their_range():
    rolls = [Dice(7).between(2, 4) for _ in range(3)]
    assert len(set(rolls)) == 1
    dice = Dice(7)
    assert {dice.between(2, 4) for _ in range(200)} == {2, 3, 4}
    assert sorted(dice.some("abc", 3)) == ["a", "b", "c"]
