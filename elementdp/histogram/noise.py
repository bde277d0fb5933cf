"""Whole-number noise: the discrete Gaussian, what its discreteness costs, and an imitation for tests.

All queries of a release are whole numbers on a fine grid, so σ below is in grid steps and large (about 2³⁰).

**What discreteness costs.** Let p be the discrete Gaussian, p(k) = exp(−k²/2σ²)/Z, and q the continuous N(0, σ²)
rounded to the nearest whole number, σ ≥ 1. By Poisson summation Z = √(2π)σ(1 + z) with 0 ≤ z ≤ 1/σ², and pairing u
with −u

    q(k)/p(k) = (1 + z) ∫ exp(−u²/2σ²) cosh(ku/σ²) du   over |u| ≤ 1/2,

which is ≥ 1 − 1/24σ² for every k, and ≤ (1 + z) cosh(k/2σ²) ≤ exp((1 + B²/8)/σ²) for |k| ≤ Bσ. With B = 16:

    p ≤ q·exp(1/12σ²) everywhere,   q ≤ p·exp(33/σ²) unless |k| > 16σ, which q does with probability < 10⁻⁵⁰.

Take neighbours x, x' whose queries differ in m coordinates in all (the others have the same law under both and say
nothing), and exchange p for q on these. The exchanged mechanism is a rounding of Gaussians, hence (ε', δ') by the exact
curve, so the real one satisfies P(x) ≤ exp(m/12σ²)·(e^ε' (exp(33m/σ²) P(x') + 10⁻⁵⁰ m) + δ'): that is, at
ε = ε' + 34m/σ², a δ of exp(34m/σ²)·(δ' + 10⁻⁵⁰ m e^ε). At σ = 2³⁰ and a million coordinates the addition is 3·10⁻¹¹.

**What the tables cost.** Noise is drawn by :mod:`elementdp.histogram.gaussian_table`, each draw within t = 10⁻³² of the
discrete Gaussian in total variation. On the m coordinates that differ this adds at most t·m to P(x) and takes at most
t·m from P(x'), which costs a further δ of (1 + e^ε)·t·m; the 10⁻⁵⁰ above and the tables' relative error disappear
beside it.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from elementdp.errors import positive
from elementdp.histogram.gaussian_table import TABLE_DELTA, discrete_gaussian

Integers = NDArray[np.int64]
AddNoise = Callable[[Integers, float], Integers]
"""Adds independent noise of scale σ (second argument) to whole numbers."""

ROUNDING_DELTA = 1e-50
"""Probability that a rounded Gaussian lies beyond 16σ, at most."""

DRAW_DELTA = TABLE_DELTA + 2 * ROUNDING_DELTA
"""What one drawn coordinate that differs between neighbours adds to δ, beside e^ε times as much."""


def exact_noise(values: Integers, scale: float) -> Integers:
    """Add discrete Gaussian noise drawn from the operating system's entropy, without floating point."""
    return np.asarray(values + discrete_gaussian(scale, len(values)))


def seeded_noise(seed: int) -> AddNoise:
    """Noise that repeats: rounded float Gaussians of a seeded generator. For tests only, it protects no one."""
    rng = np.random.default_rng(seed)

    def add(values: Integers, scale: float) -> Integers:
        return np.asarray(values + np.rint(rng.normal(0.0, scale, len(values))).astype(np.int64))

    return add


def scale_for(sensitivity: float, mu: float) -> float:
    """The least scale σ with sensitivity/σ ≤ μ, exactly and not only in floating point."""
    scale = positive("sensitivity", sensitivity) / positive("mu", mu)
    while Fraction(sensitivity) > Fraction(mu) * Fraction(scale):
        scale = math.nextafter(scale, math.inf)
    return scale


def rounding_epsilon(scale: float) -> float:
    """34/σ²: the ε that one coordinate of discrete noise can cost beyond its rounded continuous twin."""
    return 34 / scale**2


def discrete_tail(threshold: float, scale: float) -> float:
    """An upper bound on P[X ≥ threshold] for discrete Gaussian X: the continuous tail one step earlier.

    For whole m ≥ 1, Σ_{k ≥ m} exp(−k²/2σ²) ≤ ∫_{m−1}^∞ exp(−t²/2σ²) dt, and Z ≥ √(2π)σ.
    """
    return 0.5 * math.erfc((threshold - 1) / scale / math.sqrt(2)) if threshold >= 1 else 1.0
