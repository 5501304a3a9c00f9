"""What to tune next, word for word, out of what fired."""

import pytest

from bundle.core.advice import advise, schedule_of
from bundle.core.findings.subject import Band, LoadPoint, Rates, Subject
from bundle.core.results import Advice, Finding


def fired(name, **changes):
    fields = {"effect": "none", "state": "TRIGGERED", "task": "code", "load": "c8", **changes}
    return Finding(
        id=name, group="g", evidence="", check_first="the first", then_check="then", **fields
    )


def subject(**changes):
    return Subject(**{"group": "g", "task": "code", "load": "c8", **changes})


def advised(*names, **changes):
    """The texts by id."""
    return {a.id: a.text for a in advise([subject(**changes)], [fired(n) for n in names])}


@pytest.mark.parametrize("why", ["weak-later-positions", "step-cost-exceeds-gain"])
@pytest.mark.parametrize(
    ("k", "load", "positions", "first"),
    [
        (2, "c8", None, "run k = 1 at c8, everything else fixed"),
        (3, "c8", None, "run k = 1 to 2 at c8, everything else fixed"),
        (5, None, None, "run k = 1 to 4 at the target load, everything else fixed"),
        (
            4,
            "c8",
            (0.6, 0.10, 0.09, 0.01),
            "run k = 1 to 3 at c8, everything else fixed, "
            "2 first: later positions add almost nothing",
        ),
        (
            3,
            "c8",
            (0.09, 0.02, 0.01),
            "run k = 1 to 2 at c8, everything else fixed, "
            "1 first: later positions add almost nothing",
        ),
        (3, "c8", (0.6, 0.3, 0.1), "run k = 1 to 2 at c8, everything else fixed"),
    ],
)
def test_fewer_draft_tokens_are_tried_alone_from_the_last_that_adds_something(
    why, k, load, positions, first
):
    rates = None if positions is None else Rates(per_position=positions)
    one = subject(k=k, load=load, acceptance=rates)
    (found,) = advise([one], [fired(why, load=load)])
    assert found == Advice(
        id="fewer-draft-tokens",
        group="g",
        task="code",
        text=f"{first}; compare TPOT and acceptance length",
        measured=False,
    )


@pytest.mark.parametrize("k", [None, 1])
def test_one_draft_token_is_the_fewest(k):
    assert advised("weak-later-positions", k=k) == {}


WINDOW = (
    "run other lookup windows with k fixed, and look at acceptance, coverage and TPOT together: "
    "a wider window that finds more and is accepted less is normal"
)
COPY = (
    "for text that copies, compare with {}; for new text, a draft model or an EAGLE-3 head; "
    "a model that ships MTP layers, MTP first"
)
NEW = (
    "for new text, compare with {}; for text that copies, ngram and suffix; "
    "a model that ships MTP layers, MTP first"
)


@pytest.mark.parametrize("why", ["low-coverage", "low-acceptance"])
@pytest.mark.parametrize(
    ("method", "advice"),
    [
        ("ngram", {"lookup-window": WINDOW, "other-method": COPY.format("suffix")}),
        ("ngram_gpu", {"lookup-window": WINDOW, "other-method": COPY.format("suffix")}),
        ("suffix", {"other-method": COPY.format("ngram")}),
        ("draft_model", {"other-method": NEW.format("an EAGLE-3 head")}),
        ("eagle", {"other-method": NEW.format("a draft model")}),
        ("eagle3", {"other-method": NEW.format("a draft model")}),
        ("mtp", {}),
    ],
)
def test_a_window_is_for_methods_that_look_up_and_another_method_for_other_text(
    why, method, advice
):
    assert advised(why, method=method) == advice


def test_a_lookup_that_finds_enough_needs_no_other_window():
    assert advised("slower-than-baseline", method="ngram").keys() == {"other-method"}
    assert advised("tail-pauses", method="ngram") == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "CLEAR"},
        {"task": "chat"},
        {"load": "c1"},
    ],
)
def test_what_is_said_of_another_cell_gives_no_advice(changes):
    assert advise([subject(method="ngram")], [fired("low-coverage", **changes)]) == ()
    wider = {"task": None, "load": None}
    assert len(advise([subject(method="ngram")], [fired("low-coverage", **wider)])) == 2


def test_defects_come_first():
    void = fired("failed-requests", effect="voids")
    zero = fired("zero-acceptance")
    low = fired("low-acceptance")
    found = advise([subject(method="ngram")], [low, zero, void])
    assert [(a.id, a.text) for a in found] == [
        ("mend-comparison", "measure again before any tuning: failed-requests; check the first")
    ]
    found = advise([subject(method="ngram")], [low, zero])
    assert [(a.id, a.text) for a in found] == [
        ("mend-acceptance", "find the defect before tuning anything: the first")
    ]


def points(*gains):
    return tuple(
        LoadPoint(
            label=f"c{size}",
            size=size,
            metric=metric,
            band=Band(estimate=estimate, lower=None, upper=None, basis=""),
        )
        for size, metric, estimate in gains
    )


def test_bands_out_of_loads_are_the_next_run_and_no_measurement():
    loads = points((1, "tpot", 0.3), (8, "tpot", 0.1), (32, "tpot", -0.1))
    (found,) = advise([subject(k=4, loads=loads)], [fired("gain-fades-with-load")])
    assert found == Advice(
        id="schedule-by-batch-size",
        group="g",
        task="code",
        text="set num_speculative_tokens_per_batch_size to [[1, 8, 4], [9, 32, 0]], out of the "
        "measured loads, and measure it as a group of its own: 0 draft tokens is not free",
        measured=False,
        schedule=((1, 8, 4), (9, 32, 0)),
    )
    (asked,) = advise([subject(k=4)], [fired("gain-fades-with-load")])
    assert (asked.text, asked.measured, asked.schedule) == (
        "measure k at each load, then set draft tokens by bands of batch size",
        False,
        None,
    )


@pytest.mark.parametrize(
    ("gains", "schedule"),
    [
        (((1, "tpot", 0.3), (8, "tpot", 0.0)), ((1, 1, 4), (2, 8, 0))),
        (
            ((1, "tpot", 0.3), (1, "output_throughput", 0.0), (8, "tpot", 0.1)),
            None,
        ),
        (
            ((4, "tpot", 0.3), (8, "tpot", 0.1), (8, "output_throughput", -0.1)),
            ((1, 4, 4), (5, 8, 0)),
        ),
        # A gain that comes back is left out: the bands are two.
        (
            ((1, "tpot", 0.3), (4, "tpot", -0.1), (8, "tpot", 0.1)),
            ((1, 1, 4), (2, 8, 0)),
        ),
        (((8, "tpot", 0.3),), None),
        (((8, "tpot", -0.3),), None),
    ],
)
def test_a_load_gains_when_each_of_its_metrics_does(gains, schedule):
    assert schedule_of(points(*gains), 4) == schedule
