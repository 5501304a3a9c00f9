"""What a last baseline is asked again, and what its answers mean."""

from __future__ import annotations

import pytest

from bundle.core.divergences import (
    continuation_body,
    gaps_of,
    is_wide,
    prompt_body,
    questions,
    rows_of,
    two_best,
)
from bundle.core.evidence import Gap
from bundle.core.quality_pass import Chat, ChatItem
from bundle.core.records import AskedAgain
from tests.builders import reply

CHAT = Chat(
    model="m",
    concurrency=1,
    seed=42,
    timeout=5.0,
    max_tokens=None,
    template={"enable_thinking": False},
    speculative=False,
)


def items(count):
    return tuple(
        ChatItem(id=f"q{i}", kind="k", task="t", messages=(("user", f"{i}?"),), max_tokens=8)
        for i in range(count)
    )


def replies(*outputs):
    return {f"q{i}": reply(f"q{i}", tokens=o) for i, o in enumerate(outputs) if o is not None}


def asked(base, methods, last=None):
    return questions(items(len(base)), replies(*base), replies(*(last or base)), methods)


def test_one_question_a_place_with_the_token_of_every_group_there():
    methods = {
        "a": replies((1, 2, 9), (1, 2, 3)),
        "b": replies((1, 2, 8), (7, 2, 3)),
        "c": replies((1, 5, 3), (1, 2, 3)),
    }
    found = asked([(1, 2, 3), (1, 2, 3)], methods)
    assert [(q.item.id, q.prefix, q.baseline_token, q.tokens) for q in found] == [
        ("q1", (), 1, {"b": 7}),
        ("q0", (1,), 2, {"c": 5}),
        ("q0", (1, 2), 3, {"a": 9, "b": 8}),
    ]


@pytest.mark.parametrize(
    ("base", "last", "mine"),
    [
        ((1, 2), (1, 2), (1, 2)),
        ((1, 2), (1, 3), (1, 4)),
        (None, (1, 2), (1, 4)),
        ((1, 2), (1, 2), None),
    ],
)
def test_nothing_to_ask(base, last, mine):
    assert asked([base], {"a": replies(mine)}, [last]) == ()


def test_an_item_that_is_not_asked_keeps_no_later_one_from_it():
    base = [None, (1, 2), (1, 2)]
    last = [(1, 2), (1, 3), (1, 2)]
    found = asked(base, {"a": replies((1, 4), (1, 4), (1, 4))}, last)
    assert [(q.item.id, q.tokens) for q in found] == [("q2", {"a": 4})]


def test_an_output_that_ended_has_no_token_there():
    short, long = asked([(1, 2), (1, 2, 3)], {"a": replies((1, 2, 3), (1, 2))})
    assert (short.baseline_token, short.tokens) == (None, {"a": 3})
    assert (long.baseline_token, long.tokens) == (3, {"a": None})


def test_the_last_baseline_alone_can_be_left():
    found = questions(items(1), replies((1, 2)), {}, {"a": replies((1, 3))})
    assert [q.tokens for q in found] == [{"a": 3}]


def test_the_32_earliest_places_of_a_group_are_asked():
    count = 37
    base = [tuple(range(50))] * count
    mine = [(*range(40 - i), 99) for i in range(count)]
    found = asked(base, {"a": replies(*mine), "b": replies(mine[0])})
    positions = [len(q.prefix) for q in found if "a" in q.tokens]
    assert positions == sorted(40 - i for i in range(count))[:32]
    assert [q.tokens for q in found if "b" in q.tokens] == [{"b": 99}]


def test_the_requests():
    (one,) = asked([(1, 2, 3)], {"a": replies((1, 2, 9))})
    assert prompt_body(one, CHAT) == {
        "model": "m",
        "messages": [{"role": "user", "content": "0?"}],
        "chat_template_kwargs": {"enable_thinking": False},
    }
    # One reply of one token in one piece, also where that token ends the text.
    assert continuation_body(one, (100, 101), CHAT) == {
        "model": "m",
        "prompt": [100, 101, 1, 2],
        "max_tokens": 1,
        "temperature": 0,
        "n": 1,
        "seed": 42,
        "stream": False,
        "ignore_eos": True,
        "logprobs": 2,
        "return_tokens_as_token_ids": True,
    }


def test_the_two_best_of_three_in_any_order():
    given = {"token_id:5": -3.0, "token_id:7": -0.5, "token_id:9": -1.5}
    assert two_best({"choices": [{"logprobs": {"top_logprobs": [given]}}]}) == (
        (7, -0.5),
        (9, -1.5),
    )


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"choices": []},
        {"choices": [{"logprobs": None}]},
        {"choices": [{"logprobs": {"top_logprobs": []}}]},
        {"choices": [{"logprobs": {"top_logprobs": [None]}}]},
        {"choices": [{"logprobs": {"top_logprobs": [{"token_id:5": -1.0}]}}]},
        {"choices": [{"logprobs": {"top_logprobs": [{" the": -1.0, " a": -2.0}]}}]},
    ],
)
def test_an_answer_without_them(answer):
    with pytest.raises(ValueError, match="two best tokens"):
        two_best(answer)


def test_one_record_a_group():
    (one,) = asked([(1, 2, 3)], {"a": replies((1, 2, 9)), "b": replies((1, 2, 8))})
    best = ((3, -0.5), (9, -0.75))
    assert tuple(rows_of(one, best)) == tuple(
        AskedAgain(
            group=g, item="q0", position=2, baseline_token=3, group_token=t, best=best, error=None
        )
        for g, t in (("a", 9), ("b", 8))
    )
    failed = tuple(rows_of(one, "HTTP 400"))
    assert [(r.best, r.error) for r in failed] == [((), "HTTP 400")] * 2


def row(low, *, group="a", item="q0", token=9, best=None):
    return AskedAgain(
        group=group,
        item=item,
        position=2,
        baseline_token=3,
        group_token=token,
        best=((3, -0.5), (9, low)) if best is None else best,
    )


def test_gaps_are_those_of_the_widest_block():
    found = gaps_of(
        [
            row(-0.75),
            row(-2.0),
            row(-1.0),
            row(-0.6, item="q1", token=4),
            row(-9.0, item="q1"),
            row(-0.6, item="q2", token=None),
            row(0, item="q3", best=()),
            row(-0.6, group="b"),
        ]
    )
    assert found == {
        "a": {
            "q0": Gap(position=2, nats=1.5, ranked=True),
            "q1": Gap(position=2, nats=pytest.approx(0.1), ranked=False),
            "q2": Gap(position=2, nats=pytest.approx(0.1), ranked=None),
        },
        "b": {"q0": Gap(position=2, nats=pytest.approx(0.1), ranked=True)},
    }


@pytest.mark.parametrize(
    ("nats", "ranked", "wide"),
    [
        (0.0, True, False),
        (1.0, True, False),
        (1.01, True, True),
        (0.1, False, True),
        (0.1, None, False),
        (2.0, None, True),
    ],
)
def test_near_ties(nats, ranked, wide):
    assert is_wide(Gap(position=0, nats=nats, ranked=ranked)) == wide
