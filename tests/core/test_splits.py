"""A matched baseline belongs to the methods it names and splits the deciding metrics."""

import pytest
from msgspec.structs import replace

from bundle.core.effects import fit_all
from bundle.core.recipe import Group
from bundle.core.splits import SPLIT_METRICS, matched, split_rows
from tests.builders import EAGLE, NGRAM, World, evidence, only

FORCED = Group(
    name="forced", role="matched-baseline", matches=("ngram",), flags={"async-scheduling": False}
)


def rows(**speed):
    given = evidence(only(NGRAM, EAGLE, FORCED), World(speed=speed, noise=1e-6))
    return given, split_rows(given, fit_all(given))


def test_a_matched_baseline_is_that_of_the_groups_it_names():
    given, _ = rows()
    assert matched(given) == {"ngram": "forced"}


def test_engine_path_and_speculation_multiply_to_the_whole_effect():
    _, found = rows(ngram=1.2, forced=0.8, eagle3=2.0)
    assert {row.metric for row in found} == set(SPLIT_METRICS)
    assert {(row.group, row.matched) for row in found} == {("ngram", "forced")}
    tpot = next(row for row in found if row.metric == "tpot")
    assert tpot.path_ratio == pytest.approx(0.8, rel=1e-4)
    assert tpot.spec_ratio == pytest.approx(1.5, rel=1e-4)


def test_without_the_matched_baselines_starts_nothing_is_split():
    given, _ = rows()
    lone = replace(given, starts=tuple(s for s in given.starts if s.run.group != "forced"))
    assert split_rows(lone, fit_all(lone)) == ()
