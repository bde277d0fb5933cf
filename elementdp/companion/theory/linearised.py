"""The linearised iteration of the proof: its matrices B and A, and Theorem 1's covariance before the limit."""

import numpy as np

from elementdp.companion.theory.iteration import NoisySteps
from elementdp.companion.theory.losses import FloatArray
from elementdp.companion.theory.population import Population


def averaging_factors(curvature: float, setting: NoisySteps, steps: int) -> FloatArray:
    """B_i^k of the proof for a one-dimensional Hessian h: α_i Σ_{j=i..k} Π_{l=i+1..j} (1 - α_l h), i = 1..k."""
    alpha = setting.step_sizes(steps)
    shrink = (1 - alpha * curvature).tolist()
    inner = [1.0] * steps
    for i in range(steps - 2, -1, -1):
        inner[i] = 1.0 + shrink[i + 1] * inner[i + 1]
    return np.asarray(alpha * np.asarray(inner))


def iteration_covariance(hessian: FloatArray, noise: FloatArray, k: int, setting: NoisySteps) -> FloatArray:
    """k·cov of the averaged linear iteration around its fixed point: (1/k) Σ_i B_i N B_i; its limit is H⁻¹NH⁻¹."""
    values, vectors = np.linalg.eigh(hessian)
    factors = np.stack([averaging_factors(float(value), setting, k) for value in values])
    inner = (vectors.T @ noise @ vectors) * (factors @ factors.T) / k
    return np.asarray(vectors @ inner @ vectors.T)


def finite_covariance(
    population: Population, n: int, k: int, setting: NoisySteps, weights: tuple[float, float, float] | None = None
) -> FloatArray:
    """Theorem 1 before the limit: n·cov(θ̄_k) of the linearised iteration, which adds to the sandwich of θ̂_n.

    ``weights`` are those of the sample's, the draws' and the noise's covariance: (1, n/k, n/k) in the theorem.
    """
    sample, draws, noise = weights or (1.0, n / k, n / k)
    scatter = population.covariance(population.optimum)
    middle = draws * scatter + noise * setting.sigma**2 * np.eye(population.dimension)
    inside = iteration_covariance(population.hessian(population.optimum), middle, k, setting)
    return np.asarray(sample * population.sandwich(scatter) + inside)


def matrix_error(population: Population, k: int, setting: NoisySteps) -> float:
    """The root mean square of lemma:matrix-inverse-errors-go-to-zero at H_n = H: √((1/k) Σ_i tr(A_i N A_i))."""
    hessian = population.hessian(population.optimum)
    noise = population.covariance(population.optimum) + setting.sigma**2 * np.eye(population.dimension)
    values, vectors = np.linalg.eigh(hessian)
    weights = np.diag(vectors.T @ noise @ vectors)
    errors = np.stack([averaging_factors(float(value), setting, k) - 1 / value for value in values])
    return float(np.sqrt((weights[:, None] * errors**2).sum() / k))


def relative_gap(actual: FloatArray, wanted: FloatArray) -> float:
    """The largest relative difference of two covariances over all directions."""
    return float(np.abs(np.linalg.eigvals(np.linalg.solve(wanted, actual)).real - 1).max())
