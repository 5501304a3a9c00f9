"""The time account adds up."""

import pytest

from bundle.core.account import Account, account_lines


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_phases_and_rest_sum_to_the_wall_time() -> None:
    clock = Clock()
    account = Account(clock, began=98.0)
    with account.phase("preparing"):
        clock.now += 10
    account.add({"servers": 3.0, "cells": 4.0})
    clock.now += 8
    seconds = account.seconds()
    assert seconds["preparing"] == 10
    assert seconds["rest"] == pytest.approx(20 - 17)
    assert sum(seconds.values()) == pytest.approx(20)


def test_what_comes_before_the_first_phase_is_claimed_too() -> None:
    clock = Clock()
    account = Account(clock, began=92.0)
    account.begin("preparing")
    with account.phase("preparing"):
        clock.now += 2
    assert account.seconds()["preparing"] == 10
    assert account.seconds()["rest"] == 0


def test_a_phase_that_fails_is_counted_and_earlier_starts_are_added() -> None:
    clock = Clock()
    account = Account(clock, began=100.0, earlier={"cells": 5.0, "rest": 1.0})
    with pytest.raises(KeyError), account.phase("cells"):
        clock.now += 2
        raise KeyError
    assert account.seconds()["cells"] == 7
    assert account.seconds()["rest"] == 1


def test_an_unknown_phase_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        Account(Clock(), began=0.0).add({"nothing": 1.0})


def test_lines_show_shares_and_the_total() -> None:
    lines = account_lines({"cells": 75.0, "rest": 25.0})
    assert lines[0].split() == ["cells", "75.0", "s", "75.0", "%"]
    assert lines[-1].split() == ["total", "100.0", "s", "100.0", "%"]
    assert account_lines({})[-1].split() == ["total", "0.0", "s", "0.0", "%"]
