"""Numbers are sensible and never a false 0, a false 100 % or a false threshold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundle.core.report import numbers as n

ratios = st.floats(min_value=0.01, max_value=100, allow_nan=False)


def plain(text: str) -> str:
    return text.replace(n.NBSP, " ").replace(n.MINUS, "-")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (40.94, "40.9"),
        (1291.4, "1,291"),
        (9.996, "10.0"),
        (0.01234, "0.0123"),
        (1.234e-7, "1.23e-07"),
        (-5.2, "-5.20"),
        (None, "not measured"),
        (math.nan, "not measured"),
        (math.inf, "not measured"),
    ],
)
def test_number(value: float | None, shown: str) -> None:
    assert plain(n.number(value)) == shown


def test_quantity_keeps_the_unit_unless_there_is_no_value() -> None:
    assert n.quantity(40.94, "ms") == f"40.9{n.NBSP}ms"
    assert n.quantity(None, "ms") == "not measured"
    assert n.quantity(40.94, "") == "40.9"


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 10, "0 %"),
        (10, 10, "100 %"),
        (1, 100_000, "<0.1 %"),
        (99_999, 100_000, ">99.9 %"),
        (1, 3, "33 %"),
        (1, 20, "5.0 %"),
        (567, 1000, "56.7 %"),
        (None, 10, "not measured"),
        (0, 0, "not measured"),
        (1, None, "not measured"),
    ],
)
def test_share(part: float | None, whole: float | None, shown: str) -> None:
    assert plain(n.share(part, whole)) == shown


def test_nothing_proposed_is_no_drafts() -> None:
    assert n.share(0, 0, absent=n.NO_DRAFTS) == "no drafts"


@given(st.integers(1, 10**9), st.integers(0, 10**9))
def test_share_is_0_or_100_only_where_it_is(part: int, rest: int) -> None:
    shown = plain(n.share(part, part + rest))
    assert shown != "0 %"
    assert (shown == "100 %") == (rest == 0)


@given(ratios, ratios, st.floats(0, 0.5))
def test_a_bound_never_shows_as_the_threshold_it_is_not(
    lower: float, upper: float, margin: float
) -> None:
    low, high = sorted((lower, upper))
    shown = plain(n.interval(low, high, margin=margin)).removesuffix(" %").split(" to ")
    for text, bound in zip(shown, (low, high), strict=True):
        gain, asked = 100 * (bound - 1), 100 * margin
        value = float(text.replace(",", ""))
        if abs(gain - asked) > 1e-5:
            assert (value > round(asked, 6)) == (gain > asked) or value == pytest.approx(gain)
        if abs(gain) > 1e-5:
            assert value != 0


def test_points_gives_up_after_six_decimals() -> None:
    assert n.points(1e-9, 0) == "+0.000000"


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        ((1.432, 1.38, 1.49), "+43 %"),
        ((1.4321, 1.43, 1.435), "+43.2 %"),
        ((1.43212, 1.4315, 1.4325), "+43.21 %"),
        ((1.432,), "+43 %"),
        ((1.032,), "+3.2 %"),
        ((0.64, 0.6, 0.7), "-36 %"),
        ((1.0,), "0.0 %"),
        ((None,), "not measured"),
    ],
)
def test_change(args: tuple[float | None, ...], shown: str) -> None:
    assert plain(n.change(*args)) == shown  # type: ignore[arg-type]


def test_interval() -> None:
    assert plain(n.interval(1.38, 1.49)) == "+38 to +49 %"
    assert n.interval(None, 1.2) == "no interval"
    assert plain(n.interval(1.0497, 1.2, margin=0.05)) == "+4.97 to +20 %"


def test_small_words() -> None:
    assert plain(n.worsening(0.1)) == "+10 %"
    assert n.worsening(None) == "not measured"
    assert plain(n.setting(0.05)) == "+5 %"
    assert plain(n.noise(0.018)) == "±1.8 %"
    assert n.noise(None) == "noise unknown"
    assert n.multiple(1.4312) == "1.43×"
    assert n.multiple(None) == "not measured"
    assert n.count(None) == "not measured"
    assert plain(n.count(-1234)) == "-1,234"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "not measured"), (0.0, "p < 0.001"), (0.0123, "p = 0.012"), (0.5, "p = 0.50")],
)
def test_probability(value: float | None, shown: str) -> None:
    assert n.probability(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "not measured"), (4.23, "4.2 s"), (725, "12 min 5 s"), (3840, "1 h 4 min")],
)
def test_duration(seconds: float | None, shown: str) -> None:
    assert plain(n.duration(seconds)) == shown


def test_size() -> None:
    assert plain(n.size(16_396_000_000)) == "15.3 GiB"
    assert plain(n.size(12)) == "12.0 B"
    assert n.size(None) == "not measured"


def test_times_are_utc() -> None:
    assert n.moment("2026-11-30T23:15:00+02:00") == "2026-11-30 21:15 UTC"
    assert n.moment("2026-11-30T21:15:00") == "2026-11-30 21:15 UTC"
    assert n.moment("soon") == "soon"
    assert n.stamp("soon", "2026-11-30T23:15:01.5+02:00") == "2026-11-30T21:15:01Z"
    assert n.stamp("soon") == "1970-01-01T00:00:00Z"
