"""The recorded experiments with and without coins: what the page says is what the tables hold."""

import math

import pytest

from elementdp.companion.experiments.without_coins import WAYS, CoinsPage, noise_by_way
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
