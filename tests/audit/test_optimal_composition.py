"""Optimal composition three ways: exact products, sign patterns, binomial sums."""

import math
from fractions import Fraction

import pytest

from elementdp.audit.composition import (
    optimal_delta,
    optimal_delta_equal,
    worst_composition,
)
from elementdp.audit.finite import hockey_stick
from elementdp.errors import ArgumentError
from elementdp.privacy import Guarantee, Unit
from elementdp.privacy.composition import compose_advanced, compose_advanced_as_printed, compose_optimal


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("leak", [Fraction(0), Fraction(1, 20)])
@pytest.mark.parametrize("total", [Fraction(1), Fraction(2), Fraction(9, 2), Fraction(200)])
def test_the_three_routes_agree(k, leak, total):
    odds = Fraction(3, 2)
    exact = float(hockey_stick(*worst_composition(odds, leak, k), total))
    epsilon, at = math.log(1.5), math.log(total)
    assert optimal_delta(at, [epsilon] * k, [float(leak)] * k) == pytest.approx(exact, abs=1e-13)
    assert optimal_delta_equal(at, epsilon, float(leak), k) == pytest.approx(exact, abs=1e-13)


def test_unequal_levels_do_not_depend_on_the_order():
    first = optimal_delta(0.7, [0.1, 0.5, 1.0], [0.0, 1e-3, 1e-2])
    assert optimal_delta(0.7, [1.0, 0.1, 0.5], [1e-2, 0.0, 1e-3]) == pytest.approx(first, rel=1e-12)


def parts(epsilons, deltas):
    return [Guarantee(epsilon, delta, Unit.ELEMENT) for epsilon, delta in zip(epsilons, deltas, strict=True)]


def test_printed_delta_is_refuted_for_one_mechanism_without_epsilon():
    printed = compose_advanced_as_printed(parts([0.0], [0.1]), 1e-3)
    assert printed.epsilon == 0
    assert optimal_delta(0.0, [0.0], [0.1]) == pytest.approx(0.1)  # total variation
    assert printed.delta == pytest.approx(0.051)


@pytest.mark.parametrize("epsilons", [[0.3], [0.05] * 10, [2.0, 0.1, 0.7, 1.3], [4.0, 4.0]])
@pytest.mark.parametrize("slack", [1e-9, 1e-3, 0.4])
def test_advanced_composition_bounds_the_optimum(epsilons, slack):
    deltas = [1e-4 * (i + 1) for i in range(len(epsilons))]
    repaired = compose_advanced(parts(epsilons, deltas), slack)
    assert optimal_delta(repaired.epsilon, epsilons, deltas) <= repaired.delta * (1 + 1e-9)
    assert repaired.delta <= slack + sum(deltas)
    assert repaired.epsilon <= compose_advanced_as_printed(parts(epsilons, deltas), slack).epsilon


@pytest.mark.parametrize("total", [0.0, 0.4, 1.7])
def test_agrees_with_the_accountant(total):
    epsilons, deltas = [0.1, 0.5, 0.5, 1.0], [0.0, 1e-3, 1e-2, 0.0]
    other = compose_optimal(parts(epsilons, deltas), epsilon=total)
    assert optimal_delta(total, epsilons, deltas) == pytest.approx(other.delta, rel=1e-9)


def test_too_many_patterns_are_refused():
    with pytest.raises(ArgumentError, match="between 1 and"):
        optimal_delta(1.0, [0.1] * 40, [0.0] * 40)
