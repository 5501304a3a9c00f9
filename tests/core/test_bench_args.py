import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundle.core.bench_args import (
    BenchTarget,
    bench_vector,
    load_vector,
    requested_lengths,
    sampled_rows,
    warmup_cell,
)
from bundle.core.design import Cell
from bundle.core.workloads import Prompt

CELL = Cell(
    task="code",
    load="c8",
    requests=64,
    concurrency=8,
    request_rate=None,
    burstiness=1.0,
    output_tokens=128,
)
OPEN = Cell(
    task="code",
    load="r2.5",
    requests=64,
    concurrency=None,
    request_rate=2.5,
    burstiness=0.5,
    output_tokens=None,
)


def vector(cell, **template):
    target = BenchTarget(
        base_url="http://127.0.0.1:1",
        served_name="spec-demo",
        tokenizer="snapshot",
        seed=42,
        chat_template_kwargs=template,
    )
    found = bench_vector(
        cell, target, dataset="code.jsonl", result_dir="cells", result_name="x.bench.json"
    )
    return dict(zip(found, [*found[1:], ""], strict=True))


def test_a_closed_loop():
    flags = vector(CELL)
    assert flags["--max-concurrency"] == "8"
    assert flags["--num-prompts"] == "64"
    assert flags["--num-warmups"] == "0"
    assert flags["--custom-output-len"] == "128"
    assert (flags["--temperature"], flags["--top-p"], flags["--seed"]) == ("0", "1", "42")
    assert (flags["--backend"], flags["--endpoint"]) == ("openai", "/v1/completions")
    assert {"--ignore-eos", "--save-result", "--save-detailed"} <= set(flags)
    assert "--request-rate" not in flags
    assert "--chat-template-kwargs" not in flags


def test_an_open_loop_with_the_rows_own_lengths():
    flags = vector(OPEN, enable_thinking=False)
    assert (flags["--request-rate"], flags["--burstiness"]) == ("2.5", "0.5")
    assert flags["--custom-output-len"] == "-1"
    assert flags["--chat-template-kwargs"] == '{"enable_thinking":false}'
    assert "--max-concurrency" not in flags


def test_warming_uses_the_same_load():
    warm = warmup_cell(CELL, 4)
    assert (warm.requests, warm.output_tokens) == (4, 16)
    assert load_vector(warm) == load_vector(CELL)


def by_the_benchs_own_way(rows: int, requests: int, seed: int) -> list[int]:
    """The statements of vLLM's dataset, on the module's own generator."""
    data = list(range(rows))
    random.seed(seed)
    random.shuffle(data)
    taken = data[:requests]
    if len(taken) < requests:
        random.seed(seed)
        taken = taken + [random.choice(taken) for _ in range(requests - len(taken))]  # noqa: S311
    return taken


@given(st.integers(1, 40), st.integers(1, 60), st.integers(0, 2**32))
def test_rows_are_those_the_bench_takes(rows, requests, seed):
    assert list(sampled_rows(rows, requests, seed)) == by_the_benchs_own_way(rows, requests, seed)


@pytest.mark.parametrize(("cell", "expected"), [(CELL, 64 * 128), (OPEN, None)])
def test_requested_lengths(cell, expected):
    rows = [Prompt(prompt=f"p{i}", output_tokens=i + 1) for i in range(64)]
    lengths = requested_lengths(cell, rows, 42)
    assert len(lengths) == 64
    if expected is not None:
        assert sum(lengths) == expected
    else:
        assert lengths == tuple(i + 1 for i in sampled_rows(64, 64, 42))
        assert sorted(lengths) == list(range(1, 65))
