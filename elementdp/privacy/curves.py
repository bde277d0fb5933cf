"""The exact privacy curve δ(ε) of the Gaussian mechanism, and its inverses."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr

from elementdp.errors import nonnegative, probability

Floats = NDArray[np.float64]


def gaussian_log_delta(epsilon: float, mu: ArrayLike) -> Floats:
    """log δ(ε) of N(μ,1) against N(0,1), μ = sensitivity/noise: log[Φ(μ/2−ε/μ) − e^ε Φ(−μ/2−ε/μ)].

    (Balle & Wang 2018.) The difference is taken between Mills ratios, so that δ keeps its relative accuracy far below
    the smallest float.
    """
    mu = np.asarray(mu, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        scale = math.sqrt(math.pi / 2)
        mills = scale * (erfcx(near / math.sqrt(2)) - erfcx(far / math.sqrt(2)))
        # For a tiny μ the two ratios agree to all digits: their difference is −erfcx' at the middle times the distance.
        middle = epsilon / mu / math.sqrt(2)
        steep = np.where(
            middle < 30,
            2 / math.sqrt(math.pi) - 2 * middle * erfcx(middle),
            (1 - 1.5 / middle**2) / middle**2 / math.sqrt(math.pi),
        )
        mills = np.where(mu < 1e-5, scale * steep * mu / math.sqrt(2), mills)
        tail = -near * near / 2 - math.log(2 * math.pi) / 2 + np.log(mills)
        # Left of −5 the first term is nearly one and its Mills ratio overflows: subtract the probabilities themselves.
        body = log_ndtr(-near) + np.log1p(-np.exp(np.minimum(epsilon + log_ndtr(-far) - log_ndtr(-near), 0.0)))
    return np.where(mu == 0, -np.inf, np.where(near < -5, body, tail))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """δ(ε) of the Gaussian mechanism with sensitivity/noise = ``mu``."""
    nonnegative("epsilon", epsilon)
    nonnegative("mu", mu)
    return float(np.exp(gaussian_log_delta(epsilon, mu)))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """The smallest ε with δ(ε) ≤ ``delta`` for the Gaussian mechanism with sensitivity/noise = ``mu``."""
    probability("delta", delta, low_open=True)
    nonnegative("mu", mu)
    target = math.log(delta)
    if mu == 0 or gaussian_log_delta(0.0, mu) <= target:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(-2 * target) + 1e-300  # δ(ε) ≤ Φ(μ/2−ε/μ) ≤ exp(−(ε/μ−μ/2)²/2)
    return float(brentq(lambda e: float(gaussian_log_delta(e, mu)) - target, 0.0, high, xtol=1e-300, rtol=1e-13))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest sensitivity/noise with which the Gaussian mechanism is (ε, δ)-differentially private."""
    nonnegative("epsilon", epsilon)
    probability("delta", delta, low_open=True, high_open=True)
    target = math.log(delta)
    low = high = 1.0
    while gaussian_log_delta(epsilon, low) > target:
        low /= 2
    while gaussian_log_delta(epsilon, high) <= target:
        high *= 2
    return float(brentq(lambda mu: float(gaussian_log_delta(epsilon, mu)) - target, low, high, rtol=1e-13))
