"""Averages: noise has the 1/n, guarantees are what a likelihood computation says."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from elementdp.companion.theory.counting import GaussianMechanism, LaplaceMechanism, gaussian_average, laplace_average
from elementdp.errors import ArgumentError
from elementdp.privacy import Unit


def test_average_noise_shrinks_with_n() -> None:
    rng = np.random.default_rng(0)
    few = gaussian_average(np.zeros((10, 20_000)), 1.0, 1.0, 1e-6, Unit.ELEMENT, rng)
    many = gaussian_average(np.zeros((100, 20_000)), 1.0, 1.0, 1e-6, Unit.ELEMENT, rng)
    assert few.noise_sd == pytest.approx(10 * many.noise_sd)
    assert np.std(many.value) == pytest.approx(many.noise_sd, rel=0.03)
    assert many.guarantee.unit is Unit.ELEMENT
    laplace = laplace_average(np.ones((50, 20_000)), 2.0, 0.5, Unit.USER, rng)
    assert laplace.noise_sd == pytest.approx(math.sqrt(2) * 2.0 / (0.5 * 50))
    assert np.std(laplace.value) == pytest.approx(laplace.noise_sd, rel=0.03)
    assert np.mean(laplace.value) == pytest.approx(1.0, abs=0.01)
    assert laplace.guarantee.delta == 0


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0, 1.5])
def test_laplace_curve_by_quadrature(epsilon: float) -> None:
    mechanism = LaplaceMechanism.calibrated(1.2, 3.0, Unit.ELEMENT)
    b, s = mechanism.scale, mechanism.sensitivity
    gap = lambda x: max(0.0, math.exp(-abs(x) / b) - math.exp(epsilon - abs(x - s) / b)) / (2 * b)  # noqa: E731
    exact = quad(gap, -60, 0, limit=300)[0] + quad(gap, 0, s, limit=300, epsabs=1e-12)[0]
    assert mechanism.delta(epsilon) == pytest.approx(exact, abs=1e-7)


def test_gaussian_guarantees_agree_with_each_other() -> None:
    mechanism = GaussianMechanism.calibrated(0.7, 1e-5, 2.5, Unit.USER)
    assert mechanism.guarantee(1e-5).epsilon == pytest.approx(0.7)
    assert mechanism.delta(0.7) == pytest.approx(1e-5)
    # Rényi of two Gaussians by quadrature of E_q (p/q)^α
    alpha, mu = 3.0, mechanism.mu
    moment = quad(
        lambda x: math.exp(-(alpha * (x - mu) ** 2 + (1 - alpha) * x * x) / 2) / math.sqrt(2 * math.pi), -30, 30
    )
    assert mechanism.renyi(alpha).epsilon == pytest.approx(math.log(moment[0]) / (alpha - 1))


@pytest.mark.parametrize("values", [np.float64(1.0), np.zeros((0, 3)), np.array([1.0, np.nan])])
def test_bad_values_are_refused(values: np.ndarray) -> None:
    with pytest.raises(ArgumentError):
        gaussian_average(values, 1.0, 1.0, 1e-6, Unit.ELEMENT, np.random.default_rng(0))
