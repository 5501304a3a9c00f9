"""What the starts saw of the compile cache, in sentences."""

import pytest
from msgspec.structs import replace

from bundle.core.notes import notes_of
from bundle.core.start_facts import cache_state, launches
from tests import builders as made
from tests.builders import EAGLE, evidence, only, recipe


def seen(*, meant="warm", first=None, rest=None):
    """Evidence whose first block saw one thing, every later one another."""
    given = evidence(only(EAGLE, design=replace(recipe().design, compile_cache=meant)))

    def change(start):
        done = first if start.run.block == 1 else rest
        return replace(start, facts=replace(start.facts, compilation=done))

    for group in ("baseline", "eagle3"):
        given = made.change_starts(given, group, change)
    return given


def about_the_cache(given):
    return [n for n in notes_of(given, (), ()) if "compile" in n]


@pytest.mark.parametrize(
    ("given", "note"),
    [
        (
            seen(first="loaded", rest="loaded"),
            "Every start found the compile cache warm, as the recipe describes.",
        ),
        (
            seen(meant="cold", first="compiled", rest="compiled"),
            "Every start found the compile cache cold, as the recipe describes.",
        ),
        (
            seen(meant="none", first="none", rest="none"),
            "No server compiled anything, so that no compile cache plays a part.",
        ),
        (
            seen(first="compiled", rest="loaded"),
            "The recipe describes a compile cache that every start finds warm; seen were: "
            "baseline 2 cold, 4 warm; eagle3 1 cold, 2 warm. Sizes of the KV cache are compared "
            "between starts of one state only.",
        ),
        (
            seen(),
            "What state the starts found the compile cache in is not known: the engine does not "
            "say what it loaded.",
        ),
    ],
)
def test_the_compile_cache_as_it_was_seen(given, note):
    assert about_the_cache(given) == [note]


def test_without_a_server_nothing_is_said():
    given = evidence(only(EAGLE))
    assert about_the_cache(replace(given, starts=())) == []


def start(before, done):
    one = evidence(only(EAGLE)).starts[0]
    return replace(
        one,
        run=replace(one.run, cache_before=before),
        facts=replace(one.facts, compilation=done),
    )


@pytest.mark.parametrize(
    ("before", "done", "state"),
    [
        ("filled", "loaded", "warm"),
        ("filled", "compiled", "cold"),
        ("filled", "in part", "partly warm"),
        ("empty", "none", "unused"),
        ("empty", None, "cold"),
        ("filled", None, ""),
        (None, None, ""),
    ],
)
def test_the_engines_word_comes_before_the_folder(before, done, state):
    assert cache_state(start(before, done)) == state


def test_launches_go_by_the_state_they_found():
    cold, warm = start("empty", None), start("filled", "loaded")
    dead = replace(made.failed_start(cold), run=replace(cold.run, cache_before="empty"))
    mute = replace(cold, facts=replace(cold.facts, kv_cache_tokens=None))
    assert launches([cold, warm, warm, dead, mute]) == {
        "cold": (100_000,),
        "warm": (100_000, 100_000),
    }
    assert cache_state(dead) == "cold"
