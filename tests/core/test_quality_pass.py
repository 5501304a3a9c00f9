import hashlib

import pytest

from bundle.core.quality_items import AcceptancePrompt, Message, NumberCheck, QualityItem
from bundle.core.quality_pass import (
    ACCEPTANCE,
    MISSING_STATS,
    Chat,
    chat_body,
    chat_items,
    failed_reply,
    ids_sha256,
    reply_of,
)

QUALITY = tuple(
    QualityItem(
        id=f"a{i}",
        kind="arithmetic",
        task="chat",
        messages=(Message(role="system", content="s"), Message(role="user", content=f"{i}?")),
        max_tokens=50,
        check=NumberCheck(answer="1"),
    )
    for i in range(3)
)
PROMPTS = (AcceptancePrompt(id="p0", task="code", prompt="write", max_tokens=200),)
ITEM = chat_items(QUALITY, (), 1)[0]
ANSWER = {
    "choices": [
        {"message": {"content": "one"}, "finish_reason": "stop", "token_ids": [5, 6]},
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    "prompt_token_ids": [1, 2, 3],
    "metrics": None,
}
STATS = {
    "acceptance_histogram": [1, 0, 2],
    "num_spec_steps": 3,
    "num_accepted_draft_tokens": 4,
    "num_draft_tokens": 6,
}


def chat(max_tokens=None):
    return Chat(
        model="m",
        concurrency=4,
        seed=42,
        timeout=10,
        max_tokens=max_tokens,
        template={"enable_thinking": False},
        speculative=False,
    )


def test_a_share_of_the_items_and_all_prompts():
    items = chat_items(QUALITY, PROMPTS, 2)
    assert [(i.id, i.kind, i.task) for i in items] == [
        ("a0", "arithmetic", "chat"),
        ("a1", "arithmetic", "chat"),
        ("p0", ACCEPTANCE, "code"),
    ]
    assert items[0].messages == (("system", "s"), ("user", "0?"))
    assert items[2].messages == (("user", "write"),)
    assert len(chat_items(QUALITY, PROMPTS, None)) == 4


@pytest.mark.parametrize(("cap", "expected"), [(None, 50), (20, 20), (80, 50)])
def test_the_request(cap, expected):
    body = chat_body(ITEM, chat(cap))
    assert body["max_tokens"] == expected
    assert (body["temperature"], body["top_p"], body["n"], body["seed"]) == (0, 1, 1, 42)
    assert (body["stream"], body["return_token_ids"]) == (False, True)
    assert body["messages"][1] == {"role": "user", "content": "0?"}
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_a_plain_reply():
    reply = reply_of(ITEM, 1.5, ANSWER, speculative=False)
    assert (reply.item, reply.text, reply.finish_reason) == ("a0", "one", "stop")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.seconds) == (3, 2, 1.5)
    assert reply.token_ids == (5, 6)
    assert reply.prompt_sha256 == hashlib.sha256(b"1,2,3").hexdigest()
    assert (reply.speculative, reply.error) == (None, None)


def test_a_speculative_reply():
    detailed = {**STATS, "per_step_accepted": [0, 2, 2], "per_step_drafted": [2, 2, 2]}
    answer = {**ANSWER, "metrics": {"speculative_decoding": detailed}}
    stats = reply_of(ITEM, 1, answer, speculative=True).speculative
    assert (stats.accepted, stats.drafted, stats.rounds) == (4, 6, 3)
    assert stats.histogram == (1, 0, 2)
    assert stats.per_step_accepted == (0, 2, 2)
    assert stats.per_step_drafted == (2, 2, 2)


def test_nothing_proposed_has_no_steps():
    answer = {**ANSWER, "metrics": {"speculative_decoding": STATS}}
    stats = reply_of(ITEM, 1, answer, speculative=True).speculative
    assert (stats.per_step_accepted, stats.per_step_drafted) == (None, None)


@pytest.mark.parametrize("metrics", [None, {}, {"speculative_decoding": None}])
def test_missing_figures_of_a_speculative_server_are_an_error(metrics):
    reply = reply_of(ITEM, 1, {**ANSWER, "metrics": metrics}, speculative=True)
    assert reply.error == MISSING_STATS
    assert "--per-request-spec-decode-metrics" in reply.error
    assert reply.text == "one"


def test_an_answer_without_ids_or_text():
    choice = {"message": {"content": None}, "finish_reason": "length"}
    reply = reply_of(ITEM, 1, {"choices": [choice], "usage": ANSWER["usage"]}, speculative=False)
    assert (reply.text, reply.token_ids, reply.prompt_sha256) == ("", None, None)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"choices": [], "usage": {}},
        {"choices": [{}], "usage": {}},
        {**ANSWER, "usage": {"prompt_tokens": "x", "completion_tokens": 1}},
        {**ANSWER, "metrics": {"speculative_decoding": {}}},
        {**ANSWER, "choices": 3},
        [],
    ],
)
def test_something_else_is_an_error(answer):
    reply = reply_of(ITEM, 1, answer, speculative=False)
    assert reply.error.startswith("the answer is not a chat completion")
    assert reply.finish_reason is None


def test_no_reply():
    reply = failed_reply(ITEM, 2.0, "HTTP 500")
    assert (reply.text, reply.error, reply.seconds) == ("", "HTTP 500", 2.0)
    assert (reply.prompt_tokens, reply.completion_tokens) == (0, 0)


def test_hashes_keep_prompts_apart():
    assert ids_sha256([1, 2], [3]) != ids_sha256([1], [2, 3])
    assert ids_sha256([12]) != ids_sha256([1, 2])
    assert ids_sha256(iter([1, 2])) == ids_sha256([1, 2])
