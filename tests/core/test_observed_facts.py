"""What a report says of its two servers, where only one side or one count says it."""

from __future__ import annotations

import pytest

from bundle.core.observed import ObservedArm
from bundle.core.observed_facts import beyond, tokens_of, work_of
from tests.core.test_observations import fired, judged, report, state, timed


def evidence(raw, name):
    return next(f.evidence for f in judged(raw).findings if f.id == name)


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ({}, "runner: V1 for the baseline, V2 for the method"),
        ({"baseline": {"runner": "V0"}}, "runner: V0 for the baseline, V2 for the method"),
        ({"speculative": {"runner": "V3"}}, "runner: V1 for the baseline, V3 for the method"),
    ],
)
def test_a_cell_that_speaks_of_one_side_leaves_the_head_its_word_on_the_other(cell, found):
    raw = report([cell], runner={"baseline": "V1", "speculative": "V2"})
    assert evidence(raw, "engine-differs") == found


@pytest.mark.parametrize(
    ("facts", "plain"),
    [
        ({"method": "none"}, True),
        ({"method": "eagle3"}, False),
        ({"method": "none", "num_speculative_tokens": 2}, False),
        ({"num_speculative_tokens": 0}, True),
        ({"num_speculative_tokens": 2}, False),
    ],
)
def test_a_baseline_speculates_where_its_own_configuration_names_a_method(facts, plain):
    raw = report([timed(100, 150)], baseline_config=facts)
    wanted = "CLEAR" if plain else "TRIGGERED"
    assert state(judged(raw), "reference-not-plain-decode") == wanted


def test_a_number_of_tokens_beside_the_methods_figures_is_the_methods():
    cell = timed(100, 150)
    cell["speculative"]["num_speculative_tokens"] = 3
    assert state(judged(report([cell])), "reference-not-plain-decode") == "CLEAR"


@pytest.mark.parametrize(
    ("server", "client", "excess"),
    [(12, 10, 2), (10, 10, 0), (8, 10, 0), (None, 10, None), (10, None, None)],
)
def test_a_server_that_counts_less_than_the_client_has_no_foreign_traffic(server, client, excess):
    assert beyond(server, client) == excess


@pytest.mark.parametrize(
    ("side", "tokens"),
    [
        ({"output_tokens": 1000, "mean_output_tokens": 5, "completed": 3}, 1000),
        ({"mean_output_tokens": 100, "completed": 10, "requests": 12}, 1000),
        ({"mean_output_tokens": 100, "completed": 10}, 1000),
        ({"mean_output_tokens": 100, "requests": 12}, 1200),
    ],
)
def test_output_tokens_are_exact_where_they_are_counted(side, tokens):
    assert tokens_of(ObservedArm(**side)) == ((float(tokens),), 0.0)


@pytest.mark.parametrize(
    ("rate", "seconds", "tolerance"),
    [
        (812.4, 8.0, 0.05 / 812.4 + 0.5 / 8),
        (800.0, 12.25, 0.5 / 800 + 0.005 / 12.25),
        (0.0005, 20.0, 0.00005 / 0.0005 + 0.5 / 20),
    ],
)
def test_a_product_of_rounded_figures_is_known_to_half_of_their_last_digits(
    rate, seconds, tolerance
):
    side = ObservedArm(metrics={"output_throughput": rate}, duration_s=seconds)
    ((tokens,), allowed) = tokens_of(side)
    assert tokens == pytest.approx(rate * seconds)
    assert allowed == pytest.approx(tolerance)


def side(total=None, mean=None):
    return ObservedArm(output_tokens=total, mean_output_tokens=mean)


@pytest.mark.parametrize(
    ("one", "other", "compared"),
    [
        (side(1000, 50), side(2000, 51), (1000, 2000)),
        (side(1000, 50), side(None, 51), (50, 51)),
        (side(None, 50), side(1000, 51), (50, 51)),
        (side(None, 50), side(None, 51), (50, 51)),
        (side(1000), side(None, 51), (1000, None)),
    ],
)
def test_totals_are_compared_with_totals_and_mean_lengths_with_mean_lengths(one, other, compared):
    found = (work_of(one, other), work_of(other, one))
    assert found == tuple(((() if n is None else (float(n),)), 0.0) for n in compared)


def test_fewer_tokens_on_the_server_are_said_as_none_beyond():
    cell = timed(100, 150)
    for name in ("baseline", "speculative"):
        cell[name] |= {
            "completed": 10, "server_requests": 9,
            "output_tokens": 640, "server_output_tokens": 630,
        }  # fmt: skip
    raw = report([cell])
    assert "foreign-traffic" not in fired(judged(raw))
    assert evidence(raw, "foreign-traffic") == (
        "baseline: 0 requests, 0 tokens beyond the client's; "
        "eagle3: 0 requests, 0 tokens beyond the client's"
    )


@pytest.mark.parametrize(
    ("baseline", "speculative", "found"),
    [
        (1000, 1001, "TRIGGERED"),
        (1000, 1000, "NOT MEASURED"),
        (1000, None, "NOT MEASURED"),
        (None, 1000, "NOT MEASURED"),
    ],
)
def test_input_tokens_of_one_side_prove_nothing(baseline, speculative, found):
    cell = timed(100, 150)
    cell["baseline"]["input_tokens"], cell["speculative"]["input_tokens"] = baseline, speculative
    raw = report([cell])
    assert state(judged(raw), "prompts-differ") == found
    if found == "TRIGGERED":
        assert evidence(raw, "prompts-differ") == (
            "1000 input tokens for the baseline, 1001 for the method"
        )
