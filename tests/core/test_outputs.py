"""Outputs against outputs: what counts as a reply, and where the first difference lies."""

import pytest
from msgspec.structs import replace

from bundle.core.outputs import EARLY_TOKENS, compare_outputs, replies_by_item
from tests import builders as made
from tests.builders import EAGLE, evidence, only, recipe

LONG = tuple(range(100, 100 + EARLY_TOKENS + 2))


def other_at(position):
    return (*LONG[:position], 7, *LONG[position + 1 :])


@pytest.mark.parametrize(
    ("text", "ids", "kept"), [("", None, False), ("a", None, True), ("", (1,), True)]
)
def test_an_error_is_a_reply_where_something_came_before_it(text, ids, kept):
    broken = made.reply("q", text=text, token_ids=ids, error="HTTP 500")
    assert list(replies_by_item([broken])) == (["q"] if kept else [])


@pytest.mark.parametrize(("position", "early"), [(EARLY_TOKENS - 1, 1), (EARLY_TOKENS, 0)])
@pytest.mark.parametrize("side", ["method", "last baseline"])
def test_a_difference_is_early_within_the_first_sixteen_tokens(side, position, early):
    given = evidence(only(EAGLE, design=replace(recipe().design, rounds=1)))
    first, method, last = (
        replace(start, replies=(made.reply("q", tokens=tokens),))
        for start, tokens in zip(
            given.starts,
            (
                LONG,
                other_at(position) if side == "method" else LONG,
                LONG if side == "method" else other_at(position),
            ),
            strict=True,
        )
    )
    found = compare_outputs((first, last), (method,))
    assert (found.early, found.aa_early) == ((early, 0) if side == "method" else (0, early))
    assert [d.position for d in found.divergences] == ([position] if side == "method" else [])
