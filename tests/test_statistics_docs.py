"""docs/statistics.md against the judge: its code computes the report's intervals again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from bundle.core.design import cells
from bundle.core.effects import METRICS
from bundle.core.evidence import Evidence
from bundle.core.judging import judge
from bundle.core.recipe_reading import parse_recipe
from bundle.core.report.tidy import tidy
from bundle.host.tables import csv
from tests.builders import EAGLE, World, evidence, only, recipe

CHECKOUT = Path(__file__).parents[1]
RECIPES = CHECKOUT / "recipes"
TEXT = (CHECKOUT / "docs" / "statistics.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
COLUMNS = {metric: f"{metric}_ms" for metric in METRICS} | {
    "output_throughput": "output_throughput_tok_per_s"
}


@pytest.fixture(scope="module")
def gain() -> Callable[..., tuple[float, float, float]]:
    names: dict[str, Callable[..., tuple[float, float, float]]] = {}
    exec(BLOCKS[0], names)  # noqa: S102 - the page's own code is what is tested
    return names["gain"]


def without(given: Evidence, *folders: str) -> Evidence:
    starts = tuple(s for s in given.starts if s.folder not in folders)
    return Evidence(recipe=given.recipe, starts=starts)


def drifting(**speed: float) -> World:
    return World(speed=dict(speed), noise=0.05, drift=0.1, seed=5)


CASES = {
    "two methods, three blocks": evidence(recipe(), drifting(ngram=1.3, eagle3=1.6)),
    "one method": evidence(only(EAGLE), drifting(eagle3=1.2)),
    "failed starts": without(evidence(recipe(), drifting(ngram=0.8)), "1/3-baseline", "2/1-eagle3"),
    "a method that never started": without(
        evidence(recipe(), drifting()), "1/2-eagle3", "2/1-eagle3", "3/2-eagle3"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_page_computes_every_interval_again(
    name: str, gain: Callable[..., tuple[float, float, float]], tmp_path: Path
) -> None:
    results = judge(CASES[name])
    (tmp_path / "cells.csv").write_bytes(csv(tidy(results, CASES[name].recipe)))
    table = pd.read_csv(tmp_path / "cells.csv")
    rows = [row for row in results.effects if row.lower is not None]
    assert {row.metric for row in rows} >= {"tpot", "output_throughput", "p95_ttft"}
    for row in rows:
        found = gain(table, row.group, row.task, row.load, COLUMNS[row.metric])
        assert found == pytest.approx((row.ratio, row.lower, row.upper), rel=1e-9)


def test_the_example_asks_for_a_cell_of_the_demonstration() -> None:
    name, *cell = re.findall(r'"([^"]+)"', BLOCKS[1])
    assert name.startswith("smollm2-135m-")
    made = parse_recipe((RECIPES / "smollm2-135m.toml").read_text(), "smollm2-135m.toml")
    group, task, load, column = cell
    assert group in {g.name for g in made.groups}
    assert (task, load) in {(c.task, c.load) for c in cells(made, made.groups[0])}
    assert column in COLUMNS.values()
