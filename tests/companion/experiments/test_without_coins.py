"""The recorded experiments with and without coins: what the page says is what the tables hold."""

import math

import pytest

from elementdp.companion.experiments.without_coins import WAYS, CoinsPage, WayDifference, WayResult, noise_by_way
from elementdp.privacy import gaussian_mu, paper_delta


def test_every_outcome_is_of_a_way_and_in_the_table() -> None:
    page = CoinsPage()
    outcomes = [*page.accuracies, *page.errors]
    assert {one.way for one in outcomes} <= set(WAYS)
    assert len({(one.setting, one.way) for one in outcomes}) == len(outcomes)
    shown = page.recorded()
    for row in shown.rows:
        held = {one.way: one.value for one in outcomes if one.setting == row[0]}
        for way, told in zip(WAYS, row[1:], strict=True):
            assert (told == "not recorded") == (way not in held)
            if way in held:
                assert float(str(told).split()[0]) == pytest.approx(held[way], rel=0.01)


def test_noise_by_way_has_the_closed_form_of_a_fixed_order() -> None:
    shown = noise_by_way(500, 0.05, 60)
    rows = {row[0]: row for row in shown.rows}
    exact = 2 * math.sqrt(3) / gaussian_mu(3.0, paper_delta(500))
    assert float(str(rows["fixed order"][1])) == pytest.approx(exact, rel=0.01)
    assert float(str(rows["pairs sampled"][2])) == 1


def test_a_way_is_ahead_only_beyond_the_bar_and_a_smaller_error_is_better() -> None:
    many, few = WayResult("s", "one", 90.0, 1.0, ""), WayResult("s", "other", 85.0, 1.0, "")
    assert WayDifference.between(many, few, ratio=False).ahead == 1
    assert WayDifference.between(few, many, ratio=False).ahead == -1
    assert WayDifference.between(many, few, ratio=True).ahead == -1
    near = WayDifference.between(many, WayResult("s", "other", 88.0, 1.0, ""), ratio=False)
    assert near.ahead == 0
    assert near.bar == pytest.approx(1.959964 * math.sqrt(2), rel=1e-6)
    assert str(near) == "+2.0 ± 2.8"
    ratio = WayDifference.between(WayResult("s", "one", 0.2, 0.02, ""), WayResult("s", "o", 0.1, 0.0, ""), ratio=True)
    assert str(ratio) == "2.00 ± 0.39*"
