"""What the judge reads is fixed: no rule can change it for the next one, and fields have names."""

from __future__ import annotations

import pytest

from bundle.core.acceptance import check_trimming
from bundle.core.divergences import is_wide, questions
from bundle.core.evidence import Gap
from bundle.core.metrics import parse_metrics
from bundle.core.quality_pass import ChatItem
from tests import builders as made
from tests.builders import EAGLE, evidence, only


def records():
    given = evidence(only(EAGLE))
    start = given.of("eagle3")[0]
    cell = start.cell("code", "c8")
    item = ChatItem(id="q1", kind="k", task="t", messages=(("user", "?"),), max_tokens=8)
    base, mine = {"q1": made.reply()}, {"q1": made.reply(tokens=(1, 9))}
    (question,) = questions((item,), base, base, {"a": mine})
    return {
        "the run": given,
        "a start": start,
        "a cell": cell,
        "its bench": cell.bench,
        "its counters": cell.counters,
        "its GPU": made.gpu(),
        "a gap": Gap(position=3, nats=0.5),
        "a page of metrics": parse_metrics("vllm:generation_tokens_total 7.0\n"),
        "a question": question,
        "a cross-check": check_trimming(cell.counters, k=3),
    }


@pytest.mark.parametrize("name", list(records()))
def test_no_rule_can_change_what_the_next_one_reads(name):
    one = records()[name]
    first, *_ = one.__struct_fields__
    with pytest.raises(AttributeError, match="immutable"):
        setattr(one, first, None)


@pytest.mark.parametrize("name", list(records()))
def test_numbers_cannot_be_mistaken_for_each_other_by_their_place(name):
    one = records()[name]
    values = [getattr(one, field) for field in one.__struct_fields__]
    with pytest.raises(TypeError, match="positional"):
        type(one)(*values)


def test_a_start_is_named_by_its_place_in_the_order_of_runs():
    given = evidence(only(EAGLE))
    assert [s.folder for s in given.starts[:4]] == [
        "1/0-baseline",
        "1/1-eagle3",
        "1/2-baseline",
        "2/0-baseline",
    ]
    assert given.starts[0].cell("code", "c1") is None


def test_a_gap_of_which_no_token_is_told_is_judged_by_its_width():
    assert not is_wide(Gap(position=0, nats=1.0))
    assert is_wide(Gap(position=0, nats=1.01))
