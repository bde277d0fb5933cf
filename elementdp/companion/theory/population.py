"""Populations with finitely many atoms: every expectation is a sum, so θ*, the Hessian and the sandwich are exact."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from elementdp.companion.theory.losses import FloatArray, Logistic, MarginLoss, PseudoHuber
from elementdp.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class Population:
    """P puts mass p_j on the observation (x_j, y_j); the loss is φ(xᵀθ, y).

    Methods take θ of shape (..., d) and optional weights (..., J): those of P by default, those of a
    sample (its frequencies) to get L_n (eqn:generic-empirical-risk).
    """

    loss: MarginLoss
    x: FloatArray
    y: FloatArray
    p: FloatArray

    def __post_init__(self) -> None:
        if self.x.ndim != 2 or self.y.shape != (len(self.x),) or self.p.shape != (len(self.x),):
            raise ArgumentError("x", self.x.shape, "of shape (J, d) with y and p of shape (J,)")
        if np.any(self.p < 0) or not np.isclose(self.p.sum(), 1):
            raise ArgumentError("p", self.p, "a probability vector")

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.x.shape[1])

    def risk(self, theta: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """L(θ) (eqn:pop-risk)."""
        return np.asarray((self._weights(weights) * self.loss.value(theta @ self.x.T, self.y)).sum(axis=-1))

    def gradient(self, theta: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """∇L(θ)."""
        return np.asarray((self._weights(weights) * self.loss.slope(theta @ self.x.T, self.y)) @ self.x)

    def hessian(self, theta: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """∇²L(θ)."""
        c = self._weights(weights) * self.loss.curve(theta @ self.x.T, self.y)
        return np.asarray(np.einsum("...j,ja,jb->...ab", c, self.x, self.x))

    def second_moment(self, theta: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """E[∇ℓ ∇ℓᵀ] at θ."""
        c = self._weights(weights) * self.loss.slope(theta @ self.x.T, self.y) ** 2
        return np.asarray(np.einsum("...j,ja,jb->...ab", c, self.x, self.x))

    def covariance(self, theta: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """cov(∇ℓ(θ; X))."""
        g = self.gradient(theta, weights)
        return np.asarray(self.second_moment(theta, weights) - g[..., :, None] * g[..., None, :])

    def minimiser(self, weights: FloatArray | None = None) -> FloatArray:
        """argmin L, or θ̂_n for every row of a sample's weights: Newton's method with halved steps."""
        shape = () if weights is None else weights.shape[:-1]
        theta = np.zeros((*shape, self.dimension))
        for _ in range(200):
            g = self.gradient(theta, weights)
            if np.all(np.abs(g) < 1e-12):
                return theta
            step = np.linalg.solve(self.hessian(theta, weights), g[..., None])[..., 0]
            size = np.ones((*shape, 1))
            value = self.risk(theta, weights)
            for _ in range(40):
                worse = self.risk(theta - size * step, weights) > value + 1e-15
                if not np.any(worse):
                    break
                size = np.where(worse[..., None], size / 2, size)
            theta = theta - size * step
        raise ArgumentError("weights", weights, "a sample whose risk has a minimiser (labels not separable)")

    @cached_property
    def optimum(self) -> FloatArray:
        """θ*."""
        return self.minimiser()

    def sandwich(self, middle: FloatArray) -> FloatArray:
        """H⁻¹ M H⁻¹ with H = ∇²L(θ*)."""
        inverse = np.linalg.inv(self.hessian(self.optimum))
        return np.asarray(inverse @ middle @ inverse)

    def limit_covariance(self, gamma: float, sigma: float) -> FloatArray:
        """Theorem 1 (theorem:normality): H⁻¹(Σ + (Σ + σ²I)/γ)H⁻¹, for standard normal Z."""
        scatter = self.covariance(self.optimum)
        return self.sandwich(scatter + (scatter + sigma**2 * np.eye(self.dimension)) / gamma)

    def _weights(self, weights: FloatArray | None) -> FloatArray:
        return self.p if weights is None else weights


def logistic_population(theta: tuple[float, float] = (0.15, -0.1)) -> Population:
    """A well-specified logistic regression on four lopsided designs, so that no symmetry hides a bias."""
    design = np.array([[6.0, 0.0], [0.0, 6.0], [4.0, -4.0], [6.0, 6.0]])
    x = np.repeat(design, 2, axis=0)
    y = np.tile([1.0, -1.0], 4)
    return Population(Logistic(), x, y, expit(y * (x @ np.asarray(theta))) / 4)


def robust_population(theta: tuple[float, float] = (0.25, -0.15)) -> Population:
    """Robust regression, noisiest along (1, 1): here ∇²L(θ*) and cov(∇ℓ) do not commute."""
    design = np.array([[6.0, 0.0], [0.0, 4.0], [4.0, 4.0], [4.0, -4.0]])
    scale = np.array([0.3, 0.5, 1.5, 0.3])
    noise = np.array([-2.0, -0.5, 0.5, 2.0])
    x = np.repeat(design, 4, axis=0)
    y = x @ np.asarray(theta) + np.repeat(scale, 4) * np.tile(noise, 4)
    return Population(PseudoHuber(), x, y, np.full(16, 1 / 16))
