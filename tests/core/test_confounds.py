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


def alone(group, **run):
    """A run in which one side's record says more than the other's."""
    return made.change_starts(
        evidence(only(EAGLE)), group, lambda s: replace(s, run=replace(s.run, **run))
    )


def configured(group, **facts):
    return evidence(only(EAGLE), World(facts={group: facts}))


MORE = {"scheduler_config": {"max_num_seqs": 16, "policy": "fcfs"}}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (
            alone("baseline", env={"OMP_NUM_THREADS": "1"}),
            ("variable OMP_NUM_THREADS: 1 for baseline, absent for eagle3",),
        ),
        (
            configured("baseline", config=MORE),
            ("scheduler_config.policy: fcfs for baseline, absent for eagle3",),
        ),
        (
            configured("eagle3", config=MORE),
            ("scheduler_config.policy: absent for baseline, fcfs for eagle3",),
        ),
        (
            configured("eagle3", enforce_eager=True),
            ("eager mode: False for baseline, True for eagle3",),
        ),
        (configured("eagle3", enforce_eager=None), ()),
    ],
)
def test_which_side_has_what_is_said(given, found):
    assert confounds.config_differences(*sides(given)) == found


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ("baseline", "--max-num-seqs: 4 for baseline, absent for eagle3"),
        ("eagle3", "--max-num-seqs: absent for baseline, 4 for eagle3"),
    ],
)
def test_a_flag_of_one_side_alone_is_a_difference(odd, said):
    given = evidence(only(EAGLE))
    argv = (*given.of(odd)[0].run.argv, "--max-num-seqs", "4")
    assert said in confounds.config_differences(*sides(alone(odd, argv=argv)))


def test_labels_of_the_cache_differ_where_both_have_them():
    mine = {"block_size": "32", "cache_dtype": "auto", "sliding_window": "None"}
    facts = {
        "baseline": {"cache_config": {"block_size": "16", "cache_dtype": "auto"}},
        "eagle3": {"cache_config": mine},
    }
    given = evidence(only(EAGLE), World(facts=facts))
    assert confounds.config_differences(*sides(given)) == (
        "cache block_size: 16 for baseline, 32 for eagle3",
    )


@pytest.mark.parametrize("odd", range(6))
def test_any_start_that_differs_from_the_first_baseline_is_found(odd):
    given = evidence(only(EAGLE))
    first = given.of("baseline")[odd]
    changed = replace(first, facts=replace(first.facts, enforce_eager=True))
    starts = tuple(changed if s is first else s for s in given.starts)
    found = confounds.config_differences(*sides(replace(given, starts=starts)))
    if odd == 0:
        others = ("baseline", "eagle3")
        assert found == tuple(f"eager mode: True for baseline, False for {x}" for x in others)
    else:
        assert found == ("eager mode: False for baseline, True for baseline",)


@pytest.mark.parametrize("dead", ["baseline", "eagle3"])
def test_without_a_start_of_both_sides_nothing_is_known(dead):
    given = made.change_starts(evidence(only(EAGLE)), dead, made.failed_start)
    assert confounds.config_differences(*sides(given)) is None
    assert confounds.engine_differences(*sides(given)) is None


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, ()),
        ({"async_scheduling": None}, None),
        ({"runner": None}, None),
        (
            {"runner": "V1", "async_scheduling": None},
            ("model runner: V2 for the baseline, V1 for the method",),
        ),
        (
            {"async_scheduling": False},
            ("async scheduling: True for the baseline, False for the method",),
        ),
        ({"attention_backend": "FLASHINFER"}, ()),
    ],
)
def test_the_engine_is_the_same_where_runner_and_scheduling_are_known(facts, found):
    assert confounds.engine_differences(*sides(configured("eagle3", **facts))) == found


def test_flags_begin_behind_the_command():
    argv = ["python", "vllm", "serve", "--model", "m", "--seed", "1"]
    assert confounds.flags_of(argv) == {"--model": "m", "--seed": "1"}


def without_vector(given, group, index):
    """The same run where one start of a group failed before it had its flags."""
    first = given.of(group)[index]
    bare = replace(made.failed_start(first), run=replace(first.run, argv=()))
    return replace(given, starts=tuple(bare if s is first else s for s in given.starts))


@pytest.mark.parametrize("index", [0, -1])
@pytest.mark.parametrize(
    ("other", "same"), [(EAGLE, False), (replace(EAGLE, speculative=None, model=None), True)]
)
def test_sides_are_the_same_by_the_starts_that_had_flags(other, same, index):
    given = evidence(only(other))
    for group in ("baseline", "eagle3"):
        assert confounds.identical(*sides(without_vector(given, group, index))) is same
    base, mine = sides(given)
    assert confounds.identical(base, ()) is None
    assert confounds.identical((), mine) is None


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
