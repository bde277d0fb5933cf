"""Losses of a linear response: ℓ(θ; x, y) = φ(xᵀθ, y) with φ smooth and convex in its first argument."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from elementdp.errors import positive

FloatArray = NDArray[np.float64]


class MarginLoss(ABC):
    """φ(s, y), its first two derivatives in s, and its infimum over s (which the truncated model needs)."""

    floor: float = 0.0

    @property
    def lipschitz(self) -> float:
        """The largest |∂φ/∂s|."""
        return 1.0

    @abstractmethod
    def value(self, s: FloatArray, y: FloatArray) -> FloatArray:
        """φ(s, y)."""

    @abstractmethod
    def slope(self, s: FloatArray, y: FloatArray) -> FloatArray:
        """∂φ/∂s."""

    @abstractmethod
    def curve(self, s: FloatArray, y: FloatArray) -> FloatArray:
        """∂²φ/∂s²."""


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(-ys)) with labels y = ±1; 1-Lipschitz in s."""

    def value(self, s: FloatArray, y: FloatArray) -> FloatArray:
        return np.logaddexp(0.0, -y * s)

    def slope(self, s: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(-y * expit(-y * s))

    def curve(self, s: FloatArray, y: FloatArray) -> FloatArray:
        p = expit(y * s)
        return np.asarray(p * (1 - p) * y**2)


@dataclass(frozen=True)
class PseudoHuber(MarginLoss):
    """w²(√(1 + (s-y)²/w²) - 1), a robust regression loss with Lipschitz Hessian; w-Lipschitz in s."""

    width: float = 1.0

    def __post_init__(self) -> None:
        positive("width", self.width)

    @property
    def lipschitz(self) -> float:
        return self.width

    def value(self, s: FloatArray, y: FloatArray) -> FloatArray:
        r2 = ((s - y) / self.width) ** 2
        # r²/(√(1+r²)+1) is √(1+r²)-1 without the cancellation near the minimum.
        return np.asarray(self.width**2 * r2 / (np.sqrt(1 + r2) + 1))

    def slope(self, s: FloatArray, y: FloatArray) -> FloatArray:
        r = s - y
        return np.asarray(r / np.sqrt(1 + (r / self.width) ** 2))

    def curve(self, s: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray((1 + ((s - y) / self.width) ** 2) ** -1.5)
