"""Loads, groups and verdicts in plain words."""

import msgspec
import pytest

from bundle.core.recipe import Group, Speculative
from bundle.core.report import words as w
from bundle.core.report.metrics import canonical, indexed, short
from tests import builders_report as b


@pytest.mark.parametrize(
    ("label", "long", "brief"),
    [
        ("c8", "8 concurrent requests", "8 concurrent"),
        ("c1", "1 request at a time", "1 at a time"),
        ("r2.5", "2.5 requests per second", "2.5 per second"),
        ("peak", "peak", "peak"),
    ],
)
def test_loads(label: str, long: str, brief: str) -> None:
    assert w.load_words(label) == long
    assert w.load_short(label) == brief


def test_ranges_go_from_few_to_many_and_rates_last() -> None:
    assert w.range_words(("c16", "c1", "r2", "c8")) == (
        "1, 8 and 16 concurrent requests and 2 requests per second"
    )
    assert w.range_words(("c8",)) == "8 concurrent requests"
    assert w.range_words(("r4", "r2")) == "2 requests per second and 4 requests per second"
    assert w.is_rate("r2")
    assert not w.is_rate("c2")


def test_groups_are_described_by_method() -> None:
    recipe = b.recipe()
    matched = Group(name="matched", role="matched-baseline")
    synthetic = Group(
        name="fake",
        speculative=Speculative(
            method="eagle", num_speculative_tokens=2, rejection_sample_method="synthetic"
        ),
    )
    low = Group(
        name="low",
        speculative=Speculative(method="ngram", num_speculative_tokens=2, prompt_lookup_max=3),
    )
    recipe = msgspec.structs.replace(recipe, groups=(*recipe.groups, matched, synthetic, low))
    about = w.describe(recipe)
    assert about["baseline"] == "no speculation"
    assert about["matched"] == "no speculation, matched engine"
    assert about["ngram"] == "n-gram lookup, k = 4, window 2-4"
    assert about["fake"] == "EAGLE, k = 2, synthetic acceptance"
    assert about["low"] == "n-gram lookup, k = 2, window 1-3"


@pytest.mark.parametrize(
    ("word", "more", "sentence"),
    [
        ("SHIP", {}, "Ship ngram for code: shown at 1 and 8 concurrent requests."),
        ("SHIP", {"ship_range": ()}, "Ship ngram for code: shown at 8 concurrent requests."),
        (
            "ABANDON",
            {"kind": "slower"},
            "Do not ship ngram for code at 8 concurrent requests: it is slower than the baseline.",
        ),
        (
            "ABANDON",
            {"kind": "small gain", "gain_range": ("c1",)},
            "Do not ship ngram for code at 8 concurrent requests: its gain is real but below the "
            "+5\u00a0% asked for. It does gain at 1 request at a time.",
        ),
        ("ABANDON", {"kind": None}, "Do not ship ngram for code."),
        (
            "INCONCLUSIVE",
            {"further_blocks": 2},
            "on code: about 2 more blocks would settle it (a planning figure).",
        ),
        ("INCONCLUSIVE", {"further_note": "one block only"}, "one block only."),
        ("INCONCLUSIVE", {"reasons": ("quality is NOT SHOWN",)}, "quality is NOT SHOWN."),
        ("INCONCLUSIVE", {}, "no reason was recorded."),
        ("INVALID", {"reasons": ("configs-differ",)}, "does not hold (configs-differ)."),
    ],
)
def test_decisions(word: str, more: dict[str, object], sentence: str) -> None:
    assert w.decision(b.verdict("ngram", "code", word, **more), 0.05).endswith(sentence)


def test_those_to_ship_come_first() -> None:
    rows = [b.verdict("a", "t", "INVALID"), b.verdict("b", "t", "SHIP")]
    assert [row.group for row in w.by_verdict(rows)] == ["b", "a"]


@pytest.mark.parametrize(
    ("given", "key", "name"),
    [
        ("mean_tpot_ms", "tpot", "TPOT"),
        ("TPOT", "tpot", "TPOT"),
        ("throughput", "output_throughput", "Throughput"),
        ("tpot_p95", "p95_tpot", "P95 TPOT"),
        ("p99_itl", "p99_itl", "P99 ITL"),
        ("p50_other", "p50_other", "P50 other"),
        ("goodput", "goodput", "goodput"),
    ],
)
def test_metrics_have_one_spelling(given: str, key: str, name: str) -> None:
    assert canonical(given) == key
    assert short(given) == name


def test_the_first_of_equal_effects_stays() -> None:
    rows = (b.effect("g", "t", "c1", "tpot", 1.5), b.effect("g", "t", "c1", "mean_tpot", 2.0))
    assert [row.ratio for row in indexed(rows).values()] == [1.5]
