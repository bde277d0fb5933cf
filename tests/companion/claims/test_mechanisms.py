"""The second routes that the checks of conversions and basic mechanisms lean on."""

import math

import pytest

from elementdp.companion.claims.checks.mechanisms import (
    delta_by_quadrature,
    renyi_two_point,
    tight_delta,
    worst_two_point,
)
from elementdp.privacy import gaussian_delta


@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 0.2), (1.0, 7.05), (3.0, 1.0)])
def test_quadrature_route_agrees_with_the_closed_form(epsilon: float, mu: float) -> None:
    assert delta_by_quadrature(epsilon, mu) == pytest.approx(gaussian_delta(epsilon, mu), rel=1e-7)


def test_renyi_of_coins_by_hand() -> None:
    # D_2 = log Σ p²/q = log(0.36/0.5 + 0.16/0.5)
    assert renyi_two_point(0.6, 0.5, 2.0) == pytest.approx(math.log(1.04))


def test_coins_reach_the_best_known_conversion() -> None:
    # at large α the best known conversion is attained by two coins: nothing better can be proved
    target = 1.0 + math.log(1e4) / 49
    assert worst_two_point(1.0, 50.0, target) == pytest.approx(tight_delta(1.0, 50.0, target), rel=1e-3)
