"""The counterexamples of the training statements, once more by other routes."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from elementdp.companion.claims.checks import training_privacy
from elementdp.privacy import Sampler, SubsampledGaussian, account, claimed


def test_the_attack_finds_nothing_against_pair_sampling():
    """The same attack with the changed element's own coin: its finding stays below δ at the true ε."""
    q, sigma, steps, others, delta = 0.05, 1.0, 10, 12, 1e-2
    epsilon = account(SubsampledGaussian(Sampler.POISSON_PAIRS, sigma, q, steps), delta).up
    rng = np.random.default_rng(0)
    rates = []
    for sign in (1, -1):
        shape = (200_000, steps)
        own = (rng.random(shape) < q) * sign
        seen = rng.binomial(others, q, shape) + own + sigma * rng.normal(size=shape)
        rates.append(float(((2 * (seen - others * q) / sigma**2).sum(1) > epsilon).mean()))
    assert rates[0] - math.exp(epsilon) * rates[1] < delta


def test_the_counterexample_by_quadrature():
    """One step, the user's other elements summing to r = 30: the hockey-stick divergence, integrated."""
    q, sigma = 0.3, 2.0
    event = SubsampledGaussian(Sampler.POISSON_USERS, sigma, q, 1)
    epsilon = claimed(event, 1e-2)

    def gap(z):
        p = (1 - q) * norm.pdf(z, 0, sigma) + q * norm.pdf(z, 31, sigma)
        other = (1 - q) * norm.pdf(z, 0, sigma) + q * norm.pdf(z, 29, sigma)
        return max(0.0, p - math.exp(epsilon) * other)

    delta = quad(gap, 15, 60, limit=400)[0]
    assert delta > 1e-2
    assert account(event, delta).up >= epsilon - 1e-6


def test_the_second_route_to_the_revealed_curve_is_its_own():
    assert training_privacy.revealed_epsilon_by_sums(1.0, 2.0, 1, 1e-3) == pytest.approx(
        account(SubsampledGaussian(Sampler.NONE, 2.0), 1e-3).estimate, rel=1e-6
    )
