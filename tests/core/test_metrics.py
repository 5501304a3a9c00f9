from pathlib import Path

import pytest

from bundle.core.metrics import increase, parse_metrics
from bundle.errors import ServerError

DATA = Path(__file__).parents[1] / "data/metrics"


def page(name: str):
    return parse_metrics((DATA / f"{name}.prom").read_text())


def test_a_real_speculative_server():
    grown = increase(page("cuda-ngram-v2-0"), page("cuda-ngram-v2-4"))
    assert grown.requests_finished == 266
    assert grown.generation_tokens == 33846
    assert grown.decode_rounds == 21530
    assert grown.rounds == 21530
    assert grown.drafted == 86120
    assert grown.accepted == 12374
    assert grown.per_position == (4038, 3329, 2816, 2191)
    assert sum(grown.per_position) == grown.accepted
    assert (grown.preemptions, grown.prefix_hits, grown.prefix_queries) == (0, 0, 0)


def test_a_real_baseline_has_no_speculative_counters():
    grown = increase(page("cuda-baseline-0"), page("cuda-baseline-4"))
    assert (grown.rounds, grown.drafted, grown.accepted, grown.per_position) == (None,) * 4
    assert grown.decode_rounds == grown.generation_tokens - grown.requests_finished


def test_snapshots_tell_rest_from_work():
    before, after = page("cuda-ngram-v2-0"), page("cuda-ngram-v2-4")
    assert before.idle
    assert before.progress != after.progress
    assert after.progress == page("cuda-ngram-v2-4").progress
    busy = parse_metrics('vllm:num_requests_running{engine="0"} 2.0\n')
    assert not busy.idle
    assert busy.cache == {}


@pytest.mark.parametrize(
    ("gauges", "idle"),
    [
        ({}, True),
        ({"running": 0}, True),
        ({"waiting": 0}, True),
        ({"running": 0, "waiting": 0}, True),
        ({"running": 2}, False),
        ({"waiting": 2}, False),
        ({"running": 1, "waiting": 1}, False),
    ],
)
def test_a_server_is_idle_where_nothing_runs_and_nothing_waits(gauges, idle):
    text = "".join(f"vllm:num_requests_{name} {count}.0\n" for name, count in gauges.items())
    assert parse_metrics(text).idle is idle


def test_a_counter_that_appears_with_nothing_is_no_progress():
    appeared = parse_metrics("vllm:generation_tokens_total 0.0\n")
    assert appeared.progress == parse_metrics("").progress
    moved = parse_metrics("vllm:generation_tokens_total 1.0\n")
    assert moved.progress != appeared.progress


def test_what_a_server_does_not_count_did_not_grow():
    nothing = increase(parse_metrics(""), parse_metrics(""))
    assert (nothing.decode_rounds, nothing.generation_tokens, nothing.prompt_tokens) == (0, 0, 0)
    first = parse_metrics("vllm:generation_tokens_total 7.0\n")
    assert increase(parse_metrics(""), first).generation_tokens == 7


def test_buckets_are_passed_over():
    text = 'vllm:x_bucket{le="1"} 5\nvllm:x_count 7\n'
    assert parse_metrics(text).values == {"vllm:x_count": 7.0}


def test_engines_are_summed():
    text = "".join(
        f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="{e}",position="{p}"}} {n}\n'
        f'vllm:generation_tokens_total{{engine="{e}"}} {n}\n'
        for e, p, n in [(0, 0, 5), (1, 0, 7), (0, 1, 1), (1, 1, 2)]
    )
    snapshot = parse_metrics(text)
    assert snapshot.positions == (12, 3)
    assert snapshot.values["vllm:generation_tokens_total"] == 15


def test_positions_that_appear_later_start_at_nothing_and_none_is_cut_off():
    label = 'engine="0",position='
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    after = parse_metrics(f'{name}{{{label}"0"}} 3\n{name}{{{label}"1"}} 1\n')
    assert increase(parse_metrics(""), after).per_position == (3, 1)
    with pytest.raises(ValueError, match="zip"):
        increase(parse_metrics(f'{name}{{{label}"0"}} 1\n'), after)


@pytest.mark.parametrize(
    "text",
    [
        "<html>not metrics</html>",
        "vllm:x{a=1} 2",
        "vllm:spec_decode_num_accepted_tokens_per_pos_total 1\n",
    ],
)
def test_another_page_is_refused(text):
    with pytest.raises(ServerError, match="Prometheus"):
        parse_metrics(text)


def test_counters_of_a_real_gpu_add_up():
    """96 requests of 128 tokens with EAGLE-3, k = 3, by the V2 runner: a draft in every round."""
    found = increase(page("h200-eagle3-code-c8.before"), page("h200-eagle3-code-c8.after"))
    assert (found.rounds, found.drafted, found.accepted) == (4125, 12375, 8218)
    assert sum(found.per_position) == found.accepted
    assert found.drafted == 3 * found.rounds
    assert found.decode_rounds == found.rounds
    assert (found.requests_finished, found.generation_tokens) == (96, 96 * 128)
