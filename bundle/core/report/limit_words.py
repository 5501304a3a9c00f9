"""Limits and KV capacity in words, for the decision and for the cost."""

from __future__ import annotations

from collections.abc import Sequence

from bundle.core.report.numbers import (
    NOT_MEASURED,
    interval,
    setting,
    share,
    worsening,
)
from bundle.core.report.parts import Cell, Tone
from bundle.core.report.text import counted
from bundle.core.results import CapacityRow, LimitRow

LIMIT_WORDS = {
    "SHOWN": "within the limit",
    "BROKEN": "limit broken",
    "NOT SHOWN": "not shown to be within the limit",
    "NOT MEASURED": NOT_MEASURED,
    "OFF": "not judged: switched off by the recipe",
}


LIMIT_TONES: dict[str, Tone] = {"SHOWN": "good", "BROKEN": "bad", "NOT SHOWN": "unsure"}


def kv_words(row: CapacityRow | None) -> str:
    """A method's KV capacity against the baseline's in a few words."""
    if row is None or row.kv_loss is None:
        return f"KV capacity {NOT_MEASURED}"
    if row.kv_loss == 0:
        return "KV capacity unchanged"
    return f"KV capacity {share(abs(row.kv_loss))} {'smaller' if row.kv_loss > 0 else 'larger'}"


_LIMIT_NAMES = {
    "kv-capacity": "KV capacity loss",
    "tail-tpot": "tail TPOT",
    "tail-ttft": "tail TTFT",
    "failed-requests": "failed requests",
    "quality": "quality",
}


def limit_name(name: str) -> str:
    """A limit's name in words."""
    return _LIMIT_NAMES.get(name, name)


def limits_cell(limits: Sequence[LimitRow]) -> Cell:
    """Several limits in one cell: the worst state, and every measurement."""
    if not limits:
        return Cell(text="not judged", tone="muted")
    order = ("BROKEN", "NOT SHOWN", "NOT MEASURED", "SHOWN", "OFF")
    worst = min(limits, key=lambda x: order.index(x.state))
    off = all(limit.state == "OFF" for limit in limits)
    return Cell(
        text="not judged" if off else LIMIT_WORDS[worst.state],
        sub="; ".join(_limit_detail(limit) for limit in limits),
        tone=LIMIT_TONES.get(worst.state, "muted"),
    )


def _limit_detail(limit: LimitRow) -> str:
    return f"{limit_name(limit.name)}: {limit_measured(limit)}"


def limit_measured(limit: LimitRow) -> str:
    """What was measured for one limit, and the limit."""
    if limit.state == "OFF":
        return "switched off"
    if limit.worsening is None:
        return limit.reason or NOT_MEASURED
    if limit.name == "failed-requests":
        return counted(round(limit.worsening), "failed request")
    if limit.name == "kv-capacity":
        amount = f"{share(limit.worsening)} lost" if limit.worsening > 0 else "none lost"
        return amount if limit.limit is None else f"{amount}, limit {setting(limit.limit, '')}"
    span = ""
    if limit.lower is not None and limit.upper is not None:
        span = f" ({interval(1 + limit.lower, 1 + limit.upper)})"
    asked = f", limit {setting(limit.limit)}" if limit.limit is not None else ""
    return f"{worsening(limit.worsening)}{span}{asked}"
