"""The numbers of a verdict in plain words, never rounded onto the bound they are compared with."""

from __future__ import annotations

import math

from bundle.core.layout import Effect
from bundle.core.verdict_records import Limit

_NAMES = {
    "tpot": "decoding speed (TPOT)",
    "output_throughput": "output throughput",
    "e2el": "end-to-end speed (latency)",
}


def apart(value: float, limit: float) -> str:
    """Format a ratio with as many digits, from three on, as show which side of a limit it is."""
    for digits in range(3, 10):
        text = f"{value:.{digits}f}"
        if float(text) != limit or value == limit:
            return text
    return f"{value:.12g}"


def percent(fraction: float) -> str:
    """Format a fraction as a percentage with one decimal, never a false 0."""
    if 0 < abs(fraction) < 0.0005:
        return "under 0.05 %"
    return f"{100 * fraction:.1f} %"


def level(alpha: float) -> str:
    """Format the confidence of a two-sided interval."""
    return f"{100 * (1 - alpha):.4g} %"


def metric_name(metric: str) -> str:
    """The metric in words; one that is not known keeps its own name."""
    return _NAMES.get(metric, metric)


def metric_words(metric: str, effect: Effect, alpha: float) -> str:
    """One metric against the baseline, with its interval where one exists."""
    value = f"{metric_name(metric)} {effect.ratio:.3f} times the baseline's"
    bounds = effect.bounds(alpha)
    if bounds is None:
        return f"{value}, without an interval"
    low, high = (math.exp(b) for b in bounds)
    return f"{value} ({level(alpha)} interval {low:.3f} to {high:.3f})"


def limit_words(limit: Limit) -> str:
    """One limit with its state, its worsening and its cap."""
    head = f"limit {limit.name} is {limit.state}"
    if limit.estimate is None or limit.limit is None:
        return f"{head}: {limit.reason}"
    if limit.unit == "count":
        return f"{head}: {limit.estimate:g} found, allowed {limit.limit:g}"
    direction = "better" if limit.estimate < 0 else "worse"
    text = f"{head}: {direction} by {percent(abs(limit.estimate))}"
    if limit.lower is not None and limit.upper is not None:
        text += f" (worsening from {percent(limit.lower)} to {percent(limit.upper)})"
    text += f", allowed {percent(limit.limit)}"
    return f"{text}; {limit.reason}" if limit.reason else text
