"""The argument vector of one cell for ``vllm bench serve`` of 0.32.0, and which rows it takes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from bundle.core.design import Cell
from bundle.core.workloads import Prompt

WARM_TOKENS = 16
"""Output tokens of a warming request: enough for some rounds of proposing and verifying."""

ROW_LENGTH = -1
"""What ``--custom-output-len`` gets when every row names its own output length."""


class BenchTarget(Struct, frozen=True, kw_only=True):
    """What all cells of one server share. ``tokenizer`` is a snapshot folder."""

    base_url: str
    served_name: str
    tokenizer: str
    seed: int
    chat_template_kwargs: Mapping[str, object]


def bench_vector(
    cell: Cell, target: BenchTarget, *, dataset: str, result_dir: str, result_name: str
) -> tuple[str, ...]:
    """The arguments after ``vllm bench serve``.

    The chat template is applied by the client (``/v1/completions``); every request is greedy, of
    fixed length; the same seed takes the same rows in the same order for every group. Warm-ups
    are a call of their own, so that ``/metrics`` before and after hold the measured requests only.
    """
    vector = ["--backend", "openai", "--base-url", target.base_url]
    vector += ["--endpoint", "/v1/completions", "--model", target.served_name]
    vector += ["--tokenizer", target.tokenizer, "--seed", str(target.seed)]
    vector += ["--dataset-name", "custom", "--dataset-path", dataset]
    if target.chat_template_kwargs:
        encoded = msgspec.json.encode(target.chat_template_kwargs).decode()
        vector += ["--chat-template-kwargs", encoded]
    vector += ["--custom-output-len", str(cell.output_tokens or ROW_LENGTH)]
    vector += ["--num-prompts", str(cell.requests), "--num-warmups", "0", *load_vector(cell)]
    vector += ["--temperature", "0", "--top-p", "1", "--ignore-eos"]
    vector += ["--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,95,99"]
    vector += ["--save-result", "--save-detailed"]
    return (*vector, "--result-dir", result_dir, "--result-filename", result_name)


def load_vector(cell: Cell) -> list[str]:
    """Closed loop: as many clients as ``concurrency``. Open loop: a rate, without a ceiling."""
    if cell.concurrency is not None:
        return ["--max-concurrency", str(cell.concurrency)]
    return ["--request-rate", f"{cell.request_rate:g}", "--burstiness", f"{cell.burstiness:g}"]


def warmup_cell(cell: Cell, requests: int) -> Cell:
    """The same load with fewer and shorter requests, for the call before the measured one."""
    return msgspec.structs.replace(cell, requests=requests, output_tokens=WARM_TOKENS)


def sampled_rows(rows: int, requests: int, seed: int) -> tuple[int, ...]:
    """Which rows of a dataset the bench takes, in order, by its own rule.

    It shuffles with the seed and takes the first; if it needs more, it seeds again and draws the
    rest from those (vLLM's benchmarks/datasets, CustomDataset and maybe_oversample_requests).
    """
    order = list(range(rows))
    random.Random(seed).shuffle(order)  # noqa: S311 - repeats the bench's choice, no secret
    taken = order[:requests]
    more = random.Random(seed)  # noqa: S311
    return (*taken, *(more.choice(taken) for _ in range(requests - len(taken))))


def requested_lengths(cell: Cell, rows: Sequence[Prompt], seed: int) -> tuple[int, ...]:
    """Output tokens asked for, request by request, in the order of :func:`sampled_rows`."""
    taken = sampled_rows(len(rows), cell.requests, seed)
    return tuple(cell.output_tokens or rows[i].output_tokens for i in taken)
