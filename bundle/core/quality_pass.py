"""The quality pass: what is asked, in which form, and what an answer holds.

Every request goes through the chat API, greedily, with the normal end of text. The order of the
items is the order of the requests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bundle.core.quality_items import AcceptancePrompt, QualityItem
from bundle.core.records import Reply, SpecStats

ACCEPTANCE = "acceptance"
"""The kind of items that are asked for their acceptance alone."""

MISSING_STATS = (
    "expected acceptance figures of this request, found none: check that the server was started "
    "with --per-request-spec-decode-metrics, that n is 1 and that no stop string ended the request"
)


class ChatItem(Struct, frozen=True, kw_only=True):
    """One request. ``messages`` are (role, content) pairs."""

    id: str
    kind: str
    task: str
    messages: tuple[tuple[str, str], ...]
    max_tokens: int


class Chat(Struct, frozen=True, kw_only=True):
    """How requests are sent: the same for every item and every group.

    ``timeout`` in seconds. ``max_tokens`` caps what an item asks for. ``speculative`` says whether
    the server must give acceptance figures.
    """

    model: str
    concurrency: int
    seed: int
    timeout: float
    max_tokens: int | None
    template: Mapping[str, object]
    speculative: bool


def chat_items(
    quality: Sequence[QualityItem], acceptance: Sequence[AcceptancePrompt], share: int | None
) -> tuple[ChatItem, ...]:
    """The items of one pass: the first ``share`` of the quality items, then all prompts."""
    asked = [
        ChatItem(
            id=item.id,
            kind=item.kind,
            task=item.task,
            messages=tuple((m.role, m.content) for m in item.messages),
            max_tokens=item.max_tokens,
        )
        for item in quality[:share]
    ]
    for prompt in acceptance:
        messages = (("user", prompt.prompt),)
        asked.append(
            ChatItem(
                id=prompt.id,
                kind=ACCEPTANCE,
                task=prompt.task,
                messages=messages,
                max_tokens=prompt.max_tokens,
            )
        )
    return tuple(asked)


def chat_body(item: ChatItem, chat: Chat) -> dict[str, object]:
    """The JSON of one request to ``/v1/chat/completions`` of vLLM 0.32.0."""
    return {
        "model": chat.model,
        "messages": [{"role": role, "content": content} for role, content in item.messages],
        "max_tokens": min(item.max_tokens, chat.max_tokens or item.max_tokens),
        "temperature": 0,
        "top_p": 1,
        "n": 1,
        "seed": chat.seed,
        "stream": False,
        "return_token_ids": True,
        "chat_template_kwargs": dict(chat.template),
    }


def failed_reply(item: ChatItem, seconds: float, error: str) -> Reply:
    """The record of a request that brought no reply."""
    return Reply(
        item=item.id,
        kind=item.kind,
        task=item.task,
        text="",
        finish_reason=None,
        prompt_tokens=0,
        completion_tokens=0,
        seconds=seconds,
        prompt_sha256=None,
        error=error,
    )


def reply_of(
    item: ChatItem, seconds: float, answer: Mapping[str, Any], *, speculative: bool
) -> Reply:
    """Read one answer; one that is not a chat completion gives a reply with ``error``.

    On a speculative server a reply without acceptance figures keeps its text and has ``error``
    set to what must be checked.
    """
    try:
        choice, usage = answer["choices"][0], answer["usage"]
        ids, prompt = choice.get("token_ids"), answer.get("prompt_token_ids")
        stats = _spec_stats(answer.get("metrics"))
        return Reply(
            item=item.id,
            kind=item.kind,
            task=item.task,
            text=choice["message"]["content"] or "",
            finish_reason=choice["finish_reason"],
            prompt_tokens=int(usage["prompt_tokens"]),
            completion_tokens=int(usage["completion_tokens"]),
            seconds=seconds,
            prompt_sha256=None if prompt is None else ids_sha256(prompt),
            token_ids=None if ids is None else tuple(ids),
            speculative=stats,
            error=MISSING_STATS if speculative and stats is None else None,
        )
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        found = f"the answer is not a chat completion: {type(error).__name__}: {error}"
        return failed_reply(item, seconds, found)


def _spec_stats(metrics: Mapping[str, Any] | None) -> SpecStats | None:
    raw = (metrics or {}).get("speculative_decoding")
    if raw is None:
        return None
    # Absent where nothing was proposed.
    accepted, drafted = raw.get("per_step_accepted"), raw.get("per_step_drafted")
    return SpecStats(
        accepted=raw["num_accepted_draft_tokens"],
        drafted=raw["num_draft_tokens"],
        rounds=raw["num_spec_steps"],
        histogram=tuple(raw["acceptance_histogram"]),
        per_step_accepted=None if accepted is None else tuple(accepted),
        per_step_drafted=None if drafted is None else tuple(drafted),
    )


def ids_sha256(*prompts: Iterable[int]) -> str:
    """sha256 over token ids as decimal numbers joined by commas; prompts joined by newlines."""
    text = "\n".join(",".join(str(i) for i in ids) for ids in prompts)
    return hashlib.sha256(text.encode()).hexdigest()
