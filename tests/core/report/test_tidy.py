"""The tidy table of cells: a row for every planned cell, units in the names."""

import msgspec
import pytest

from bundle.core.report.tidy import FIXED, MEASURED, Tidy, tidy
from bundle.core.results import CellStats, FailedRun
from tests import builders_report as b

replace = msgspec.structs.replace


def stats(group: str, metric: str, unit: str, values: dict[str, float], load: str = "c8"):
    return CellStats(
        group=group,
        task="code",
        load=load,
        metric=metric,
        unit=unit,
        values=tuple(values.values()),
        starts=tuple(values),
    )


def failure(folder: str, cell: str | None, cause: str) -> FailedRun:
    group = folder.partition("-")[2]
    return FailedRun(folder=folder, group=group, cell=cell, cause=cause, text="", line=None)


@pytest.fixture
def table() -> Tidy:
    recipe = b.recipe(("ngram",), ("code",), (1, 8), rounds=2)
    results = replace(
        b.mixed(),
        cells=(
            stats("baseline", "tpot", "ms", {"1/0-baseline": 40.5, "1/2-baseline": 41.0}),
            stats("ngram", "tpot", "ms", {"1/1-ngram": 30.0}),
            stats("ngram", "output_throughput", "tok/s", {"1/1-ngram": 900.0}),
            stats("ngram", "energy per output token", "J/token", {"1/1-ngram": 0.3}),
            stats("ngram", "own thing", "kB", {"1/1-ngram": 7.0}),
            stats("other", "tpot", "ms", {"9/3-other": 1.0}, "r2"),
        ),
        failed=(
            failure("1/1-ngram", "code-c1", "failed-requests"),
            failure("2/1-ngram", None, "out-of-memory"),
        ),
    )
    return tidy(results, recipe)


def records(table: Tidy) -> list[dict[str, object]]:
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def row(table: Tidy, start: str, load: str) -> dict[str, object]:
    (found,) = (r for r in records(table) if (r["start"], r["load"]) == (start, load))
    return found


def test_every_planned_cell_has_one_row_in_the_order_of_runs(table: Tidy) -> None:
    places = [(r["start"], r["load"]) for r in records(table)]
    starts = ["1/0-baseline", "1/1-ngram", "1/2-baseline"]
    starts += ["2/0-baseline", "2/1-ngram", "2/2-baseline"]
    assert places[:-1] == [(start, load) for start in starts for load in ("c1", "c8")]
    assert places[-1] == ("9/3-other", "r2")
    assert len(set(places)) == len(places)


def test_a_measured_cell_says_what_it_is(table: Tidy) -> None:
    found = row(table, "1/1-ngram", "c8")
    expected = {
        "block": 1,
        "position": 1,
        "group": "ngram",
        "role": "method",
        "method": "ngram",
        "num_speculative_tokens": 4,
        "task": "code",
        "concurrency": 8,
        "request_rate_per_s": None,
        "requests": 200,
        "status": "ok",
        "cause": None,
        "tpot_ms": 30.0,
        "output_throughput_tok_per_s": 900.0,
        "energy_per_output_token_j": 0.3,
        "own_thing_kb": 7.0,
        "ttft_ms": None,
    }
    assert {name: found[name] for name in expected} == expected
    base = row(table, "1/2-baseline", "c8")
    assert (base["role"], base["method"], base["tpot_ms"]) == ("baseline", None, 41.0)


def test_what_failed_or_never_ran_is_there_with_its_cause(table: Tidy) -> None:
    found = [
        (row(table, *place)["status"], row(table, *place)["cause"])
        for place in (
            ("1/1-ngram", "c1"),
            ("1/1-ngram", "c8"),
            ("2/1-ngram", "c8"),
            ("2/0-baseline", "c1"),
        )
    ]
    assert found == [
        ("failed", "failed-requests"),
        ("ok", None),
        ("failed", "out-of-memory"),
        ("no numbers", None),
    ]


def test_a_start_that_the_recipe_does_not_have_is_kept(table: Tidy) -> None:
    found = row(table, "9/3-other", "r2")
    assert (found["block"], found["position"], found["group"]) == (9, 3, "other")
    assert (found["role"], found["requests"], found["tpot_ms"]) == (None, None, 1.0)


def test_without_a_baseline_only_what_was_measured_is_there() -> None:
    recipe = b.recipe(("ngram",))
    results = replace(b.mixed(), cells=(stats("x", "tpot", "ms", {"odd": 1.0}),), failed=())
    made = tidy(results, replace(recipe, groups=recipe.groups[1:]))
    (found,) = records(made)
    assert (found["start"], found["group"], found["block"]) == ("odd", "odd", None)


def test_columns_are_fixed_and_each_says_what_it_is(table: Tidy) -> None:
    assert table.columns[: len(FIXED) + len(MEASURED)] == (*FIXED, *MEASURED)
    assert all(column.about for column in table.columns)
    assert {"tpot_ms", "p95_ttft_ms", "power_w", "energy_j"} <= {c.name for c in MEASURED}
