"""The multiplier central limit theorem at the end of the proof of Theorem 1, with either of its two scalings."""

import numpy as np

from elementdp.companion.theory.losses import FloatArray
from elementdp.companion.theory.population import Population


def multiplier_covariance(population: Population, n: int, k: int, power: int) -> FloatArray:
    """Covariance of (1/√n) Σ_i (n/k)^(power/2) (M_{n,i} - k/n) ∇ℓ(θ*; X_i), M multinomial(k, 1/n), exactly.

    ``power`` = 1 is √(n/k), as in the display before; ``power`` = -1 is √(k/n), as in the display itself.
    Given the sample the sum has covariance k times that of the sample, whose mean is (1 - 1/n)Σ.
    """
    return np.asarray((n / k) ** power * (k / n) * (1 - 1 / n) * population.covariance(population.optimum))


def multiplier_draws(
    population: Population, n: int, k: int, power: int, replications: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draws of the two coordinates of the display: the multiplier sum, and (1/√n) Σ ∇ℓ(θ*; X_i)."""
    x, y = population.x, population.y
    gradients = population.loss.slope(x @ population.optimum, y)[:, None] * x
    counts = rng.multinomial(n, population.p, size=replications)
    # Observations with the same value share their multipliers' sum: multinomial with the sample's frequencies.
    chosen = rng.multinomial(k, counts / n)
    plain = counts @ gradients / np.sqrt(n)
    scaled = (n / k) ** (power / 2) * ((chosen - counts * (k / n)) @ gradients) / np.sqrt(n)
    return np.asarray(scaled), np.asarray(plain)
