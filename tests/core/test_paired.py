import pytest
from msgspec.structs import astuple
from scipy import stats

from bundle.core.paired import ItemScores, blocked_share, compare, majority, mcnemar, sign_test


def item(name, first, last, method, same=False):
    return ItemScores(
        item=str(name), first=tuple(first), last=tuple(last), method=tuple(method), same_output=same
    )


def items(*, kept=0, lost=0, won=0, wavering=0):
    yes, no = (True,), (False,)
    groups = (
        (kept, yes, yes, yes),
        (lost, yes, yes, no),
        (won, no, no, yes),
        (wavering, yes, no, yes),
    )
    return [
        item(f"{g}-{i}", first, last, method)
        for g, (count, first, last, method) in enumerate(groups)
        for i in range(count)
    ]


@pytest.mark.parametrize(("losses", "wins"), [(5, 0), (4, 0), (10, 3), (3, 10), (1, 1), (60, 40)])
def test_mcnemar_is_the_exact_binomial_test(losses, wins):
    exact = stats.binomtest(losses, losses + wins, 0.5, alternative="greater").pvalue
    assert mcnemar(losses, wins) == pytest.approx(exact, rel=1e-10)
    assert sign_test(losses, wins) == pytest.approx(exact, rel=1e-10)


def test_no_discordant_item_is_no_evidence():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(0, 7) == 1.0


@pytest.mark.parametrize(("more", "fewer"), [(-1, 0), (0, -1)])
def test_counts_cannot_be_negative(more, fewer):
    with pytest.raises(ValueError, match="expected counts"):
        sign_test(more, fewer)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([], None),
        ([True], True),
        ([False], False),
        ([True, False], None),
        ([True, True, False], True),
        ([True, False, False], False),
    ],
)
def test_majority_knows_ties(scores, expected):
    assert majority(scores) is expected


def test_equal_quality_is_shown():
    found = compare(items(kept=118, lost=2, won=1))
    assert found.state == "SHOWN"
    assert (found.losses, found.wins) == (2, 1)
    assert (found.items, found.excluded) == (121, 0)
    assert found.reasons == ("2 of 121 items lost, 1 won (exact p = 0.5)",)


def test_five_clean_losses_are_broken_and_four_are_not():
    assert compare(items(kept=115, lost=5)).state == "BROKEN"
    assert compare(items(kept=116, lost=4)).state == "SHOWN"


def test_a_net_loss_beyond_five_percent_is_not_shown():
    found = compare(items(kept=98, lost=15, won=8))
    assert found.p > 0.05
    assert found.state == "NOT SHOWN"
    assert found.reasons[-1] == "net loss of 7, allowed 5%"
    assert compare(items(kept=99, lost=14, won=8)).state == "SHOWN"


def test_items_without_a_clear_score_are_excluded_and_too_many_measure_nothing():
    some = compare(items(kept=108, wavering=12))
    assert (some.state, some.excluded, some.items) == ("SHOWN", 12, 108)
    many = compare(items(kept=107, wavering=13))
    assert many.state == "NOT MEASURED"
    assert many.reasons == ("13 of 120 items have no clear score: the starts disagree",)


def test_ties_of_the_method_and_missing_starts_are_excluded():
    tie = item("tie", (True, True), (True, True), (True, False))
    gone = item("gone", (), (), (True, True))
    found = compare([*items(kept=120), tie, gone])
    assert (found.excluded, found.losses) == (2, 0)


def test_same_tokens_cannot_have_lost():
    same = [item(f"s{i}", (True,), (True,), (False,), same=True) for i in range(6)]
    found = compare([*items(kept=120), *same])
    assert (found.losses, found.state, found.p_symmetric) == (0, "SHOWN", 1.0)


@pytest.mark.parametrize("first", [True, False])
def test_a_wavering_baseline_alone_does_not_break_quality(first):
    # Six losses over agreed items, but against one of the baselines the method wins as often.
    wavers = [item(f"w{i}", (first,), (not first,), (True,)) for i in range(6)]
    found = compare([*items(kept=108, lost=6), *wavers])
    assert found.p == pytest.approx(2**-6)
    assert found.p_symmetric == pytest.approx(mcnemar(6, 6))
    assert found.state == "NOT SHOWN"
    assert "the baseline itself wavers" in found.reasons[-1]


def test_empty_replies_break_quality():
    found = compare(items(kept=120), broken_replies=1)
    assert found.state == "BROKEN"
    assert found.reasons[0] == "1 empty or one-token replies where the baseline has none"


def test_doubts_keep_quality_from_being_shown_and_never_improve_it():
    shown = compare(items(kept=120), doubts=["gap above 1 nat on two items"])
    assert shown.state == "NOT SHOWN"
    assert shown.reasons[-1] == "gap above 1 nat on two items"
    assert compare(items(kept=115, lost=5), doubts=["gap"]).state == "BROKEN"


def test_no_items_measure_nothing():
    found = compare([])
    assert (found.state, found.reasons) == ("NOT MEASURED", ("no item was scored",))


def test_few_items_say_how_little_they_see():
    found = compare(items(kept=40))
    assert found.state == "SHOWN"
    assert (
        found.reasons[1] == "40 items only: a loss of 10 points is blocked in about 78 % of cases"
    )


def test_blocked_share_without_churn_is_a_binomial_tail():
    assert blocked_share(40, 0.10) == pytest.approx(stats.binom.sf(2, 40, 0.1), rel=1e-9)
    assert blocked_share(120, 0.10) == pytest.approx(stats.binom.sf(4, 120, 0.1), rel=1e-9)


def test_what_loses_nothing_is_never_blocked():
    assert blocked_share(20, 0.0) == pytest.approx(0.0, abs=1e-12)


def test_a_hundred_and_twenty_items_are_enough_and_one_less_says_what_it_sees():
    assert len(compare(items(kept=120)).reasons) == 1
    assert compare(items(kept=119)).reasons[1] == (
        "119 items only: a loss of 10 points is blocked in about 99 % of cases"
    )


def test_exactly_five_percent_may_be_lost():
    found = compare(items(kept=98, lost=14, won=8))
    assert (found.items, found.losses - found.wins, found.state) == (120, 6, "SHOWN")


def test_what_nothing_is_said_of_is_another_output_and_can_be_lost():
    lost = [
        ItemScores(item=f"l{i}", first=(True,), last=(True,), method=(False,)) for i in range(5)
    ]
    assert compare([*items(kept=115), *lost]).state == "BROKEN"


def test_what_was_counted_stays_as_it_is_and_is_named():
    for record in (*items(kept=1), compare([])):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(record, record.__struct_fields__[0], "other")
        with pytest.raises(TypeError, match="positional"):
            type(record)(*astuple(record))


@pytest.mark.parametrize("fewer", [0, 1, 7])
def test_nothing_more_is_no_evidence_at_all(fewer):
    assert sign_test(0, fewer) == 1.0


def test_two_of_five_are_no_majority():
    assert majority((True, True, False, False, False)) is False
    assert majority((True, True, True, False, False)) is True


def test_items_that_both_pass_or_both_fail_are_neither_lost_nor_won():
    def both(item, passed):
        return ItemScores(item=item, first=(passed,), last=(passed,), method=(passed,))

    found = compare([both(f"q{i}", i % 2 == 0) for i in range(10)])
    assert (found.items, found.losses, found.wins) == (10, 0, 0)
