"""Exact ordering errors of heavy hitters, and the separation γ of proposition:heavyhitters, printed and repaired."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.special import ndtr
from scipy.stats import binom

from elementdp.errors import ArgumentError, at_least, nonnegative, probability


def presence(p: float, m: int) -> float:
    """q = 1 - (1-p)^m, the chance that a user has an item of probability p (lemma:indicator-properties)."""
    return -math.expm1(at_least("m", m, 1) * math.log1p(-probability("p", p, high_open=True)))


def difference_law(p_i: float, p_j: float, m: int) -> NDArray[np.float64]:
    """Probabilities that Y_i - Y_j is -1, 0, 1 for one user: only j, both or none, only i."""
    q_ij, q_i, q_j = presence(p_i + p_j, m), presence(p_i, m), presence(p_j, m)
    return np.array([q_ij - q_i, 1 - 2 * q_ij + q_i + q_j, q_ij - q_j])


def misorder_probability(p_i: float, p_j: float, n: int, m: int, sigma: float) -> float:
    """P(Ĥ_i < Ĥ_j), exactly: the n-fold convolution of the difference of indicators, then Gaussian noise."""
    law = _power(difference_law(p_i, p_j, m), at_least("n", n, 1))
    gaps = np.arange(-n, n + 1)
    return float(law @ _below(gaps, nonnegative("sigma", sigma)))


def misorder_probability_by_conditioning(p_i: float, p_j: float, n: int, m: int, sigma: float) -> float:
    """The same by another route: B ~ Bin(n, ·) users have exactly one of the two, Bin(B, ·) of them item i."""
    only_j, _, only_i = difference_law(p_i, p_j, m)
    share = only_i / (only_i + only_j)
    total = 0.0
    for b, weight in enumerate(binom.pmf(np.arange(n + 1), n, only_i + only_j)):
        if weight > 1e-18:
            reach = 10 * math.sqrt(b) / 2 + 10  # ten standard deviations: what is left out is below 1e-20
            wins = np.arange(max(0, math.floor(b * share - reach)), min(b, math.ceil(b * share + reach)) + 1)
            total += weight * float(binom.pmf(wins, b, share) @ _below(2 * wins - b, sigma))
    return total


def expected_ordering_losses(
    p: NDArray[np.floating], n: int, m: int, sigma: float, gammas: Sequence[float]
) -> list[float]:
    """L_order (eqn:heavyhittersloss with its inequality put right) at each γ, exactly.

    Equal probabilities are computed once.
    """
    values, times = np.unique(np.asarray(p, dtype=float), return_counts=True)
    wrong = {
        (low, high): float(times[low] * times[high]) * misorder_probability(values[high], values[low], n, m, sigma)
        for low, high in combinations(range(len(values)), 2)
        if values[high] - values[low] >= min(gammas)
    }
    return [sum(lost for (low, high), lost in wrong.items() if values[high] - values[low] >= one) for one in gammas]


def expected_ordering_loss(p: NDArray[np.floating], n: int, m: int, sigma: float, gamma: float) -> float:
    """L_order at one γ."""
    return expected_ordering_losses(p, n, m, sigma, [gamma])[0]


def printed_gamma(n: int, m: int, d: int, t: float, sigma: float, p1: float) -> float:
    """The γ of proposition:heavyhitters as printed."""
    log = _log_ratio(d, t)
    return max(
        32 * log / (n * m),
        4 * math.sqrt(2 * log) * sigma / (n * m),
        12 * math.sqrt(2 * log * p1 / 5) / (m * math.sqrt(n)),
    )


def repaired_gamma(n: int, m: int, d: int, t: float, sigma: float, p1: float) -> float:
    """The γ the proof supports: √2 more in the noise term, and √(p₁/(nm)) where √p₁/(m√n) is printed.

    From lemma:order-error-bound, q_i - q_j ≥ m(p_i-p_j)/2 and v ≤ q_i + q_j ≤ 2mp₁ the exponent is at least the smaller
    of 5nm²γ²/(96mp₁ + 80σ²/n) and nmγ/16; a sum in a denominator costs a factor 2 when it is split in a maximum.
    """
    log = _log_ratio(d, t)
    return max(
        32 * log / (n * m),
        8 * math.sqrt(log) * sigma / (n * m),
        math.sqrt(2 * 2 * 96 * log * p1 / (5 * n * m)),
    )


def _log_ratio(d: int, t: float) -> float:
    if not 0 < t <= d:
        raise ArgumentError("t", t, f"in (0, d] with d = {d}")
    return math.log(d / t)


def _power(law: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The n-fold convolution of a law, by repeated squaring."""
    result, base = np.ones(1), law
    while n:
        if n & 1:
            result = fftconvolve(result, base)
        n >>= 1
        if n:
            base = fftconvolve(base, base)
    return np.clip(result, 0.0, None)


def _below(gaps: NDArray[np.int_], sigma: float) -> NDArray[np.float64]:
    """P(gap + N(0, 2σ²) < 0) for each gap."""
    if sigma == 0:
        return (gaps < 0).astype(float)
    return np.asarray(ndtr(-gaps / (math.sqrt(2) * sigma)))
