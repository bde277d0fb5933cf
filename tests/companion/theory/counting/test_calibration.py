"""The closed Gaussian curve against mpmath quadrature of the hockey-stick divergence, and its inverses against it."""

import math

import mpmath as mp
import pytest

from elementdp.companion.theory.counting.calibration import (
    Calibration,
    paper_formula_is_proved,
    paper_variance,
    unit_sigma,
    wasted_variance,
)
from elementdp.errors import ArgumentError
from elementdp.privacy import gaussian_delta, gaussian_epsilon, gaussian_mu


def quadrature_delta(epsilon: float, mu: float) -> mp.mpf:
    """∫ (φ(x-μ) - e^ε φ(x))₊ dx with 40 digits; the integrand is positive beyond x = ε/μ + μ/2."""
    with mp.workdps(40):
        start = mp.mpf(epsilon) / mu + mp.mpf(mu) / 2
        density = lambda x: mp.npdf(x, mu, 1) - mp.e**epsilon * mp.npdf(x)  # noqa: E731
        return mp.quad(density, [start, start + 1, start + 4, start + 10, start + 40, mp.inf])


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0, 8.0])
@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 6.0])
def test_curve_agrees_with_quadrature(epsilon: float, mu: float) -> None:
    expected = float(quadrature_delta(epsilon, mu))
    if expected < 1e-300:
        assert gaussian_delta(epsilon, mu) < 1e-290
    else:
        assert gaussian_delta(epsilon, mu) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1, 0.9])
@pytest.mark.parametrize("epsilon", [0.001, 0.5, 3.0, 40.0])
def test_inverses_meet_their_target(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-8)
    assert gaussian_epsilon(delta, mu) == pytest.approx(epsilon, rel=1e-7, abs=1e-10)


def test_no_epsilon_is_needed_below_total_variation() -> None:
    assert gaussian_epsilon(math.erf(0.5 / (2 * math.sqrt(2))), 0.5) == 0.0
    assert gaussian_delta(1.0, 0.0) == 0.0


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 1.0001, 5.0, 30.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-6, 0.01, 0.5, 0.77])
def test_paper_formula_is_private_where_it_is_proved(epsilon: float, delta: float) -> None:
    assert paper_formula_is_proved(epsilon, delta)
    assert gaussian_delta(epsilon, 1 / math.sqrt(paper_variance(epsilon, delta))) <= delta
    assert wasted_variance(epsilon, delta) >= 1
    assert unit_sigma(epsilon, delta) <= unit_sigma(epsilon, delta, Calibration.PAPER)


def test_paper_formula_is_refused_where_it_is_not() -> None:
    assert quadrature_delta(1.0, paper_variance(1.0, 0.99) ** -0.5) > 0.99
    with pytest.raises(ArgumentError, match="at most"):
        unit_sigma(1.0, 0.99, "paper")


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (-1.0, 0.1), (math.inf, 0.1), (1.0, 0.0), (1.0, 1.0)])
def test_bad_targets_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(ArgumentError):
        unit_sigma(epsilon, delta)
