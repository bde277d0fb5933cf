"""Rényi curves of the printed pair, and their conversion to (ε, δ)."""

import math

import pytest
from accounting_oracles import renyi
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.errors import ArgumentError
from elementdp.privacy import (
    gaussian_epsilon,
    mironov,
    printed_epsilon,
    printed_renyi,
    tightest,
)

quick = settings(max_examples=25, deadline=None, derandomize=True)


@settings(max_examples=6, deadline=None, derandomize=True)  # the quadrature takes a second
@given(st.floats(1.01, 40), st.floats(-4, 0), st.floats(-0.5, 1.5))
def test_printed_pair_against_adaptive_quadrature(order: float, log_q: float, log_sigma: float) -> None:
    q, sigma = 10**log_q, 10**log_sigma
    assert printed_renyi(order, q, sigma) == pytest.approx(float(renyi(order, q, sigma)), rel=1e-6)


@pytest.mark.parametrize("order", [1.0, 1.5, 7.25, 1e4])
@pytest.mark.parametrize("sigma", [0.1, 3.0, 1e4])
def test_without_sampling_it_is_the_gaussian_mechanism(order: float, sigma: float) -> None:
    assert printed_renyi(order, 1.0, sigma) == pytest.approx(2 * order / sigma**2, rel=1e-9)


@pytest.mark.parametrize("order", [1.5, 7.25, 1e4])
@pytest.mark.parametrize("q", [1e-4, 0.5, 0.999])
@pytest.mark.parametrize("sigma", [0.02, 1e-3, 1e-8])
def test_with_hardly_any_noise_one_part_of_each_mixture_counts(order: float, q: float, sigma: float) -> None:
    """Far right A is qP₁ and B is (1 − q)P₀, up to parts below e^{−1/8σ²}: a Gaussian integral, in closed form."""
    expected = (order * math.log(q) + (1 - order) * math.log1p(-q)) / (order - 1) + order / (2 * sigma**2)
    assert printed_renyi(order, q, sigma) == pytest.approx(expected, rel=1e-9)


@quick
@given(st.floats(1.01, 50), st.floats(-6, -3), st.floats(0.7, 4))
def test_small_q_leading_term(order: float, log_q: float, log_sigma: float) -> None:
    """D_α → (α/2)·χ², and χ² of the two mixtures → 2q²(e^{1/σ²} − e^{−1/σ²}) as q → 0."""
    q, sigma = 10**log_q, 10**log_sigma
    if order < sigma:
        leading = order / 2 * q**2 * 2 * (math.exp(sigma**-2) - math.exp(-(sigma**-2)))
        assert printed_renyi(order, q, sigma) == pytest.approx(leading, rel=0.02)


@quick
@given(st.floats(0, 20), st.floats(1.001, 500), st.floats(-12, -0.5))
def test_tightest_beats_mironov_and_inverts(epsilon: float, order: float, log_delta: float) -> None:
    delta = 10**log_delta
    tight = tightest(epsilon, order, delta)
    assert tight <= mironov(epsilon, order, delta)
    if tight > 0:
        scaled = (order - 1) * (epsilon - tight) - math.log(order - 1) + order * math.log1p(-1 / order)
        assert scaled == pytest.approx(math.log(delta), rel=1e-6)


@pytest.mark.parametrize("tight", [True, False])
def test_conversion_is_above_the_exact_curve(tight: bool) -> None:
    exact = gaussian_epsilon(1e-6, 2 * math.sqrt(100) / 30)
    converted = printed_epsilon(1.0, 30.0, 100, 1e-6, tight=tight)
    assert exact < converted < 1.35 * exact
    mu = 2 * math.sqrt(100) / 30
    if not tight:  # Mironov's rule optimised by hand: μ²/2 + μ√(2 log 1/δ)
        assert converted == pytest.approx(mu**2 / 2 + mu * math.sqrt(2 * math.log(1e6)), rel=1e-6)


@pytest.mark.parametrize("order", [0.5, math.inf, math.nan])
def test_bad_orders_are_named(order: float) -> None:
    with pytest.raises(ArgumentError, match="order"):
        printed_renyi(order, 0.1, 1.0)
