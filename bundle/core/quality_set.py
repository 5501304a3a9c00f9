"""The whole of ``quality.jsonl`` and ``acceptance.jsonl``, made from nothing.

The kinds take turns, and within a kind easy and hard families take turns, with an item written by
hand in every fifth place. So the first N rows are a balanced mix for any N, and a recipe that takes
fewer items than there are says how many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bundle.core import quality_edits, quality_handmade, quality_seeded, quality_texts
from bundle.core.quality_draft import Dice, Draft
from bundle.core.quality_items import AcceptancePrompt, Kind, QualityItem

SEED = 20261018
PER_KIND = 30
HAND_MADE_EVERY = 5

Maker = Callable[[Dice], Draft]

SOURCES: tuple[tuple[Kind, Sequence[Maker], Sequence[Draft]], ...] = (
    ("arithmetic", quality_seeded.ARITHMETIC, quality_handmade.ARITHMETIC),
    ("code-edit", quality_edits.FAMILIES, quality_edits.HAND_MADE),
    ("multi-turn", quality_seeded.MULTI_TURN, quality_handmade.MULTI_TURN),
    ("json-schema", quality_seeded.JSON, quality_handmade.JSON),
    ("long-text-fact", quality_texts.FAMILIES, quality_handmade.LONG_TEXT),
)


def quality_rows() -> tuple[QualityItem, ...]:
    """150 items, 30 of each kind, the kinds taking turns."""
    columns = [
        _items(kind, _drafts(Dice(SEED + index), makers, by_hand))
        for index, (kind, makers, by_hand) in enumerate(SOURCES)
    ]
    return tuple(item for row in zip(*columns, strict=True) for item in row)


def acceptance_rows() -> tuple[AcceptancePrompt, ...]:
    """Four prompts: two where the reply copies from the prompt, two where it cannot."""
    code = "def plus(a, b):\n    return a + b\n\n\ndef times(a, b):\n    return a * b\n"
    prompts = (
        (
            "edit",
            "code",
            "Turn plus into minus: change its name and let it subtract. Leave times as it is. "
            f"Answer with the complete code, without a fence.\n\n{code}",
        ),
        ("copy", "code", f"Repeat this code word for word, without a fence.\n\n{code}"),
        (
            "explain",
            "chat",
            "What is the difference between the throughput of an inference server and the latency "
            "of one request? Explain it in two paragraphs.",
        ),
        (
            "tradeoff",
            "chat",
            "A team wants a cheap service and also a steady response time, and cannot have all of "
            "both. How should it discuss and decide this? Give reasons.",
        ),
    )
    return tuple(
        AcceptancePrompt(id=name, task=task, prompt=prompt, max_tokens=256)
        for name, task, prompt in prompts
    )


def _drafts(dice: Dice, makers: Sequence[Maker], by_hand: Sequence[Draft]) -> list[Draft]:
    """The kind's drafts, no question twice; hand-made ones in every fifth place."""
    drafts: list[Draft] = []
    waiting = list(by_hand)
    made = 0
    while len(drafts) < PER_KIND:
        if len(drafts) % HAND_MADE_EVERY == HAND_MADE_EVERY - 1:
            drafts.append(waiting.pop(0))
            continue
        draft = makers[made % len(makers)](dice)
        if draft not in drafts:
            drafts.append(draft)
            made += 1
    return drafts


def _items(kind: Kind, drafts: Sequence[Draft]) -> list[QualityItem]:
    return [
        QualityItem(
            id=f"{kind}-{index:02}",
            kind=kind,
            task="code" if kind == "code-edit" else "chat",
            messages=draft.messages,
            max_tokens=draft.max_tokens,
            check=draft.check,
        )
        for index, draft in enumerate(drafts, 1)
    ]
