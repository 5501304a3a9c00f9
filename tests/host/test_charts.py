"""Charts: words as text, no dates, the same bytes, distinct series."""

import re

import msgspec
import pytest

from bundle.core.report.parts import Chart, Panel, Point, Series
from bundle.host.chart_colours import BAND, SERIES, themed
from bundle.host.charts import MARKERS, _columns, draw

POINTS = (Point(at=0, value=-3.0, lower=-6.0, upper=1.0), Point(at=1, value=40.0))


def chart(groups: int = 3, **changes: object) -> Chart:
    panel = Panel(
        title="time per token (TPOT)",
        y_label="gain, %",
        x_label="concurrent requests",
        categories=("1", "8"),
        series=tuple(Series(name=f"g{i} $x$", style=i, points=POINTS) for i in range(groups)),
        band=(1.8, None),
        lines=((5.0, "margin"),),
    )
    base = {"id": "chart-a", "title": "a", "alt": "b", "table": "t", "panels": (panel, panel)}
    return Chart(**{**base, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def drawn() -> str:
    return draw(chart())


def test_it_is_one_element_with_its_words_as_text(drawn: str) -> None:
    assert drawn.startswith("<svg")
    assert drawn.endswith("</svg>")
    words = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert {"time per token (TPOT)", "gain, %", "concurrent requests", "8", "g0 $x$"} <= set(words)
    fonts = set(re.findall(r"font-family: ([^;\"]*)", drawn))
    assert fonts == {"'Inter', sans-serif"}
    assert "<metadata" not in drawn
    assert "20" + "26-" not in drawn


def test_ids_are_unique_in_a_page(drawn: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', drawn)
    assert ids
    assert len(ids) == len(set(ids))
    assert all(name.startswith("chart-a-") for name in ids)
    used = set(re.findall(r'href="#([^"]+)"', drawn)) | set(re.findall(r"url\(#([^)]+)", drawn))
    assert used <= set(ids)


def test_it_is_the_same_again(drawn: str) -> None:
    assert draw(chart()) == drawn


def test_more_groups_than_colours_stay_apart() -> None:
    looks = {
        (SERIES[i % len(SERIES)], MARKERS[(i + i // len(SERIES)) % len(MARKERS)])
        for i in range(2 * len(SERIES))
    }
    assert len(looks) == 2 * len(SERIES)
    assert draw(chart(groups=9)).startswith("<svg")


def test_a_name_is_text_and_never_markup() -> None:
    series = (Series(name="<script>x</script>", style=0, points=POINTS),)
    panel = msgspec.structs.replace(chart().panels[0], series=series)
    made = draw(chart(panels=(panel,)))
    assert "<script" not in made
    assert "&lt;script&gt;x&lt;/script&gt;" in made


def test_pairs_and_empty_panels_draw() -> None:
    assert draw(chart(kind="pairs")).startswith("<svg")
    assert draw(chart(groups=0)).startswith("<svg")


def test_a_legend_has_room_for_its_names() -> None:
    def columns(names: list[str]) -> int:
        series = tuple(Series(name=n, style=i, points=POINTS) for i, n in enumerate(names))
        panel = msgspec.structs.replace(chart().panels[0], series=series)
        return _columns(chart(panels=(panel,)))

    assert columns(["ngram", "draft", "eagle3", "suffix", "mtp"]) == 5
    assert columns(["speculators-eagle3-k5", "b", "c", "d"]) == 2
    assert columns(["x" * 200]) == columns([]) == 1


def test_noise_floor_and_intervals_are_one_shape_each() -> None:
    plain, full = (
        draw(chart(1, panels=(msgspec.structs.replace(chart(1).panels[0], band=band),)))
        for band in ((), (1.8, 2.0))
    )
    assert full.count("<path") == plain.count("<path") + 1
    assert f"fill: {BAND}" in full


def test_a_page_can_colour_it(drawn: str) -> None:
    page = themed(drawn)
    assert SERIES[0] not in page
    assert "var(--s0)" in page
    assert "var(--ink)" in page


def test_series_are_legible_on_white() -> None:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert all(1.05 / (light(colour) + 0.05) >= 4.5 for colour in SERIES)
