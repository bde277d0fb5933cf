"""Argument checks: what is right comes back, everything else is refused by name."""

import math
from fractions import Fraction

import numpy as np
import pytest

from elementdp.errors import ArgumentError, at_least, nonnegative, one_of, positive, probability

NOT_NUMBERS = ["3", None, math.nan, [1.0], 1j]


@pytest.mark.parametrize("check", [positive, nonnegative, probability, lambda name, value: at_least(name, value, 0)])
@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_what_is_not_a_number_is_refused_by_name(check, value):
    with pytest.raises(ArgumentError, match=r"^sigma must be"):
        check("sigma", value)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(1), Fraction(1, 2)])
def test_numbers_of_every_kind_are_taken(value):
    assert positive("x", value) == nonnegative("x", value) == probability("x", value) == value


def test_ends_are_in_or_out_as_asked():
    assert nonnegative("x", 0.0) == probability("x", 0.0) == 0
    for refused in (
        lambda: positive("x", 0.0),
        lambda: positive("x", math.inf),
        lambda: nonnegative("x", -1e-300),
        lambda: probability("x", 0.0, low_open=True),
        lambda: probability("x", 1.0, high_open=True),
        lambda: probability("x", 1.0 + 1e-15),
        lambda: at_least("x", 2, 3),
        lambda: at_least("x", 2.5, 1),
        lambda: at_least("x", True, 0),
        lambda: at_least("x", math.inf, 0),
        lambda: one_of("x", "c", ["a", "b"]),
    ):
        with pytest.raises(ArgumentError):
            refused()
    assert at_least("x", 3.0, 3) == 3
