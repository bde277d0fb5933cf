"""Optimal composition three ways: exact products, sign patterns, binomial sums."""

import math
from fractions import Fraction

import pytest

from elementdp.audit.composition import (
    optimal_delta,
    optimal_delta_equal,
    printed_advanced,
    repaired_advanced,
    worst_composition,
)
from elementdp.audit.finite import hockey_stick
from elementdp.errors import ArgumentError


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


def test_printed_delta_is_refuted_for_one_mechanism_without_epsilon():
    epsilon, small = printed_advanced([0.0], [0.1], 1e-3)
    assert epsilon == 0
    assert optimal_delta(0.0, [0.0], [0.1]) == pytest.approx(0.1)  # total variation
    assert small == pytest.approx(0.051)


@pytest.mark.parametrize("epsilons", [[0.3], [0.05] * 10, [2.0, 0.1, 0.7, 1.3], [4.0, 4.0]])
@pytest.mark.parametrize("slack", [1e-9, 1e-3, 0.4])
def test_repaired_advanced_bounds_the_optimum(epsilons, slack):
    deltas = [1e-4 * (i + 1) for i in range(len(epsilons))]
    total, small = repaired_advanced(epsilons, deltas, slack)
    assert optimal_delta(total, epsilons, deltas) <= small <= slack + sum(deltas)
    assert total <= printed_advanced(epsilons, deltas, slack)[0]


def test_too_many_patterns_are_refused():
    with pytest.raises(ArgumentError, match="between 1 and"):
        optimal_delta(1.0, [0.1] * 40, [0.0] * 40)
