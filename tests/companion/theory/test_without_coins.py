"""The exhibits of the page on training without coins, against closed forms and each other."""

import math

import numpy as np
import pytest

from elementdp.companion.theory.exhibits.without_coins import (
    ALLOCATED,
    CORRELATED,
    ORDER,
    PAIRS,
    USERS,
    Work,
    attacked,
    epsilon_against_epochs,
    noise_against_epochs,
    what_ways_need,
    which_is_better,
)
from elementdp.privacy import Correlation, gaussian_mu

WORK = Work(epochs=3, batches=20, delta=1e-5)


def test_effective_noise_of_a_fixed_order_is_the_closed_form() -> None:
    exact = 2 * math.sqrt(3) / gaussian_mu(2.0, 1e-5)
    assert WORK.effective_noise(ORDER, 2.0, 4) == pytest.approx(exact, rel=1e-3)
    gain = Correlation.optimised(4, 60, 20).error(60, 20)
    assert WORK.effective_noise(CORRELATED, 2.0, 4) == pytest.approx(gain * exact, rel=1e-3)


def test_the_five_ways_are_in_order() -> None:
    ways = (PAIRS, CORRELATED, ORDER, USERS)
    noise = [WORK.effective_noise(way, 2.0, 6) for way in ways]
    assert noise == sorted(noise)
    assert WORK.effective_noise(ALLOCATED, 2.0, 6) == pytest.approx(noise[0], rel=0.05)
    least = [WORK.promised(way, noise[1], 6) for way in ways]
    assert least[1] == pytest.approx(2.0, rel=1e-3)
    assert least == sorted(least)


def test_exhibits_cite_what_they_draw() -> None:
    shown = noise_against_epochs([1, 3], 20, 2.0, 1e-5, 4)
    gains = [float(row[3]) / float(row[2]) for row in shown.rows]  # type: ignore[arg-type]
    assert shown.numbers["coins-gain"] == f"{min(gains):.2f} to {max(gains):.2f}"
    told = {row[0]: row[1] for row in what_ways_need(shown).rows}
    short = [float(row[3]) / float(row[4]) for row in shown.rows]  # type: ignore[arg-type]
    low, high = (float(end) for end in str(told[CORRELATED]).split(" to "))
    assert (low, high) == pytest.approx((min(short), max(short)), rel=0.02)
    assert [row[0] for row in epsilon_against_epochs([1, 3], 20, 4.0, 1e-5, 4).rows] == [1, 3]
    better = which_is_better(WORK, 4.0, np.linspace(0.02, 5, 40))
    assert 0 < float(str(better.numbers["coins-crossing"])) < 5


def test_the_attack_is_in_order() -> None:
    rows = attacked(Work(3, 4, 0.01), 4.0, 3, 4000, np.random.default_rng(0)).rows
    assert [row[-1] for row in rows] == ["yes", "yes", "yes"]
