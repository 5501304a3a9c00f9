"""First divergences, asked again: how sure was the baseline where a method left it?

Where both baselines of a block wrote the same and a method did not, the baseline's server gets the
prompt and the common beginning of the two outputs once more, and says its two best tokens with
their log-probabilities. A near tie is numeric; a wide gap is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bundle.core.evidence import Gap
from bundle.core.outputs import first_difference, same_output
from bundle.core.quality_pass import Chat, ChatItem, chat_body
from bundle.core.records import AskedAgain, Reply

ASKED_AT_MOST = 32
"""First divergences asked again for one group in one block, the earliest in their text first."""

WIDE_GAP = 1.0
"""Nats between the two best tokens, above which a divergence is no near tie."""

TwoBest = tuple[tuple[int, float], tuple[int, float]]
"""Two token ids with their log-probabilities in nats, the more likely one first."""

_TOKEN = "token_id:"  # noqa: S105 - the engine's mark of a token id, no secret


class Question(Struct, frozen=True, kw_only=True):
    """One request: an item's prompt and the output tokens that both sides share.

    ``tokens[group]`` is the token that the group wrote next, None where its output ended there.
    """

    item: ChatItem
    prompt_sha256: str | None
    prefix: tuple[int, ...]
    baseline_token: int | None
    tokens: dict[str, int | None]


def questions(
    items: Sequence[ChatItem],
    first: Mapping[str, Reply],
    last: Mapping[str, Reply],
    methods: Mapping[str, Mapping[str, Reply]],
) -> tuple[Question, ...]:
    """What to ask: each place once, however many groups left the baseline there.

    Args:
        items: the items of the quality pass, in order.
        first: the replies of the block's first baseline by item, of the last one where the first
            gave none.
        last: those of the last baseline; items on which the two disagree are not asked.
        methods: the replies of every method of the block by its name.
    """
    counts: Counter[str] = Counter()
    asked: dict[tuple[int, str], dict[str, _Place]] = {}
    for place in sorted(_places(items, first, last, methods), key=lambda p: (p.at, p.item.id)):
        counts[place.group] += 1
        if counts[place.group] <= ASKED_AT_MOST:
            asked.setdefault((place.at, place.item.id), {})[place.group] = place
    return tuple(_question(places) for places in asked.values())


class _Place(Struct, frozen=True, kw_only=True):
    """One group's first divergence on one item."""

    item: ChatItem
    group: str
    at: int
    base: Reply
    mine: Reply


def _places(
    items: Sequence[ChatItem],
    first: Mapping[str, Reply],
    last: Mapping[str, Reply],
    methods: Mapping[str, Mapping[str, Reply]],
) -> Iterator[_Place]:
    for item in items:
        base, again = first.get(item.id), last.get(item.id)
        if base is None or (again is not None and not same_output(base, again)):
            continue
        for group, replies in methods.items():
            mine = replies.get(item.id)
            at = None if mine is None else first_difference(base, mine)
            if mine is not None and at is not None:
                yield _Place(item=item, group=group, at=at, base=base, mine=mine)


def _question(places: Mapping[str, _Place]) -> Question:
    """The question at one place, with what every group wrote there."""
    one = next(iter(places.values()))
    at, base = one.at, one.base
    return Question(
        item=one.item,
        prompt_sha256=base.prompt_sha256,
        prefix=(base.token_ids or ())[:at],
        baseline_token=_token(base, at),
        tokens={group: _token(place.mine, at) for group, place in places.items()},
    )


def _token(reply: Reply, at: int) -> int | None:
    ids = reply.token_ids or ()
    return ids[at] if at < len(ids) else None


def prompt_body(question: Question, chat: Chat) -> dict[str, object]:
    """The JSON of a request to ``/tokenize`` for the item's rendered prompt."""
    whole = chat_body(question.item, chat)
    return {key: whole[key] for key in ("model", "messages", "chat_template_kwargs")}


def continuation_body(question: Question, prompt: Sequence[int], chat: Chat) -> dict[str, object]:
    """The JSON of a request to ``/v1/completions`` of vLLM 0.32.0: one token, its two best.

    Tokens are named by id: two of them may decode to the same text.
    """
    return {
        "model": chat.model,
        "prompt": [*prompt, *question.prefix],
        "max_tokens": 1,
        "temperature": 0,
        "n": 1,
        "seed": chat.seed,
        "stream": False,
        "ignore_eos": True,
        "logprobs": 2,
        "return_tokens_as_token_ids": True,
    }


def two_best(answer: Mapping[str, Any]) -> TwoBest:
    """The two most likely tokens of an answer with their log-probabilities in nats, best first.

    Raises:
        ValueError: the answer does not hold them.
    """
    try:
        given: dict[str, float] = answer["choices"][0]["logprobs"]["top_logprobs"][0]
        pairs = [(int(name.removeprefix(_TOKEN)), float(value)) for name, value in given.items()]
        best, second = sorted(pairs, key=lambda pair: -pair[1])[:2]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(
            f"expected the two best tokens with their log-probabilities, found none: {error!r}"
        ) from None
    return best, second


def rows_of(question: Question, answer: TwoBest | str) -> Iterable[AskedAgain]:
    """One record for every group that left the baseline there.

    Args:
        question: what was asked.
        answer: the two best tokens, or a text that says why there is no answer.
    """
    best, error = ((), answer) if isinstance(answer, str) else (answer, None)
    for group, token in question.tokens.items():
        yield AskedAgain(
            group=group,
            item=question.item.id,
            position=len(question.prefix),
            baseline_token=question.baseline_token,
            group_token=token,
            best=best,
            error=error,
        )


def gaps_of(rows: Iterable[AskedAgain]) -> dict[str, dict[str, Gap]]:
    """Gaps by group and item; the widest where several blocks asked. Errors give none."""
    found: dict[str, dict[str, Gap]] = {}
    for row in rows:
        if len(row.best) == 2:
            (token, high), (other, low) = row.best
            ranked = None if row.group_token is None else row.group_token in (token, other)
            gap = Gap(position=row.position, nats=high - low, ranked=ranked)
            items = found.setdefault(row.group, {})
            items[row.item] = max(items.get(row.item, gap), gap, key=_width)
    return found


def _width(gap: Gap) -> tuple[bool, float]:
    return gap.ranked is False, gap.nats


def is_wide(gap: Gap) -> bool:
    """No near tie: more than 1 nat apart, or a token that is none of the baseline's two best."""
    return gap.ranked is False or gap.nats > WIDE_GAP
