"""Break-even out of evidence: which counts may be divided, and whose replies count."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bundle.core.acceptance import acceptance_of_starts
from bundle.core.effects import fit_all
from bundle.core.explain import break_even_of
from tests import builders as made
from tests.builders import EAGLE, NGRAM, World, evidence, only, with_quality


def rows(given):
    groups = [g for g in given.recipe.groups if g.speculative]
    accepted = [
        row
        for g in groups
        for row in acceptance_of_starts(given.of(g.name), k=g.speculative.num_speculative_tokens)
    ]
    return {row.group: row for row in break_even_of(given, fit_all(given), accepted)}


DIVIDED = [
    "proposals shorter than k",
    "rejected drafts",
    "rounds without a draft",
    "longer rounds (proposing and verifying)",
]
UNDIVIDED = ["rejected or missing drafts", "longer rounds (proposing and verifying)"]


@pytest.mark.parametrize(
    ("runners", "ngram", "eagle"),
    [
        ({"ngram": "V2", "eagle3": "V2"}, UNDIVIDED, DIVIDED),
        ({"ngram": "V2", "eagle3": "V1"}, UNDIVIDED, DIVIDED),
        ({"ngram": "V1", "eagle3": "V2"}, DIVIDED, DIVIDED),
    ],
)
def test_coverage_of_ngram_means_something_under_v1_alone(runners, ngram, eagle):
    facts = {group: {"runner": runner} for group, runner in runners.items()}
    found = rows(evidence(only(NGRAM, EAGLE), World(facts=facts)))
    assert [loss.name for loss in found["ngram"].losses] == ngram
    assert [loss.name for loss in found["eagle3"].losses] == eagle


def test_the_quality_pass_predicts_by_replies_of_the_task_that_have_figures():
    """Every reply: 5 tokens, 2 of them accepted: 4 behind the first one in 2 rounds."""
    long = tuple(range(500))
    others = (
        made.reply("chat", tokens=long, spec=made.STATS, task="chat"),
        made.reply("bare", tokens=long),
    )
    given = made.change_starts(
        with_quality(evidence(only(EAGLE)), count=5, group="eagle3"),
        "eagle3",
        lambda s: replace(s, replies=(*s.replies, *others)),
    )
    row = rows(given)["eagle3"]
    assert row.predicted_from == "tokens per round of the quality pass"
    assert row.predicted * row.break_even == pytest.approx(2.0)
