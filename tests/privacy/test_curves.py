"""Gaussian and Laplace curves against fifty digits and against quadrature."""

import math

import mpmath as mp
import pytest
from accounting_oracles import gaussian
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.errors import ArgumentError
from elementdp.privacy import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    revealed_delta,
)

quick = settings(max_examples=60, deadline=None, derandomize=True)


@quick
@given(st.floats(-3, 3), st.floats(-4, 2))
def test_gaussian_curve_has_relative_accuracy(log_epsilon: float, log_mu: float) -> None:
    epsilon, mu = 10**log_epsilon, 10**log_mu
    exact = gaussian(epsilon, mu)
    if exact > 1e-290:
        assert gaussian_delta(epsilon, mu) == pytest.approx(float(exact), rel=1e-9)


@quick
@given(st.floats(-12, -0.1), st.floats(-3, 2))
def test_gaussian_inverses_come_back(log_delta: float, log_mu: float) -> None:
    delta, mu = 10**log_delta, 10**log_mu
    epsilon = gaussian_epsilon(delta, mu)
    if epsilon > 0:
        assert gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-8)
        assert gaussian_mu(epsilon, delta) == pytest.approx(mu, rel=1e-8)
    else:
        assert gaussian_delta(0.0, mu) <= delta


def test_revealed_participation_prunes_rightly_for_many_steps() -> None:
    steps, q, sigma = 3_000_000, 0.001, 100.0
    band = revealed_delta(2.0, q, sigma, steps)
    with mp.workdps(30):
        some = mp.fsum(
            mp.exp(mp.loggamma(steps + 1) - mp.loggamma(j + 1) - mp.loggamma(steps - j + 1))
            * mp.mpf(q) ** j
            * (1 - mp.mpf(q)) ** (steps - j)
            * gaussian(2.0, 2 * mp.sqrt(j) / sigma)
            for j in range(2400, 3700)
        )
    assert band.low <= some * (1 + mp.mpf("1e-20")) <= band.up


@pytest.mark.parametrize("delta", [0.0, -1.0, 1.5, math.nan])
def test_bad_delta_is_named(delta: float) -> None:
    with pytest.raises(ArgumentError, match="delta"):
        gaussian_epsilon(delta, 1.0)
