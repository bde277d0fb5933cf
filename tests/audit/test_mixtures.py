"""Gaussian mixtures against mpmath quadrature, closed forms and limits."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.audit.mixtures import (
    Mixture,
    gaussian_delta,
    hockey_stick,
    leading_coefficient,
    pair_sampled,
    renyi,
    user_sampled,
)
from elementdp.errors import ArgumentError


def density(mixture, x):
    parts = (w * mpmath.npdf(x, m, mixture.sigma) for m, w in zip(mixture.means, mixture.weights, strict=True))
    return sum(parts)


@pytest.mark.parametrize(("q", "sigma", "others"), [(0.1, 1.0, 0.0), (0.3, 2.0, 3.0), (0.01, 0.7, 1.0)])
def test_against_mpmath(q, sigma, others):
    p, r = user_sampled(q, sigma, others, 1), user_sampled(q, sigma, others, -1)
    nodes = list(range(-30, 41, 2))
    moment = mpmath.quad(lambda x: density(p, x) ** 2.5 * density(r, x) ** -1.5, nodes)
    assert renyi(p, r, 2.5) == pytest.approx(float(mpmath.log(moment) / 1.5), rel=1e-8)
    epsilon = 0.05
    # The root splits the integral: quadrature across the kink of (·)₊ would lose digits.
    excess = lambda x: density(p, x) - mpmath.exp(epsilon) * density(r, x)  # noqa: E731
    grid = np.linspace(-20, 30, 4001)
    signs = [excess(x) > 0 for x in grid]
    roots = [
        mpmath.findroot(excess, (grid[i], grid[i + 1]), solver="anderson")
        for i in range(4000)
        if signs[i] != signs[i + 1]
    ]
    edges = [mpmath.mpf(-30), *roots, mpmath.mpf(40)]
    total = sum(max(0, mpmath.quad(excess, mpmath.linspace(a, b, 12))) for a, b in itertools.pairwise(edges))
    assert hockey_stick(p, r, epsilon) == pytest.approx(float(total), rel=1e-6)


def test_without_sampling_it_is_the_gaussian_curve():
    p, r = user_sampled(1.0, 2.0, 5.0, 1), user_sampled(1.0, 2.0, 5.0, -1)
    assert hockey_stick(p, r, 0.8) == pytest.approx(gaussian_delta(0.8, 1.0), rel=1e-10)
    assert renyi(p, r, 7.0) == pytest.approx(7 * 4 / (2 * 4), rel=1e-10)


@pytest.mark.parametrize("q", [0.01, 0.3])
def test_many_other_elements_reveal_participation(q):
    sigma, epsilon, order = 2.0, 0.4, 4.0
    p, r = user_sampled(q, sigma, 200, 1), user_sampled(q, sigma, 200, -1)
    assert hockey_stick(p, r, epsilon) == pytest.approx(q * gaussian_delta(epsilon, 2 / sigma), rel=1e-9)
    revealed = math.log(1 - q + q * math.exp(order * (order - 1) * 2 / sigma**2)) / (order - 1)
    assert renyi(p, r, order) == pytest.approx(revealed, rel=1e-9)


@pytest.mark.parametrize("sigma", [0.8, 2.0, 5.0])
@pytest.mark.parametrize("order", [1.5, 2.0, 6.0])
def test_leading_term_of_the_printed_pair(sigma, order):
    def coefficient(q):
        return renyi(user_sampled(q, sigma, 0, 1), user_sampled(q, sigma, 0, -1), order) / (order * q**2)

    # Richardson: the expansion is in powers of q, so this removes the term in q³.
    limit = 2 * coefficient(1e-4) - coefficient(2e-4)
    assert limit == pytest.approx(leading_coefficient(sigma), rel=1e-3)
    assert leading_coefficient(sigma) > 2 / sigma**2


elements = st.floats(-1, 1)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(elements, max_size=4), elements, elements, st.floats(0.01, 0.9), st.floats(0.5, 3), st.floats(0, 1.5))
def test_pair_sampling_never_exceeds_the_printed_pair(others, mine, replaced, q, sigma, epsilon):
    p, r = pair_sampled(q, sigma, tuple(others), mine), pair_sampled(q, sigma, tuple(others), replaced)
    top = user_sampled(q, sigma, 0, 1), user_sampled(q, sigma, 0, -1)
    assert hockey_stick(p, r, epsilon) <= hockey_stick(*top, epsilon) + 1e-11
    assert renyi(p, r, 3.0) <= renyi(*top, 3.0) * (1 + 1e-9) + 1e-12


def test_weights_must_add_up():
    with pytest.raises(ArgumentError, match="weights"):
        Mixture((0.0, 1.0), (0.5, 0.6), 1.0)
