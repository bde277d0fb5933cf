"""Printed bounds are bounds."""

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.privacy import Band, Guarantee, SubsampledGaussian, Unit, account, rounded_down, rounded_up


@given(st.floats(1e-300, 1e300), st.integers(1, 8))
@settings(derandomize=True, deadline=None)
def test_rounding_goes_outwards_by_less_than_a_digit(value, digits):
    low, up = rounded_down(value, digits), rounded_up(value, digits)
    exact = Decimal(repr(value))
    assert Decimal(low) <= exact <= Decimal(up)
    assert float(up) <= value * (1 + 10.0 ** (1 - digits)) * (1 + 1e-12)
    assert float(low) >= value * (1 - 10.0 ** (1 - digits)) * (1 - 1e-12)
    assert len(Decimal(up).normalize().as_tuple().digits) <= digits


@pytest.mark.parametrize("value", [0.0, 3.0, 5e-05, 0.1, 1e-06, math.inf])
def test_short_numbers_stay_what_they_are(value):
    assert rounded_up(value) == rounded_down(value) == f"{value:g}"


def test_what_is_said_of_a_guarantee_is_promised():
    assert str(Guarantee(2.00049, 1.0049e-6, Unit.ELEMENT)).startswith("(2.001, 1.01e-06)-DP")
    assert f"{Band(1.2345, 1.2349, 1.2351):.3g}" == "1.23 to 1.24"


def test_bounds_that_contradict_each_other_are_heard():
    with pytest.raises(ArithmeticError, match="one of the two is wrong"):
        Band.between(5305.0, 5244.0)
    assert Band.between(1.0 + 1e-9, 1.0) == Band(1.0, 1.0, 1.0)


def test_a_difference_just_more_frequent_than_delta_is_not_called_none():
    """With hardly any noise δ(0) = q(1 − 2Φ(−1/σ)) = q, and q is above δ by less than rounding 1 − (1 − q) shows."""
    q, delta = 1.0042288944828988e-08, 1.0042288917086882e-08
    assert q > delta
    assert account(SubsampledGaussian("poisson-pairs", 0.01, q, 1), delta).up > 0
