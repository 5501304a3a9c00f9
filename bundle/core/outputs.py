"""Greedy outputs of a group against its baseline's, block by block, and where they first differ.

Outputs are compared by token ids where both sides have them, else by text. The baseline's own
differences between its two starts of a block are the measure: greedy outputs are not always equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from bundle.core.evidence import Start
from bundle.core.paired import majority, sign_test
from bundle.core.records import Reply
from bundle.core.results import Divergence

EARLY_TOKENS = 16
"""An excess of first differences before this token is no numeric near tie."""


class Outputs(Struct, frozen=True, kw_only=True):
    """How often outputs left the baseline's, item by item.

    ``diverged`` items have baselines that agree and a method that differs; ``wavering`` ones have
    baselines that disagree, both out of ``items`` that two baselines of a block answered.
    ``compared`` and ``identical`` count replies. Positions are output tokens, counted from 0.
    """

    items: int
    compared: int
    identical: int
    aa_compared: int
    aa_identical: int
    diverged: int
    wavering: int
    p: float
    early: int
    aa_early: int
    divergences: tuple[Divergence, ...]


def replies_by_item(replies: Iterable[Reply]) -> dict[str, Reply]:
    """The replies of one start that are replies: errors without text are none."""
    return {r.item: r for r in replies if r.error is None or r.text or r.token_ids}


def compare_outputs(base: Sequence[Start], mine: Sequence[Start]) -> Outputs:
    """Compare block by block: the method with the block's first baseline, that with the last.

    An item counts by the majority of its blocks.
    """
    events: dict[str, list[tuple[bool, bool]]] = {}
    pairs: list[tuple[bool, bool | None]] = []
    found: dict[str, Divergence] = {}
    early: set[str] = set()
    aa_early: set[str] = set()
    for first, last, method in _triples(base, mine):
        for item, mine_reply in method.items():
            if item not in first:
                continue
            a, m = first[item], mine_reply
            b = last.get(item)
            same_ab = None if b is None else same_output(a, b)
            pairs.append((same_output(a, m), same_ab))
            if same_ab is not None:
                events.setdefault(item, []).append((same_ab and not same_output(a, m), not same_ab))
            position = first_difference(a, m)
            if same_ab is not False and position is not None:
                found.setdefault(item, _divergence(item, position, a, m))
                early |= {item} if position < EARLY_TOKENS else set()
            aa_position = None if b is None else first_difference(a, b)
            aa_early |= {item} if aa_position is not None and aa_position < EARLY_TOKENS else set()
    diverged = sum(majority([d for d, _ in seen]) is True for seen in events.values())
    wavering = sum(majority([w for _, w in seen]) is True for seen in events.values())
    return Outputs(
        items=len(events),
        compared=len(pairs),
        identical=sum(same for same, _ in pairs),
        aa_compared=sum(same is not None for _, same in pairs),
        aa_identical=sum(same is True for _, same in pairs),
        diverged=diverged,
        wavering=wavering,
        p=sign_test(diverged, wavering),
        early=len(early),
        aa_early=len(aa_early),
        divergences=tuple(sorted(found.values(), key=lambda d: (d.position, d.item))),
    )


def _triples(
    base: Sequence[Start], mine: Sequence[Start]
) -> Iterator[tuple[dict[str, Reply], dict[str, Reply], dict[str, Reply]]]:
    """First baseline, last baseline and method of every block that has a baseline and a method."""
    for start in mine:
        block = [s for s in base if s.run.block == start.run.block]
        if block:
            last = replies_by_item(block[-1].replies) if len(block) > 1 else {}
            yield replies_by_item(block[0].replies), last, replies_by_item(start.replies)


def same_output(a: Reply, b: Reply) -> bool:
    """Whether two outputs are equal, by token ids where both have them, else by text."""
    if a.token_ids is None or b.token_ids is None:
        return a.text == b.text
    return a.token_ids == b.token_ids


def first_difference(a: Reply, b: Reply) -> int | None:
    """The first output token that differs; None where none does or token ids are missing."""
    if a.token_ids is None or b.token_ids is None or a.token_ids == b.token_ids:
        return None
    shared = min(len(a.token_ids), len(b.token_ids))
    return next((i for i in range(shared) if a.token_ids[i] != b.token_ids[i]), shared)


def _divergence(item: str, position: int, a: Reply, b: Reply) -> Divergence:
    return Divergence(item=item, position=position, baseline_text=a.text, group_text=b.text)
