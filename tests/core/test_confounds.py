"""What no flag shows: variables, preloaded libraries and the engine's version."""

import pytest
from msgspec.structs import replace

from bundle.core import confounds
from bundle.core.judging import judge
from tests import builders as made
from tests.builders import EAGLE, World, evidence, only, with_quality


def sides(given):
    return given.of("baseline"), given.of("eagle3")


def with_env(env, **changes):
    return made.change_starts(
        evidence(only(EAGLE)),
        "eagle3",
        lambda s: replace(s, run=replace(s.run, env=env, **changes)),
    )


def test_a_variable_of_one_group_alone_is_a_difference():
    found = confounds.config_differences(*sides(with_env({"OMP_NUM_THREADS": "1"})))
    assert found == ("variable OMP_NUM_THREADS: absent for baseline, 1 for eagle3",)


def test_a_variable_that_both_groups_set_alike_is_no_difference():
    given = with_env({"OMP_NUM_THREADS": "4"})
    alike = made.change_starts(
        given, "baseline", lambda s: replace(s, run=replace(s.run, env={"OMP_NUM_THREADS": "4"}))
    )
    assert confounds.config_differences(*sides(alike)) == ()


@pytest.mark.parametrize(
    "name", ["PATH", "LD_PRELOAD", "VLLM_CACHE_ROOT", "VLLM_USE_V2_MODEL_RUNNER"]
)
def test_places_and_the_path_of_the_engine_are_none(name):
    assert confounds.config_differences(*sides(with_env({name: "x"}))) == ()


def test_what_is_preloaded_is_compared_by_name():
    given = with_env({}, preloaded=("libiomp5.so",))
    found = confounds.config_differences(*sides(given))
    assert found == ("preloaded: nothing for baseline, libiomp5.so for eagle3",)


def test_another_version_of_the_engine_is_a_difference():
    facts = {"baseline": {"engine_version": "0.32.0"}, "eagle3": {"engine_version": "0.33.0"}}
    given = evidence(only(EAGLE), World(facts=facts))
    assert confounds.config_differences(*sides(given)) == (
        "vLLM 0.32.0 for baseline, 0.33.0 for eagle3",
    )


def test_such_a_comparison_is_invalid_however_fast():
    fast = evidence(only(EAGLE), World(speed={"eagle3": 1.5}, noise=0.005))
    given = made.change_starts(
        with_quality(fast, group="eagle3"),
        "eagle3",
        lambda s: replace(s, run=replace(s.run, env={"OMP_NUM_THREADS": "64"})),
    )
    verdict = judge(given).verdicts[0]
    assert verdict.verdict == "INVALID"
    assert "variable OMP_NUM_THREADS" in verdict.reasons[0]
