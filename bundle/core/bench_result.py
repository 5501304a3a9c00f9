"""One result file of ``vllm bench serve`` as a record, and whether it counts."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from bundle.core.evidence import Bench
from bundle.errors import InputError

_PERCENTILE = re.compile(r"^p\d+(\.\d+)?_(ttft|tpot|itl|e2el)_ms$")


def parse_bench(
    data: bytes,
    *,
    planned: int | None = None,
    expected_output_tokens: int | None = None,
    where: str = "bench result",
) -> Bench:
    """Read a result file.

    Args:
        data: the file's bytes, one JSON object.
        planned: requests asked for; None takes what the file says.
        expected_output_tokens: the sum of the output lengths asked for.
        where: the file, for messages.

    Raises:
        InputError: not such a file.
    """
    try:
        raw = msgspec.json.decode(data, type=dict[str, Any])
        return _bench(raw, planned, expected_output_tokens)
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
        reason = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"expected a result of `vllm bench serve`, found something else: {reason}",
            where=where,
            next_step="make it with --save-result --save-detailed of vLLM 0.32.0",
        ) from None


def _bench(raw: dict[str, Any], planned: int | None, expected: int | None) -> Bench:
    return Bench(
        completed=int(raw["completed"]),
        failed=int(raw["failed"]),
        planned=int(raw["num_prompts"]) if planned is None else planned,
        duration=float(raw["duration"]),
        input_tokens=int(raw["total_input_tokens"]),
        output_tokens=int(raw["total_output_tokens"]),
        output_throughput=float(raw["output_throughput"]),
        mean_tpot=_measured(raw, "mean_tpot_ms"),
        mean_ttft=_measured(raw, "mean_ttft_ms"),
        mean_e2el=_measured(raw, "mean_e2el_ms"),
        percentiles={k: float(v) for k, v in raw.items() if _PERCENTILE.match(k)},
        pauses=_pauses(raw),
        expected_output_tokens=expected,
        errors=tuple(sorted({e.strip() for e in raw.get("errors", ()) if e and e.strip()})),
    )


def _pauses(raw: dict[str, Any]) -> int | None:
    """Pauses between the chunks of all requests; None where the file has no details."""
    if "itls" not in raw:
        return None
    requests = zip(raw["itls"], raw["output_lens"], strict=True)
    return sum(len(gaps) for gaps, _ in requests)


def _measured(raw: dict[str, Any], key: str) -> float | None:
    """A mean in milliseconds; the file writes 0 where no request completed."""
    if raw.get(key) is None or raw["completed"] == 0:
        return None
    return float(raw[key])


def fault(bench: Bench) -> str | None:
    """Why this result must not count, or None. The bench ends with 0 whatever happened."""
    if bench.failed or bench.completed != bench.planned:
        first = f": {bench.errors[0].splitlines()[-1]}" if bench.errors else ""
        return (
            f"expected {bench.planned} completed requests, found {bench.completed} completed and "
            f"{bench.failed} failed{first}"
        )
    expected = bench.expected_output_tokens
    if expected is not None and bench.output_tokens != expected:
        return f"expected {expected} output tokens, found {bench.output_tokens}"
    return None
