"""Pooling: sums first, ratios last, None without a denominator; counts held against each other."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bundle.core import acceptance
from bundle.core.records import SpecStats
from bundle.core.results import Acceptance
from tests import builders as made
from tests.builders import EAGLE, World, evidence, only, with_quality


def pooled(*stats, k=3):
    return acceptance.pool_requests(stats, group="g", task="t", k=k, runner="V1")


def test_one_request_of_a_documented_example():
    # vLLM's own example of per-request counters: 43 rounds of 3, of which 39 accepted nothing.
    one = pooled(SpecStats(accepted=10, drafted=129, rounds=43, histogram=(39, 1, 0, 3)))
    assert one.rate == pytest.approx(0.0775, abs=1e-4)
    assert one.length == pytest.approx(1.2326, abs=1e-4)
    assert one.per_position == (4 / 43, 3 / 43, 3 / 43)


def test_sums_first_ratios_last():
    a = SpecStats(accepted=1, drafted=2, rounds=1, histogram=(0, 1))
    b = SpecStats(accepted=0, drafted=98, rounds=49, histogram=(49, 0))
    assert pooled(a, b, k=1).rate == 0.01


def test_nothing_drafted_is_none_and_not_zero():
    none = pooled(SpecStats(accepted=0, drafted=0, rounds=0, histogram=(0, 0)), k=1)
    assert none.rate is None
    assert none.length is None
    assert none.per_position is None
    assert none.coverage is None
    assert none.effective is None
    assert pooled().rate is None


def test_columns_of_different_length():
    assert acceptance.add_columns([(1,), (1, 2, 3), ()]) == (2, 2, 3)


def row(**changes):
    base = Acceptance(
        group="g",
        task="t",
        scope="c1",
        k=3,
        accepted=10,
        drafted=30,
        rounds=10,
        requests=2,
        histogram=(1, 2, 3, 4),
        per_position_counts=(9, 7, 4),
        decode_rounds=20,
        output_tokens=32,
        runner="V2",
    )
    return replace(base, **changes)


def test_pooling_adds_everything():
    (one,) = acceptance.pool([row(), row()])
    assert (one.accepted, one.drafted, one.rounds, one.requests) == (20, 60, 20, 4)
    assert one.histogram == (2, 4, 6, 8)
    assert one.coverage == 0.5
    assert one.effective == pytest.approx(60 / 40)


@pytest.mark.parametrize(
    "other", [{"runner": "V1"}, {"task": "u"}, {"scope": "c8"}, {"group": "h"}, {"k": 4}]
)
def test_what_is_never_pooled(other):
    assert len(acceptance.pool([row(), row(**other)])) == 2


def test_half_a_sum_is_no_denominator():
    (one,) = acceptance.pool([row(), row(decode_rounds=None, histogram=None)])
    assert one.decode_rounds is None
    assert one.coverage is None
    assert one.histogram is None
    assert one.output_tokens == 64


def test_starts_give_the_quality_pass_and_every_cell():
    given = with_quality(evidence(only(EAGLE)), group="eagle3")
    rows = acceptance.acceptance_of_starts(given.of("eagle3"), k=3)
    assert [r.scope for r in rows] == ["c8", "quality"]
    quality = rows[1]
    assert quality.requests == 390
    assert quality.length == 2
    assert acceptance.acceptance_of_starts(given.of("baseline"), k=3) == ()


def test_replies_without_figures_give_no_row():
    given = with_quality(evidence(only(EAGLE)), group="eagle3")
    bare = made.change_starts(
        given,
        "eagle3",
        lambda s: replace(
            s, facts=None, replies=tuple(replace(r, speculative=None) for r in s.replies)
        ),
    )
    rows = acceptance.acceptance_of_starts(bare.of("eagle3"), k=3)
    assert [r.scope for r in rows] == ["c8"]
    assert rows[0].runner is None


# Counts of real servers on one H200 (135M target, 10 warming requests among them).
REAL = [
    ({"decode_rounds": 21715, "generation_tokens": 33846, "requests_finished": 266,
      "accepted": 12150, "rounds": 5834, "drafted": 23329}, 285),
    ({"decode_rounds": 21530, "generation_tokens": 33846, "requests_finished": 266,
      "accepted": 12374, "rounds": 21530, "drafted": 86120}, 324),
    ({"decode_rounds": 33580, "generation_tokens": 33846, "requests_finished": 266,
      "accepted": 0, "rounds": 33580, "drafted": 100740}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("counts", "over"), REAL)
def test_trimming_of_real_servers_is_within_the_documented_range(counts, over):
    plain = made.counters(10, 100, EAGLE, World())
    counters = replace(plain, **counts)
    assert acceptance.trimmed(counters) == over
    assert acceptance.check_trimming(counters, k=4).problems == ()


@pytest.mark.parametrize("accepted", [12150 - 286, 12150 + 4 * 266])
def test_trimming_beyond_the_documented_range(accepted):
    plain = made.counters(10, 100, EAGLE, World())
    counters = replace(plain, **{**REAL[0][0], "accepted": accepted})
    assert acceptance.check_trimming(counters, k=4).problems


def test_a_server_without_drafts_has_nothing_to_trim():
    plain = made.counters(10, 100, made.BASE, World())
    assert acceptance.trimmed(plain) is None
    assert acceptance.check_trimming(plain, k=4).compared == ()
    cell = evidence(only(EAGLE)).of("baseline")[0].cells[0]
    assert acceptance.of_cell(cell, group="g", k=1, runner=None) is None


def test_drafts_of_which_none_was_accepted_count_as_none():
    cell = evidence(only(EAGLE)).of("eagle3")[0].cells[0]
    nothing = replace(cell.counters, rounds=0, drafted=0, accepted=0)
    row = acceptance.of_cell(replace(cell, counters=nothing), group="g", k=3, runner="V1")
    assert (row.accepted, row.drafted, row.rounds) == (0, 0, 0)


@pytest.mark.parametrize(("accepted", "over"), [(12150 - 285, 0), (12150 - 285 + 1064, 1064)])
def test_trimming_at_the_ends_of_the_documented_range(accepted, over):
    """266 requests of k = 4: from nothing to 1,064 tokens that were never delivered."""
    plain = made.counters(10, 100, EAGLE, World())
    counters = replace(plain, **{**REAL[0][0], "accepted": accepted})
    found = acceptance.check_trimming(counters, k=4)
    assert found.compared == (f"{over} accepted tokens not delivered, possible 0 to 1064",)
    assert found.problems == ()


def test_requests_against_metrics():
    replies = [made.reply(spec=made.STATS)] * 2
    counters = replace(
        made.counters(2, 8, EAGLE, World()), accepted=4, drafted=8, rounds=4, per_position=(2, 2, 0)
    )
    assert acceptance.check_requests(replies, counters).problems == ()
    wrong = acceptance.check_requests(replies, replace(counters, accepted=5))
    assert wrong.problems == ("accepted: 4 by request, 5 in /metrics",)
    assert acceptance.check_requests(replies, None).compared == ()
    assert acceptance.check_requests(replies, replace(counters, rounds=None)).compared == ()
    assert acceptance.check_requests([], counters).compared == ()
    assert acceptance.check_requests([*replies, made.reply()], counters).compared == ()


def test_cross_check_reaches_the_checklist():
    from bundle.core.judging import judge

    given = with_quality(evidence(only(EAGLE)), group="eagle3")
    counters = replace(made.counters(2, 8, EAGLE, World()), accepted=1)
    given = made.change_starts(given, "eagle3", lambda s: replace(s, quality_counters=counters))
    found = [f for f in judge(given).findings if f.id == "acceptance-mismatch"]
    assert found[0].state == "TRIGGERED"
    assert "by request" in found[0].evidence
