"""Optimal composition by binomial sums and by the accountant, against exact products of canonical pairs."""

import math
from fractions import Fraction

import pytest

from elementdp.audit.composition import optimal_delta_equal
from elementdp.audit.finite import canonical_pair, hockey_stick, independent
from elementdp.privacy import Guarantee, Unit
from elementdp.privacy.composition import compose_advanced, compose_advanced_as_printed, compose_optimal


def exact_delta(total, levels):
    """The hockey-stick divergence of the product of canonical pairs with these (e^ε, δ), in fractions."""
    pairs = [canonical_pair(Fraction(odds), Fraction(leak)) for odds, leak in levels]
    return float(hockey_stick(*(independent(*side) for side in zip(*pairs, strict=True)), Fraction(total)))


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("leak", [Fraction(0), Fraction(1, 20)])
@pytest.mark.parametrize("total", [Fraction(1), Fraction(2), Fraction(9, 2), Fraction(200)])
def test_binomial_sums_are_exact(k, leak, total):
    exact = exact_delta(total, [(Fraction(3, 2), leak)] * k)
    assert optimal_delta_equal(math.log(total), math.log(1.5), float(leak), k) == pytest.approx(exact, abs=1e-13)


def parts(levels):
    return [Guarantee(math.log(odds), float(leak), Unit.ELEMENT) for odds, leak in levels]


def test_printed_delta_is_refuted_for_one_mechanism_without_epsilon():
    printed = compose_advanced_as_printed(parts([(1, 0.1)]), 1e-3)
    assert printed.epsilon == 0
    assert exact_delta(1, [(1, 0.1)]) == pytest.approx(0.1)  # total variation
    assert printed.delta == pytest.approx(0.051)


@pytest.mark.parametrize("odds", [[1.375], [1.0625] * 5, [8.0, 1.125, 2.0, 3.75], [50.0, 50.0]])
@pytest.mark.parametrize("slack", [1e-9, 1e-3, 0.4])
def test_advanced_composition_bounds_the_optimum(odds, slack):
    levels = [(one, 1e-4 * (i + 1)) for i, one in enumerate(odds)]
    repaired = compose_advanced(parts(levels), slack)
    assert exact_delta(math.exp(repaired.epsilon), levels) <= repaired.delta * (1 + 1e-9)
    assert repaired.delta <= slack + sum(leak for _, leak in levels)
    assert repaired.epsilon <= compose_advanced_as_printed(parts(levels), slack).epsilon


@pytest.mark.parametrize("total", [1.0, 1.5, 5.5])
def test_the_accountant_is_exact_for_unequal_levels(total):
    levels = [(1.125, 0), (1.625, 1e-3), (1.625, 1e-2), (2.75, 0)]
    found = compose_optimal(parts(levels), epsilon=math.log(total))
    assert found.delta == pytest.approx(exact_delta(total, levels), rel=1e-9)
