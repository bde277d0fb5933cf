"""Whole-number noise: its law, its tails and what its discreteness costs, against mpmath and exact sums."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import chi2, ks_2samp, kstest

from elementdp.errors import ArgumentError
from elementdp.histogram.gaussian_table import STEP, TABLE_DELTA, GaussianTable, discrete_gaussian, variances
from elementdp.histogram.noise import (
    ROUNDING_DELTA,
    discrete_tail,
    exact_noise,
    rounding_epsilon,
    scale_for,
    seeded_noise,
)


def discrete_pmf(scale: float) -> dict[int, mp.mpf]:
    reach = math.ceil(40 * scale)
    weights = {k: mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(scale) ** 2)) for k in range(-reach, reach + 1)}
    total = mp.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def rounded_pmf(k: int, scale: float) -> mp.mpf:
    """P[round(N) = k], with the tail taken on the side where it does not cancel."""
    a, b = (mp.mpf(abs(k)) + side for side in (-mp.mpf(1) / 2, mp.mpf(1) / 2))
    return (mp.erfc(a / scale / mp.sqrt(2)) - mp.erfc(b / scale / mp.sqrt(2))) / 2


@pytest.mark.parametrize("scale", [1.0, 2.5, 7.0])
def test_discrete_and_rounded_gaussian_are_as_close_as_the_proof_says(scale: float) -> None:
    with mp.workdps(60):
        for k, p in discrete_pmf(scale).items():
            q = rounded_pmf(k, scale)
            assert p <= q * mp.exp(1 / (12 * mp.mpf(scale) ** 2))
            if abs(k) <= 16 * scale:
                assert q <= p * mp.exp(33 / mp.mpf(scale) ** 2)
        assert mp.erfc((16 - 0.5 / mp.mpf(scale)) / mp.sqrt(2)) < ROUNDING_DELTA
    assert rounding_epsilon(scale) >= (33 + 1 / 12) / scale**2


@pytest.mark.parametrize(("scale", "shift"), [(40.0, 40), (100.0, 30)])
def test_privacy_of_one_discrete_coordinate_is_below_the_accounted_curve(scale: float, shift: int) -> None:
    from elementdp.privacy.curves import gaussian_delta

    pmf = discrete_pmf(scale)
    for epsilon in (0.5, 1.0, 2.0):
        exact = mp.fsum(max(mp.mpf(0), p - mp.exp(epsilon) * pmf.get(k - shift, mp.mpf(0))) for k, p in pmf.items())
        extra = rounding_epsilon(scale)
        assert exact <= math.exp(extra) * gaussian_delta(epsilon - extra, shift / scale)


@pytest.mark.parametrize("scale", [1.5, 20.0])
def test_tail_bound_is_above_the_exact_tail_and_near_it(scale: float) -> None:
    pmf = discrete_pmf(scale)
    for threshold in (1, 2, math.ceil(scale), math.ceil(5 * scale)):
        exact = float(mp.fsum(p for k, p in pmf.items() if k >= threshold))
        later = 0.5 * math.erfc(threshold / scale / math.sqrt(2))
        assert later * 0.5 <= exact <= discrete_tail(threshold, scale)
    assert discrete_tail(0, scale) == 1.0


def test_exact_noise_has_the_law_of_the_discrete_gaussian() -> None:
    scale, draws = 3.0, 20_000
    values = exact_noise(np.zeros(draws, dtype=np.int64), scale)
    pmf = discrete_pmf(scale)
    inner = range(-8, 9)
    expected = [float(pmf[k]) * draws for k in inner]
    seen = [int(np.sum(values == k)) for k in inner]
    expected.append(draws - sum(expected))
    seen.append(draws - sum(seen))
    statistic = sum((s - e) ** 2 / e for s, e in zip(seen, expected, strict=True))
    assert statistic < chi2.isf(1e-9, len(expected) - 1)  # there is no seed: fails once in 10⁹ runs


def test_exact_noise_is_added_to_large_values() -> None:
    values = np.arange(10, dtype=np.int64) << 50
    assert np.abs(exact_noise(values, 2.0) - values).max() < 100
    assert exact_noise(values[:0], 2.0).shape == (0,)


def test_seeded_noise_repeats_and_has_its_scale() -> None:
    zeros = np.zeros(10_000, dtype=np.int64)
    first, again, other = (seeded_noise(seed)(zeros, 1e6) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.std() == pytest.approx(1e6, rel=0.05)


def test_scale_is_the_least_that_keeps_within_mu() -> None:
    for sensitivity, mu in ((1.0, 0.1), (math.sqrt(2) * 2**30, 0.23), (2.0**30, 3.0)):
        scale = scale_for(sensitivity, mu)
        assert sensitivity / mu <= scale * (1 + 1e-15)
        assert scale == pytest.approx(sensitivity / mu, rel=1e-9)
    with pytest.raises(ArgumentError, match="mu"):
        scale_for(1.0, 0.0)


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(47, 5), Fraction(1024) ** 2, Fraction(2047) ** 2])
def test_a_table_is_the_distribution_function_to_128_bits(variance: Fraction) -> None:
    table = GaussianTable.of(variance)
    with mp.workdps(80):
        v = mp.mpf(variance.numerator) / variance.denominator
        weights = [mp.exp(-(mp.mpf(k) ** 2) / (2 * v)) * (1 if k == 0 else 2) for k in range(len(table.sums) + 3000)]
        total, running, apart = mp.fsum(weights), mp.mpf(0), mp.mpf(0)
        previous = 0
        for sum_, weight in zip(table.sums, weights, strict=False):
            apart += abs(mp.mpf(sum_ - previous) / 2**128 - weight / total)
            previous = sum_
            running += weight
        apart += abs(mp.mpf(2**128 - previous) / 2**128 - (1 - running / total))
        assert apart / 2 < mp.mpf(TABLE_DELTA) / 5
    assert list(table.sums) == sorted(table.sums)


@pytest.mark.parametrize("scale", [2048.0, 2500.5, 300_000.0, 524_288.0])
def test_levels_add_up_to_the_gaussian_of_the_whole_scale(scale: float) -> None:
    """Two levels, the probabilities of some sums by enumeration of the upper: proportional to exp(−k²/2σ²)."""
    low, high = variances(scale)
    assert low + high * STEP**2 == Fraction(scale) ** 2
    with mp.workdps(80):

        def mass(k: int) -> mp.mpf:
            near = range(k // STEP - 120, k // STEP + 121)  # elsewhere the lower level is 10⁻¹⁹⁰ and less
            lower = (mp.exp(-(mp.mpf(k - STEP * y) ** 2) / (2 * mp.mpf(int(low)))) for y in near)
            upper = (mp.exp(-(mp.mpf(y) ** 2) * high.denominator / (2 * high.numerator)) for y in near)
            return mp.fsum(p * q for p, q in zip(lower, upper, strict=True))

        ratios = [
            mass(k) / mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(scale) ** 2))
            for k in (0, 1, 100, 127, 128, 255, 1000, int(3 * scale), int(8 * scale))
        ]
        assert max(abs(ratio / ratios[0] - 1) for ratio in ratios) < mp.mpf("1e-75")


@pytest.mark.parametrize("scale", [2.0**20 * 1.37, 2.0**31, 2.0**42])
def test_wide_noise_has_the_moments_of_the_gaussian(scale: float) -> None:
    draws = discrete_gaussian(scale, 60_000) / scale
    assert len(variances(scale)) > 2
    assert abs(draws.mean()) < 6 / math.sqrt(60_000)
    assert chi2.isf(1 - 1e-9, 60_000) <= np.sum(draws**2) <= chi2.isf(1e-9, 60_000)
    assert kstest(draws, "norm").pvalue > 1e-9


def test_noise_is_that_of_opendp() -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    theirs = np.array(dp.m.make_gaussian(*space, scale=2500.5)([0] * 4000))
    assert ks_2samp(theirs, discrete_gaussian(2500.5, 40_000)).pvalue > 1e-9


def test_too_wide_noise_is_refused() -> None:
    with pytest.raises(ArgumentError, match="scale"):
        discrete_gaussian(2.0**60, 1)
