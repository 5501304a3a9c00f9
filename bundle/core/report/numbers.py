"""Numbers as a reader sees them: value, unit, interval, sensible digits.

Nothing is rounded before it comes here. A value that is not 0 never prints as 0, a share below 1
never prints as 100 %, and a bound never prints as equal to a threshold it does not equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime

NBSP = "\u00a0"
MINUS = "\u2212"
NOT_MEASURED = "not measured"
NO_DRAFTS = "no drafts"
_MAX_DECIMALS = 6


def count(value: int | None, absent: str = NOT_MEASURED) -> str:
    """A whole number with thousands separators."""
    return absent if value is None else f"{value:,}".replace("-", MINUS)


def number(value: float | None, digits: int = 3, absent: str = NOT_MEASURED) -> str:
    """A number with ``digits`` significant digits; numbers above 1,000 keep all their digits."""
    if value is None or not math.isfinite(value):
        return absent
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    # Rounding may carry into another digit (9.996 becomes 10.0, not 10.00).
    decimals = digits - 1 - math.floor(math.log10(abs(round(value, decimals))))
    if decimals > digits + 2:
        return f"{value:.{digits - 1}e}".replace("-", MINUS)
    return f"{value:,.{max(0, decimals)}f}".replace("-", MINUS)


def quantity(value: float | None, unit: str, digits: int = 3, absent: str = NOT_MEASURED) -> str:
    """A number with its unit, kept on one line."""
    text = number(value, digits, absent)
    return text if text == absent or not unit else f"{text}{NBSP}{unit}"


def share(part: float | None, whole: float | None = 1, absent: str = NOT_MEASURED) -> str:
    """``part`` of ``whole`` in per cent; ``absent`` where there is no whole.

    One decimal below 10 % and above 90 %, and wherever the whole counts at least 1,000.
    """
    if part is None or not whole:
        return absent
    value = 100 * part / whole
    if value in (0, 100):
        return f"{value:.0f}{NBSP}%"
    if 0 < value < 0.1:
        return f"<0.1{NBSP}%"
    if 99.9 < value < 100:
        return f">99.9{NBSP}%"
    fine = value < 10 or value > 90 or whole >= 1000
    return f"{value:.{1 if fine else 0}f}{NBSP}%"


def points(value: float, decimals: int, against: Iterable[float] = (0.0,)) -> str:
    """A signed percentage, finer than ``decimals`` where it would fall on a threshold."""
    for places in range(decimals, _MAX_DECIMALS):
        shown = round(value, places)
        if all(value == edge or shown != round(edge, places) for edge in against):
            return _signed(shown, places)
    return _signed(value, _MAX_DECIMALS)


def _signed(value: float, decimals: int) -> str:
    sign = "+" if value > 0 else MINUS if value < 0 else ""
    return f"{sign}{abs(value):,.{decimals}f}"


def change(
    ratio: float | None,
    lower: float | None = None,
    upper: float | None = None,
    *,
    margin: float = 0.0,
    absent: str = NOT_MEASURED,
) -> str:
    """A ratio as a signed change in per cent; the interval sets how many digits are sensible."""
    if ratio is None:
        return absent
    decimals = _decimals(ratio, lower, upper)
    return f"{points(100 * (ratio - 1), decimals, (0, 100 * margin))}{NBSP}%"


def interval(
    lower: float | None,
    upper: float | None,
    *,
    margin: float = 0.0,
    absent: str = "no interval",
) -> str:
    """Two ratios as an interval of changes in per cent: ``+38 to +49 %``."""
    if lower is None or upper is None:
        return absent
    decimals = _decimals(1.0, lower, upper)
    edges = (0, 100 * margin)
    low, high = (points(100 * (bound - 1), decimals, edges) for bound in (lower, upper))
    return f"{low} to {high}{NBSP}%"


def _decimals(ratio: float, lower: float | None, upper: float | None) -> int:
    """Two digits of the interval's half width, at most two decimals."""
    if lower is None or upper is None:
        return 0 if abs(ratio - 1) >= 0.1 else 1
    half = 50 * (upper - lower)
    return 0 if half >= 2 else 1 if half >= 0.2 else 2


def worsening(value: float | None, absent: str = NOT_MEASURED) -> str:
    """A worsening as a share, 0.1 is ``+10 %`` (worse); gains carry a minus."""
    return change(None if value is None else 1 + value, absent=absent)


def setting(value: float, sign: str = "+") -> str:
    """A share that somebody chose, exactly as chosen: 0.05 is ``+5 %``."""
    return f"{sign}{100 * value:.6g}{NBSP}%"


def noise(log_sd: float | None, absent: str = "noise unknown") -> str:
    """A standard deviation of logarithms as per cent of one server start."""
    if log_sd is None:
        return absent
    return f"±{number(100 * (math.exp(log_sd) - 1), 2)}{NBSP}%"


def multiple(ratio: float | None, absent: str = NOT_MEASURED) -> str:
    """A ratio as a factor: ``1.43×``."""
    return absent if ratio is None else f"{number(ratio)}×"


def probability(value: float | None, absent: str = NOT_MEASURED) -> str:
    """A p-value, never 0."""
    if value is None:
        return absent
    return (
        "p < 0.001" if value < 0.001 else f"p = {value:.3f}" if value < 0.1 else f"p = {value:.2f}"
    )


def duration(seconds: float | None, absent: str = NOT_MEASURED) -> str:
    """A length of time in its two largest units."""
    if seconds is None:
        return absent
    if seconds < 60:
        return quantity(seconds, "s", 2)
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    if hours:
        return f"{hours}{NBSP}h {minutes}{NBSP}min"
    return f"{minutes}{NBSP}min {rest}{NBSP}s"


def size(octets: int | None, absent: str = NOT_MEASURED) -> str:
    """A number of bytes in binary units."""
    if octets is None:
        return absent
    value, units = float(octets), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return quantity(value, units[0])


def moment(text: str) -> str:
    """An ISO 8601 time as ``2026-11-30 21:15 UTC``; anything else as it is."""
    when = _utc(text)
    return text if when is None else when.strftime("%Y-%m-%d %H:%M UTC")


def _utc(text: str) -> datetime | None:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def stamp(*candidates: str) -> str:
    """The first valid time among ISO 8601 texts as ``2026-11-30T21:04:05Z``; else the epoch."""
    for text in candidates:
        when = _utc(text)
        if when is not None:
            return when.strftime("%Y-%m-%dT%H:%M:%SZ")
    return "1970-01-01T00:00:00Z"
