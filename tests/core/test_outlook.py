"""What a run will take: hours and memory from the recipe and the models' shapes."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from bundle.core.fit import ModelFacts
from bundle.core.outlook import (
    START_SECONDS,
    hours_text,
    memory_lines,
    memory_of_groups,
    outlook,
    outlook_lines,
)
from bundle.core.recipe import Recipe
from bundle.core.recipe_reading import parse_recipe

RECIPES = Path(__file__).resolve().parents[2] / "recipes"


def _recipe(name: str) -> Recipe:
    return parse_recipe((RECIPES / f"{name}.toml").read_text(), name)


def _facts(name: str) -> ModelFacts:
    (file,) = (RECIPES / "configs").glob(f"*{name}@*.json")
    return ModelFacts(config=json.loads(file.read_text()))


def test_capacity_is_near_what_a_real_server_said() -> None:
    """vLLM 0.32.0 on an H200 (143,771 MiB), Qwen3-8B's shape: 742,592 tokens of KV."""
    facts = {"target": _facts("Qwen3-8B"), "draft": _facts("Qwen3-0.6B")}
    rows = memory_of_groups(_recipe("qwen3-8b"), facts, device_bytes=143_771 * 1024**2)
    found = {row.group: row for row in rows}
    capacity = found["baseline"].capacity
    assert capacity is not None
    assert capacity.tokens == pytest.approx(742_592, rel=0.03)
    assert found["baseline"].target.weights / 1024**3 == pytest.approx(15.27, abs=0.02)
    draft = found["draft"]
    assert draft.helper is not None
    assert (draft.target.kv_per_token, draft.helper.kv_per_token) == (147_456, 114_688)
    assert not found["eagle3"].known
    assert found["eagle3"].capacity is None
    lines = list(memory_lines(rows))
    assert "44% less than without the helper" in lines[2]
    assert lines[3].endswith("a helper whose configuration is not known here yet")


def test_without_a_device_no_capacity_is_told() -> None:
    rows = memory_of_groups(_recipe("qwen3-8b"), {"target": _facts("Qwen3-8B")}, device_bytes=None)
    assert next(iter(memory_lines(rows))) == "baseline: weights 15.26 GiB, KV 144 KiB/token"


def test_time_is_starts_cells_and_quality() -> None:
    recipe = _recipe("mimo-7b-mtp")
    weights = 16_000_000_000
    found = outlook(recipe, weights, items=100, bandwidth=4.8e12)
    step = weights / (4.8e12 * 0.65)
    assert found.starts == 11
    assert found.start_seconds == pytest.approx(11 * (START_SECONDS["cuda"] + 25))
    one = sum(
        (load.requests / load.concurrency if load.concurrency else 1) * 128 * step
        + (load.requests / load.request_rate if load.request_rate else 0)
        for load in recipe.loads
        for _ in recipe.workloads
    )
    assert found.cell_seconds == pytest.approx(9 * one)
    tokens = recipe.quality.max_tokens
    assert tokens is not None
    assert found.quality_seconds == pytest.approx(
        9 * 100 * tokens * step / recipe.quality.concurrency
    )
    assert found.seconds == found.start_seconds + found.cell_seconds + found.quality_seconds
    (line,) = outlook_lines(found)
    assert line.startswith("about ")
    assert "11 starts 21 min" in line


def test_a_slower_device_takes_longer_in_cells_alone() -> None:
    recipe = _recipe("qwen3-8b")
    fast, slow = (outlook(recipe, 10**10, items=9, bandwidth=b) for b in (4e12, 2e12))
    assert slow.start_seconds == fast.start_seconds
    assert slow.cell_seconds > fast.cell_seconds
    assert slow == outlook(recipe, 10**10, items=9), "the default device"


def test_no_quality_pass_takes_no_time() -> None:
    recipe = _recipe("qwen3-8b")
    off = msgspec.structs.replace(
        recipe, quality=msgspec.structs.replace(recipe.quality, enabled=False, max_tokens=None)
    )
    assert outlook(off, 10**10, items=9).quality_seconds == 0


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.0, "1 min"), (3660.0, "61 min"), (9000.0, "2.5 h")]
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert hours_text(seconds) == text
