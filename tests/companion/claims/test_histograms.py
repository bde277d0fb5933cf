"""The exact enumerations of Section 3.2 against simulation."""

import math

import numpy as np
import pytest

from elementdp.companion.claims.checks.histograms import (
    PRINTED_BIAS_LEMMA,
    bias_lemma_ratio,
    brute_sensitivity,
    error_tail,
    overflow,
    projected_moments,
    projected_tail,
)


def test_moments_by_simulation() -> None:
    rng = np.random.default_rng(0)
    x = rng.multinomial(10, [0.3, 0.7], size=400_000).astype(float)
    pi = x[:, 0] * np.minimum(1, 7.25 / np.linalg.norm(x, axis=1))
    exact = projected_moments(10, 0.3, 0.7, 7.25)
    assert np.var(pi) == pytest.approx(exact.variance, rel=0.01)
    assert exact.raw_variance == pytest.approx(10 * 0.3 * 0.7)
    assert np.mean(x[:, 0] - pi) == pytest.approx(exact.bias, rel=0.01)
    assert exact.variance > exact.raw_variance  # the joint projection adds variance to this coordinate


def test_error_tail_by_simulation() -> None:
    rng = np.random.default_rng(1)
    n, m, p, rho, sigma, u = 5, 12, 0.3, 4, 0.5, 0.9
    means = np.minimum(rng.binomial(m, p, size=(200_000, n)), rho).mean(axis=1) + rng.normal(
        0, rho * sigma / n, 200_000
    )
    assert error_tail(n, m, p, rho, sigma, u) == pytest.approx(np.mean(np.abs(means - m * p) >= u), abs=0.005)
    assert error_tail(1, 3, 0.5, 3, 0.0, 0.5) == pytest.approx(1.0)


def test_projected_tail_by_simulation() -> None:
    rng = np.random.default_rng(2)
    n, m, p, rho, sigma, u = 2, 12, (0.3, 0.2), 4.0, 0.5, 0.7
    x = rng.multinomial(m, [*p, 1 - sum(p)], size=(200_000, n))[..., :2].astype(float)
    pi = x[..., 0] * np.minimum(1, rho / np.maximum(np.linalg.norm(x, axis=-1), 1e-300))
    means = pi.mean(axis=1) + rng.normal(0, rho * sigma / n, 200_000)
    assert projected_tail(n, m, *p, rho, sigma, u) == pytest.approx(np.mean(np.abs(means - m * p[0]) >= u), abs=0.005)


def test_overflow_bounds_the_exact_second_moment() -> None:
    bound = overflow(5)
    for m, p in ((5, 0.01), (20, 0.1), (200, 0.2)):
        rho = 3 * m * p + 3 * math.log(m)
        x = np.arange(m + 1)
        law = np.array([math.comb(m, k) * p**k * (1 - p) ** (m - k) for k in x])
        assert (law * x**2)[x > rho].sum() <= bound * m * p


def test_small_cases_by_hand() -> None:
    assert brute_sensitivity([0, 0], 1.0, 1) == pytest.approx(math.sqrt(2))
    assert brute_sensitivity([0], 1.0, 3) == pytest.approx(1.0)
    # m = 3, p = 0.01, t = 0: l = 0.09 + 3.296, so P(X = 4) = 0
    assert bias_lemma_ratio(PRINTED_BIAS_LEMMA, 3, np.array([0.01]), 0.0) == 0.0
