"""Order of runs, cells, argument vectors."""

from pathlib import Path

import msgspec
import pytest

from bundle.core.design import (
    baseline,
    cells,
    expanded_groups,
    flag_vector,
    narrowed,
    planned_runs,
    serve_vector,
    speculative_config,
)
from bundle.core.recipe import Recipe, Sweep
from bundle.core.recipe_reading import parse_recipe

RECIPES = Path(__file__).parents[2] / "recipes"


def recipe(name: str) -> Recipe:
    file = RECIPES / f"{name}.toml"
    return parse_recipe(file.read_text(), str(file))


@pytest.fixture
def qwen() -> Recipe:
    return recipe("qwen3-8b")


def test_a_block_has_the_baseline_first_and_last_and_every_second_block_is_reversed(
    qwen: Recipe,
) -> None:
    by_block: dict[int, list[str]] = {}
    for run in planned_runs(qwen):
        by_block.setdefault(run.block, []).append(run.group)
    assert by_block[1][0] == by_block[1][-1] == "baseline"
    assert by_block[2] == by_block[1][::-1]
    assert by_block[3] == by_block[1]


@pytest.mark.parametrize(("primer", "count"), [("none", 0), ("baseline", 1), ("each", 7)])
def test_primers_come_first_and_carry_no_quality_pass(
    qwen: Recipe, primer: str, count: int
) -> None:
    design = msgspec.structs.replace(qwen.design, primer=primer)
    runs = planned_runs(msgspec.structs.replace(qwen, design=design))
    primers = [run for run in runs if run.block == 0]
    assert len(primers) == count
    assert runs[:count] == tuple(primers)
    assert not any(run.quality for run in primers)
    assert all(run.folder.startswith("primer/") for run in primers)


def test_more_rounds_extend_the_plan_and_change_nothing_before(qwen: Recipe) -> None:
    more = narrowed(qwen, rounds=5)
    assert planned_runs(more)[: len(planned_runs(qwen))] == planned_runs(qwen)


def test_only_the_named_blocks_carry_a_quality_pass() -> None:
    runs = planned_runs(recipe("smollm2-135m"))
    assert {run.block for run in runs if run.quality} == {1}


def test_a_sweep_expands_into_groups_that_change_one_variable(qwen: Recipe) -> None:
    sweep = Sweep(num_speculative_tokens=(1, 2, 4), prompt_lookup=((2, 4), (3, 6)))
    groups = [
        msgspec.structs.replace(g, sweep=sweep) if g.name == "ngram" else g for g in qwen.groups
    ]
    expanded = expanded_groups(msgspec.structs.replace(qwen, groups=tuple(groups)))
    names = [g.name for g in expanded]
    assert names[1:5] == ["ngram", "ngram-k1", "ngram-k2", "ngram-w3-6"]
    one = expanded[names.index("ngram-w3-6")].speculative
    assert one is not None
    assert (one.num_speculative_tokens, one.prompt_lookup_min, one.prompt_lookup_max) == (4, 3, 6)
    assert all(g.sweep is None for g in expanded)


def test_cells_are_tasks_by_loads_unless_a_load_or_group_names_its_tasks(qwen: Recipe) -> None:
    group = baseline(qwen)
    assert [c.key for c in cells(qwen, group)] == [
        "code-c1",
        "code-c8",
        "code-r4",
        "chat-c1",
        "chat-c8",
        "chat-r4",
    ]
    only_chat = msgspec.structs.replace(qwen.loads[2], tasks=("chat",))
    fewer = msgspec.structs.replace(qwen, loads=(*qwen.loads[:2], only_chat))
    assert "code-r4" not in [c.key for c in cells(fewer, group)]
    coder = msgspec.structs.replace(group, tasks=("code",))
    assert {c.task for c in cells(qwen, coder)} == {"code"}


def test_flags_true_is_bare_and_false_is_left_out() -> None:
    assert flag_vector({"a": True, "b": False, "c": 0.85, "d": "x"}) == [
        "--a",
        "--c",
        "0.85",
        "--d",
        "x",
    ]


def test_only_a_speculative_server_gets_the_metrics_flag(qwen: Recipe) -> None:
    models = {"target": "T", "draft": "D", "eagle3": "E"}
    for group in qwen.groups:
        vector = serve_vector(qwen, group, port=8000, models=models)
        speculative = group.role == "method"
        assert ("--per-request-spec-decode-metrics" in vector) is speculative
        assert ("--speculative-config" in vector) is speculative


def test_a_hub_helper_is_pinned_and_a_local_one_needs_no_revision(qwen: Recipe) -> None:
    draft = next(g for g in qwen.groups if g.name == "draft")
    by_repo = speculative_config(qwen, draft, {"draft": "Qwen/Qwen3-0.6B"})
    assert by_repo is not None
    assert by_repo["revision"] == "c1899de289a04d12100db370d81485cdf75e47ca"
    local = speculative_config(qwen, draft, {"draft": "snapshots/draft"})
    assert local is not None
    assert "revision" not in local
    vector = serve_vector(
        qwen, baseline(qwen), port=1, models={"target": "Qwen/Qwen3-8B", "draft": "", "eagle3": ""}
    )
    assert vector[vector.index("--revision") + 1] == "b968826d9c46dd6066d109eabc6255188de91218"


def test_narrowing_keeps_the_baseline_and_the_matched_baseline_of_what_stays(qwen: Recipe) -> None:
    small = narrowed(qwen, rounds=1, groups=["suffix"], tasks=["code"], concurrency=[8])
    assert [g.name for g in small.groups] == ["baseline", "suffix", "baseline-v1-sync"]
    assert [w.task for w in small.workloads] == ["code"]
    assert [x.label for x in small.loads] == ["c8"]
    assert small.design.rounds == 1
    assert narrowed(qwen) == qwen
