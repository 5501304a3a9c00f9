"""The policy's limits out of starts: KV capacity, tails, failed requests."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bundle.core.effects import fit_all
from bundle.core.limits import group_limits, kv_needed, kv_tokens, limit_rows, load_limits
from bundle.core.recipe import Policy, Serve, Target
from bundle.core.verdict_records import limit_of_count, limit_unknown
from tests import builders as made
from tests.builders import EAGLE, World, evidence, only


def with_pools(baseline, eagle, **changes):
    """Every start of a group states the pools in turn."""
    pools = {"baseline": list(baseline), "eagle3": list(eagle)}
    given = evidence(only(EAGLE, **changes))
    counts = dict.fromkeys(pools, 0)
    starts = []
    for s in given.starts:
        own = pools[s.run.group]
        tokens = own[counts[s.run.group] % len(own)]
        counts[s.run.group] += 1
        starts.append(replace(s, facts=replace(s.facts, kv_cache_tokens=tokens)))
    return replace(given, starts=tuple(starts))


def kv(given):
    (limit,) = group_limits(given, "eagle3")
    return limit


def test_capacity_is_the_smallest_pool_against_the_largest_and_the_other_way_round():
    found = kv(with_pools([100_000, 90_000], [80_000, 72_000]))
    assert found.name == "kv-capacity"
    assert found.lower == pytest.approx(1 - 80 / 90)
    assert found.upper == pytest.approx(1 - 72 / 100)
    assert (found.state, found.limit) == ("SHOWN", 0.30)
    assert kv(with_pools([100_000], [60_000])).state == "BROKEN"
    assert kv(with_pools([100_000], [80_000, 60_000])).state == "NOT SHOWN"
    assert kv(with_pools([100_000], [70_000])).state == "SHOWN"


def test_capacity_must_hold_the_target_load_at_full_context():
    given = with_pools([8_200], [8_000])
    assert kv_needed(given) == 8 * 1000
    assert kv(given).state == "SHOWN"
    short = kv(with_pools([8_200], [8_100, 7_999]))
    assert (short.state, short.reason) == (
        "BROKEN",
        "7999 tokens left, the target load at full context needs 8000",
    )


def test_what_the_target_needs_is_not_known_at_a_rate_or_without_a_length():
    given = with_pools([8_200], [8_000])
    recipe = given.recipe
    at_rate = replace(recipe.design, target=Target(request_rate=2.0))
    assert kv_needed(replace(given, recipe=replace(recipe, design=at_rate))) is None
    bare = replace(recipe, serve=Serve(flags={"max-model-len": "auto"}))
    assert kv_needed(replace(given, recipe=bare)) is None


@pytest.mark.parametrize(("baseline", "eagle"), [([None], [80_000]), ([80_000], [None])])
def test_a_side_without_a_stated_capacity_leaves_it_unknown(baseline, eagle):
    found = kv(with_pools(baseline, eagle))
    assert (found.state, found.estimate, found.limit) == ("NOT SHOWN", None, 0.30)
    assert found.reason == "KV capacity is not known for both sides"


def test_pools_are_those_that_were_stated():
    given = with_pools([100_000, 0, None], [80_000])
    assert set(kv_tokens(given, "baseline")) == {100_000}
    silent = made.change_starts(given, "eagle3", lambda s: replace(s, facts=None))
    assert kv_tokens(silent, "eagle3") == ()


def limits(given, load="c8"):
    found = load_limits(given, fit_all(given), "eagle3", "code", load)
    return {x.name: x for x in found}


def test_the_tails_follow_the_policy_s_percentile_and_its_allowance():
    given = evidence(only(EAGLE), World(tail={"eagle3": 1.5}, noise=0.002))
    found = limits(given)
    assert list(found) == ["tail-tpot", "tail-ttft", "failed-requests"]
    assert (found["tail-tpot"].state, found["tail-ttft"].state) == ("BROKEN", "SHOWN")
    assert found["tail-tpot"].estimate == pytest.approx(0.5, abs=0.02)
    assert found["tail-tpot"].limit == 0.10
    loose = replace(given.recipe, policy=Policy(tail_worsening=0.6))
    assert limits(replace(given, recipe=loose))["tail-tpot"].state == "SHOWN"
    strict = replace(given.recipe, policy=Policy(tail_percentile=99))
    found = limits(replace(given, recipe=strict))
    assert found["tail-tpot"].reason == "unstable: 300 requests a start, 1000 needed for P99"


def test_a_tail_of_one_side_is_not_shown():
    given = evidence(only(EAGLE))
    bare = made.change_bench(given, "eagle3", percentiles={})
    found = limits(bare)["tail-tpot"]
    assert (found.state, found.reason) == ("NOT SHOWN", "no p95_tpot on both sides")
    found = limits(given, load="c64")["tail-ttft"]
    assert (found.state, found.reason) == ("NOT SHOWN", "no p95_ttft on both sides")


def test_limits_that_are_off_are_not_judged():
    off = Policy(limits_off=("kv-capacity", "tail-tpot", "failed-requests"))
    given = evidence(only(EAGLE, policy=off))
    assert group_limits(given, "eagle3") == ()
    assert list(limits(given)) == ["tail-ttft"]


@pytest.mark.parametrize(
    ("bench", "lost"),
    [
        ({}, 0),
        ({"failed": 2, "completed": 298}, 3 * 2),
        ({"failed": 0, "completed": 297}, 3 * 3),
        ({"failed": 4, "completed": 299}, 3 * 4),
    ],
)
def test_requests_that_failed_or_never_came_back_are_counted(bench, lost):
    given = made.change_bench(evidence(only(EAGLE)), "eagle3", **bench)
    found = limits(given)["failed-requests"]
    assert (found.estimate, found.limit, found.unit) == (lost, 0, "count")
    assert found.state == ("BROKEN" if lost else "SHOWN")


def test_without_a_cell_failures_are_not_known():
    given = made.change_cells(evidence(only(EAGLE)), "eagle3", lambda c: replace(c, bench=None))
    found = limits(given)["failed-requests"]
    assert (found.state, found.limit) == ("NOT SHOWN", 0)
    assert found.reason == "no cell of this load was measured"
    assert limits(evidence(only(EAGLE)), load="c64")["failed-requests"].estimate is None


def test_rows_say_what_was_not_measured_and_what_is_off():
    rows = limit_rows(
        (limit_of_count("failed-requests", 2), limit_unknown("tail-tpot", 0.1, "none")),
        ("tail-ttft",),
    )
    assert [(r.name, r.state, r.worsening, r.limit) for r in rows] == [
        ("failed-requests", "BROKEN", 2, 0),
        ("tail-tpot", "NOT MEASURED", None, 0.1),
        ("tail-ttft", "OFF", None, None),
    ]
    assert [r.reason for r in rows] == ["", "none", "switched off by the recipe"]
