"""Laplace and Gaussian noise on sums and averages over users (eqn:basic-mechanisms, with the 1/n it lacks)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elementdp.companion.theory.counting.calibration import Calibration, unit_sigma
from elementdp.errors import ArgumentError, at_least, nonnegative, positive
from elementdp.privacy import Guarantee, Relation, RenyiGuarantee, Unit
from elementdp.privacy.curves import gaussian_delta, gaussian_epsilon


@dataclass(frozen=True)
class Release:
    """A private value, the guarantee it carries and the standard deviation of the noise in each coordinate."""

    value: NDArray[np.float64]
    guarantee: Guarantee
    noise_sd: float


@dataclass(frozen=True)
class GaussianMechanism:
    """Adds N(0, sigma²) to each coordinate of a quantity whose ℓ2 sensitivity for ``unit`` is ``sensitivity``.

    Floating-point noise: fit for research, not for adversaries who read the last bits. For a release use
    :func:`elementdp.histogram.private_histogram`.
    """

    sensitivity: float
    sigma: float
    unit: Unit
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        nonnegative("sensitivity", self.sensitivity)
        positive("sigma", self.sigma)

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        sensitivity: float,
        unit: Unit,
        calibration: Calibration | str = Calibration.EXACT,
    ) -> "GaussianMechanism":
        """The mechanism with just enough noise for (ε, δ), by the exact curve or by the paper's formula."""
        return cls(sensitivity, positive("sensitivity", sensitivity) * unit_sigma(epsilon, delta, calibration), unit)

    @property
    def mu(self) -> float:
        """Sensitivity over noise standard deviation: everything the privacy depends on."""
        return self.sensitivity / self.sigma

    def delta(self, epsilon: float) -> float:
        """The exact δ at this ε."""
        return gaussian_delta(epsilon, self.mu)

    def guarantee(self, delta: float) -> Guarantee:
        """The exact guarantee at this δ."""
        return Guarantee(gaussian_epsilon(delta, self.mu), delta, self.unit, self.relation)

    def renyi(self, order: float) -> RenyiGuarantee:
        """The exact Rényi guarantee: order · μ²/2."""
        return RenyiGuarantee(order * self.mu**2 / 2, order, self.unit, self.relation)

    def release(self, value: ArrayLike, rng: np.random.Generator) -> NDArray[np.float64]:
        """The value with noise."""
        exact = np.asarray(value, dtype=float)
        return exact + rng.normal(scale=self.sigma, size=exact.shape)


@dataclass(frozen=True)
class LaplaceMechanism:
    """Adds Laplace noise of this scale to each coordinate of a quantity whose ℓ1 sensitivity is ``sensitivity``."""

    sensitivity: float
    scale: float
    unit: Unit
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        nonnegative("sensitivity", self.sensitivity)
        positive("scale", self.scale)

    @classmethod
    def calibrated(cls, epsilon: float, sensitivity: float, unit: Unit) -> "LaplaceMechanism":
        """The mechanism with scale sensitivity/ε: ε-private, with δ = 0."""
        return cls(sensitivity, positive("sensitivity", sensitivity) / positive("epsilon", epsilon), unit)

    def delta(self, epsilon: float) -> float:
        """The exact δ at this ε for one coordinate: 1 - exp((ε - sensitivity/scale)/2) where that is positive."""
        return max(0.0, -math.expm1((nonnegative("epsilon", epsilon) - self.sensitivity / self.scale) / 2))

    def guarantee(self) -> Guarantee:
        """ε = sensitivity/scale, δ = 0."""
        return Guarantee(self.sensitivity / self.scale, 0.0, self.unit, self.relation)

    def release(self, value: ArrayLike, rng: np.random.Generator) -> NDArray[np.float64]:
        """The value with noise."""
        exact = np.asarray(value, dtype=float)
        return exact + rng.laplace(scale=self.scale, size=exact.shape)


def gaussian_average(
    values: ArrayLike,
    sensitivity: float,
    epsilon: float,
    delta: float,
    unit: Unit,
    rng: np.random.Generator,
    calibration: Calibration | str = Calibration.EXACT,
) -> Release:
    """A private average of f(x⁽ᵘ⁾), one row a user; ``sensitivity`` is es(f) or gs(f) in ℓ2, for one user.

    One user's share of an average is 1/n of it, so the noise is too: eqn:basic-mechanisms leaves this factor out.
    """
    rows = _per_user(values)
    mechanism = GaussianMechanism.calibrated(epsilon, delta, sensitivity / len(rows), unit, calibration)
    return Release(mechanism.release(rows.mean(axis=0), rng), Guarantee(epsilon, delta, unit), mechanism.sigma)


def laplace_average(
    values: ArrayLike, sensitivity: float, epsilon: float, unit: Unit, rng: np.random.Generator
) -> Release:
    """As :func:`gaussian_average` with Laplace noise: ``sensitivity`` in ℓ1, δ = 0."""
    rows = _per_user(values)
    mechanism = LaplaceMechanism.calibrated(epsilon, sensitivity / len(rows), unit)
    return Release(mechanism.release(rows.mean(axis=0), rng), mechanism.guarantee(), math.sqrt(2) * mechanism.scale)


def _per_user(values: ArrayLike) -> NDArray[np.float64]:
    rows = np.asarray(values, dtype=float)
    if rows.ndim == 0:
        raise ArgumentError("values", values, "one value or row a user")
    at_least("number of users", len(rows), 1)
    if not np.isfinite(rows).all():
        raise ArgumentError("values", "a non-finite number", "finite")
    return rows
