"""Capacity against the baseline's, and what gave no numbers."""

from msgspec.structs import replace

from bundle.core.costs import capacity_rows, failed_runs
from bundle.core.records import Cause, ServerFacts
from tests import builders as made
from tests.builders import EAGLE, evidence, only


def with_facts(given, group, *facts):
    """The group's starts in order with these facts, None for a start that told nothing."""
    told = iter(facts)
    return made.change_starts(given, group, lambda s: replace(s, facts=next(told)))


def kv(tokens, **changes):
    return ServerFacts(kv_cache_tokens=tokens, **changes)


def rows(given):
    return {row.group: row for row in capacity_rows(given)}


def test_the_loss_is_of_the_mean_capacity_against_the_baselines():
    given = evidence(only(EAGLE))
    given = with_facts(given, "baseline", *map(kv, (900, 1100, 1000, 1000, 1000, 1000)))
    given = with_facts(given, "eagle3", kv(700), kv(800), kv(900))
    found = rows(given)
    assert found["baseline"].kv_loss is None
    assert found["baseline"].kv_tokens == (900, 1100, 1000, 1000, 1000, 1000)
    assert found["eagle3"].kv_loss == 1 - 800 / 1000
    assert found["eagle3"].kv_tokens == (700, 800, 900)


def test_a_fact_is_the_first_that_a_start_told():
    given = with_facts(
        evidence(only(EAGLE)), "eagle3", None, kv(None), kv(9, runner="V1", weights_gib=0.5)
    )
    found = rows(given)["eagle3"]
    assert (found.runner, found.weights_gib, found.graph_gib) == ("V1", 0.5, None)


def test_failed_starts_and_cells_are_named_in_the_order_of_runs():
    given = evidence(only(EAGLE))
    died = Cause(id="out-of-memory", text="no memory", line="CUDA out of memory")
    first, second, *rest = given.starts
    cells = (replace(second.cells[0], failed="2 failed"), *second.cells[1:])
    starts = (
        replace(first, run=replace(first.run, cause=died), cells=()),
        replace(second, cells=cells),
        *rest,
    )
    one, other = failed_runs(replace(given, starts=starts))
    assert (one.folder, one.group, one.cell, one.cause) == (
        first.folder, "baseline", None, "out-of-memory"
    )  # fmt: skip
    assert (one.text, one.line) == ("no memory", "CUDA out of memory")
    assert (other.folder, other.group, other.cause) == (second.folder, "eagle3", "failed-requests")
    assert (other.cell, other.text, other.line) == ("code-c8", "2 failed", None)
