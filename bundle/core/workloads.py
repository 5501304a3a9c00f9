"""The two workloads of the performance cells, and the reader for any other.

``code`` asks for one changed number in a file of twelve functions, so nearly every output token
can be copied from the prompt; ``chat`` asks for prose with next to nothing to copy. Both are made
here from nothing, so that anyone can make the same bytes again. They show a mechanism and stand for
no one's traffic: a recipe may name a file of its own.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from bundle.core.jsonl import decode_text, parse_rows, to_jsonl
from bundle.errors import InputError

__all__ = ["Prompt", "chat_rows", "code_rows", "decode_text", "parse_workload", "to_jsonl"]

ROWS = 64
OUTPUT_TOKENS = 128
FUNCTIONS = 12
FIRST_MULTIPLIER = 100

TOPICS = (
    "explain why an inference service must watch both throughput and latency",
    "list possible reasons cache hit rate is high yet users still wait",
    "discuss how a team picks a deployment plan that stays maintainable",
    "explain why average metrics can hide a few severe failures",
)


class Prompt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request of a workload: the text before the chat template, the output length in tokens."""

    prompt: Annotated[str, msgspec.Meta(min_length=1)]
    output_tokens: Annotated[int, msgspec.Meta(ge=1)]


def code_rows() -> tuple[Prompt, ...]:
    """64 prompts, each with the same file and another function and number to change."""
    source = "\n\n".join(_scale_function(index) for index in range(FUNCTIONS))
    return tuple(
        Prompt(prompt=f"{_code_request(row)}\n{source}", output_tokens=OUTPUT_TOKENS)
        for row in range(ROWS)
    )


def chat_rows() -> tuple[Prompt, ...]:
    """64 prompts over four topics; the case number in front keeps them distinct."""
    return tuple(
        Prompt(
            prompt=f"Case {row}: Please write two full paragraphs that {topic}.",
            output_tokens=OUTPUT_TOKENS,
        )
        for row, topic in enumerate(TOPICS * (ROWS // len(TOPICS)))
    )


def parse_workload(text: str, where: str) -> tuple[Prompt, ...]:
    """Rows of ``prompt`` and ``output_tokens``, in the order of the file.

    Raises:
        InputError: no rows, or a broken one; names its line.
    """
    rows = parse_rows(text, where, Prompt)
    for line, row in enumerate(rows, 1):
        if not row.prompt.strip():
            raise InputError(
                "expected a `prompt` with text, found only white space",
                where=f"{where}, line {line}",
                next_step="write a prompt or delete the line",
            )
    return rows


def _scale_function(index: int) -> str:
    return f"def scale_{index}(value):\n    return value * {index + 1}"


def _code_request(row: int) -> str:
    return (
        f"Only change the multiplier of scale_{row % FUNCTIONS} to {FIRST_MULTIPLIER + row}; "
        "keep every other function unchanged. "
        "Output the full Python file with no explanation and no code fence."
    )
