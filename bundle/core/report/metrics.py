"""The metrics of an effect row: how they are called and measured, whichever way they are keyed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bundle.core.results import EffectRow

TPOT = "tpot"
THROUGHPUT = "output_throughput"
E2EL = "e2el"
NAMES = {
    TPOT: "time per token (TPOT)",
    THROUGHPUT: "output throughput",
    E2EL: "end-to-end latency",
    "ttft": "time to first token (TTFT)",
}
_SHORT = {TPOT: "TPOT", THROUGHPUT: "Throughput", E2EL: "End-to-end", "ttft": "TTFT", "itl": "ITL"}
_PERCENTILE = re.compile(r"^(?:p(\d+)_(\w+)|(\w+?)_p(\d+))$")


def canonical(metric: str) -> str:
    """One spelling: ``mean_tpot_ms``, ``TPOT`` and ``tpot`` are the same metric."""
    key = metric.strip().lower().replace("-", "_").replace(" ", "_")
    key = key.removeprefix("mean_").removesuffix("_ms")
    if key in ("throughput", "output_tps", "output_throughput_tok_s"):
        return THROUGHPUT
    match = _PERCENTILE.match(key)
    if match is not None:
        return f"p{match[1] or match[4]}_{match[2] or match[3]}"
    return key


def short(metric: str) -> str:
    """``TPOT``, ``P95 TPOT``."""
    key = canonical(metric)
    match = _PERCENTILE.match(key)
    if match is not None:
        return f"P{match[1]} {_SHORT.get(match[2], match[2])}"
    return _SHORT.get(key, metric)


Key = tuple[str, str, str, str]


def indexed(rows: Iterable[EffectRow]) -> dict[Key, EffectRow]:
    """Effects by group, task, load and canonical metric; the first of equals stays."""
    found: dict[Key, EffectRow] = {}
    for row in rows:
        found.setdefault((row.group, row.task, row.load, canonical(row.metric)), row)
    return found
