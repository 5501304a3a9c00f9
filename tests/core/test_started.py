"""Recorded starts against the recipe, and a resolved recipe against the whole one."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from bundle.core.design import expanded_groups, narrowed
from bundle.core.recipe import Group, Load, Recipe, Sweep
from bundle.core.started import narrowing_problem, vector_problem
from tests import builders as made

RECIPE = made.recipe()
VECTOR = made.run_record(RECIPE, made.EAGLE, 1, 2).argv


def changed(k: int) -> Group:
    spec = replace(made.EAGLE.speculative, num_speculative_tokens=k)
    return replace(made.EAGLE, speculative=spec)


def test_paths_ports_and_the_order_of_keys_say_nothing() -> None:
    for group in (made.BASE, made.NGRAM, made.EAGLE):
        argv = made.run_record(RECIPE, group, 1, 2).argv
        assert vector_problem(RECIPE, group, argv) is None
        assert vector_problem(RECIPE, group, argv[argv.index("serve") :]) is None
    words = list(VECTOR)
    words[-1] = json.dumps(dict(reversed(json.loads(words[-1]).items())))
    assert vector_problem(RECIPE, made.EAGLE, words) is None


def test_another_k_is_another_recipe() -> None:
    problem = vector_problem(RECIPE, changed(7), VECTOR)
    assert problem is not None
    assert '"num_speculative_tokens":7' in problem


def test_other_arguments_are_named() -> None:
    extra = vector_problem(RECIPE, made.EAGLE, (*VECTOR, "--enforce-eager"))
    assert extra is not None
    assert "--enforce-eager" in extra
    less = vector_problem(RECIPE, made.EAGLE, VECTOR[:-2])
    assert less is not None
    assert "--speculative-config" in less
    words = ["{" if word.startswith("{") else word for word in VECTOR]
    assert vector_problem(RECIPE, made.EAGLE, words) is not None
    words = ["3" if word.startswith("{") else word for word in VECTOR]
    assert vector_problem(RECIPE, made.EAGLE, words) is not None
    assert vector_problem(RECIPE, made.EAGLE, ()) is not None


def test_starred_secrets_are_not_compared() -> None:
    serve = replace(RECIPE.serve, flags={**RECIPE.serve.flags, "api-key": "open sesame"})
    recipe = replace(RECIPE, serve=serve)
    argv = made.run_record(recipe, made.BASE, 1, 0).argv
    starred = ["***" if word == "open sesame" else word for word in argv]
    assert vector_problem(recipe, made.BASE, starred) is None


def groups_of(recipe: Recipe) -> dict[str, Group]:
    return {group.name: group for group in expanded_groups(recipe)}


def test_a_narrowed_recipe_is_its_own() -> None:
    small = narrowed(
        RECIPE, rounds=1, groups=("ngram",), tasks=("code",), concurrency=(8,), quality=False
    )
    assert narrowing_problem(RECIPE, small, groups_of(RECIPE)) is None
    assert narrowing_problem(RECIPE, RECIPE, groups_of(RECIPE)) is None


def test_sweeps_may_be_expanded_or_not() -> None:
    group = replace(made.NGRAM, sweep=Sweep(num_speculative_tokens=(2,)))
    whole = replace(RECIPE, groups=(made.BASE, group))
    assert narrowing_problem(whole, whole, groups_of(whole)) is None
    small = narrowed(whole, groups=("ngram-k2",))
    assert narrowing_problem(whole, small, groups_of(whole)) is None


@pytest.mark.parametrize(
    ("other", "word"),
    [
        (replace(RECIPE, groups=(made.BASE, changed(7))), "group"),
        (replace(RECIPE, groups=(made.BASE, replace(made.NGRAM, name="else"))), "group else"),
        (replace(RECIPE, workloads=(replace(RECIPE.workloads[0], sha256="1" * 64),)), "a workload"),
        (replace(RECIPE, loads=(Load(concurrency=3, requests=3),)), "a load"),
        (replace(RECIPE, policy=replace(RECIPE.policy, margin=0.01)), "policy"),
        (replace(RECIPE, design=replace(RECIPE.design, seed=7)), "design"),
        (replace(RECIPE, models={}), "models"),
        (replace(RECIPE, quality=replace(RECIPE.quality, concurrency=1)), "quality"),
    ],
)
def test_anything_else_is_another_recipe(other: Recipe, word: str) -> None:
    problem = narrowing_problem(RECIPE, other, groups_of(RECIPE))
    assert problem is not None
    assert problem.startswith(word)
