"""What the quoted lines of a server's log say, counted and in their order."""

import pytest

from bundle.core.log_words import LogFacts, read_log


def test_lines_without_a_word_of_interest_say_nothing():
    nothing = LogFacts(
        causes=(),
        windows=(),
        eager=False,
        synthetic=False,
        dummy=False,
        engine=(),
        denied=None,
        preemptions=0,
        throttled=None,
        no_figures=0,
        died=None,
        hits=None,
        ratios=(),
        kv_tokens=None,
    )
    assert LogFacts() == nothing
    assert read_log(["INFO Starting vLLM server", " ", ""]) == nothing


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("enforce_eager=True", "eager"),
        ("rejection_sample_method='synthetic'", "synthetic"),
        ("load_format=LoadFormat.DUMMY", "dummy"),
    ],
)
def test_a_setting_is_read_wherever_it_stands(line, field):
    found = read_log(["INFO first", f"INFO config: {line}, seed=0"])
    assert [getattr(found, name) for name in ("eager", "synthetic", "dummy")] == [
        name == field for name in ("eager", "synthetic", "dummy")
    ]


def test_lines_of_one_kind_are_counted():
    preempted = "WARNING Sequence group 7 is preempted by PreemptionMode.RECOMPUTE"
    missing = "request 3: missing acceptance metrics"
    found = read_log([preempted, missing, preempted, preempted, missing])
    assert (found.preemptions, found.no_figures) == (3, 2)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("ValueError: the draft model wants another cache", "unsupported-method"),
        ("ValueError: the port range is empty", "server-did-not-start"),
        ("RuntimeError: the draft model went away", "server-did-not-start"),
        ("RuntimeError: Input should be greater than 0", "unsupported-method"),
    ],
)
def test_an_error_refuses_a_method_where_it_complains_of_speculation(line, cause):
    assert read_log([line]).causes == ((cause, line),)


def test_of_lines_that_count_since_the_start_the_last_stands_for_all():
    totals = [
        f"Speculative metrics: Number of accepted tokens: {a}, Number of draft tokens: {d}"
        for a, d in ((10, 40), (60, 120), (1_000, 2_000))
    ]
    assert read_log(totals).windows == ((1_000, 2_000),)
    assert read_log(totals[:1]).windows == ((10, 40),)
