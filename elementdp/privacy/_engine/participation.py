"""Participation revealed: the exact curve of T user-sampled steps when a user's other elements give the user away."""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp, xlog1py, xlogy

from elementdp.privacy.band import Band
from elementdp.privacy.curves import gaussian_log_delta


def _rounding(steps: int) -> float:
    """Relative error of the closed form in floating point, generously: log-gammas of T are T·log(T) large."""
    return 1e-10 + 1e-15 * steps * math.log(steps + 1)


def revealed_delta(epsilon: float, q: float, sigma: float, steps: int, change: float = 2.0) -> Band:
    """δ(ε) = E[δ_Gauss(ε; μ = change·√j/σ)], j ~ Bin(T, q).

    *Upper bound.* Tell the adversary in which steps the changed user takes part; this does not depend on the changed
    data, for Poisson and for fixed-size sampling alike, and is independent from step to step with probability q. Given
    that, the j steps are Gaussian mechanisms of sensitivity ``change``, composed adaptively: μ = change·√j/σ. Telling
    more cannot lower δ. *Attained.* If the user's other elements sum to r, the pair of one step is
    (1−q)N(0)+qN(r+1) against (1−q)N(0)+qN(r−1), and as r → ∞ the output itself shows the participation.
    """
    log_delta = _log_delta(epsilon, q, sigma, steps, change)
    value = math.exp(log_delta)
    slack = _rounding(steps)
    return Band.between(value * (1 - slack), min(1.0, value * (1 + slack) + 1e-200))


def revealed_epsilon(delta: float, q: float, sigma: float, steps: int, change: float = 2.0) -> Band:
    """The ε at which :func:`revealed_delta` equals ``delta``; where the curve is flat, rounding makes that a range."""
    slack = _rounding(steps)
    low, up = (_epsilon(math.log(delta) + math.log1p(by), q, sigma, steps, change) for by in (slack, -slack))
    return Band.between(low * (1 - 1e-11), up * (1 + 1e-11))


def _epsilon(target: float, q: float, sigma: float, steps: int, change: float) -> float:
    """The ε at which the curve falls to e^target."""
    if _log_delta(0.0, q, sigma, steps, change) <= target:
        return 0.0
    high = 1.0
    while _log_delta(high, q, sigma, steps, change) > target:
        high *= 2
    return float(brentq(lambda e: _log_delta(e, q, sigma, steps, change) - target, 0.0, high, xtol=1e-300, rtol=1e-12))


def _log_delta(epsilon: float, q: float, sigma: float, steps: int, change: float) -> float:
    """log of the mixture, over the counts j whose neglected rest weighs less than e^{-460} (Bernstein's inequality)."""
    spread = 40 * math.sqrt(steps * q * (1 - q)) + 700
    j = np.arange(max(1, math.floor(steps * q - spread)), min(steps, math.ceil(steps * q + spread)) + 1, dtype=float)
    log_pmf = gammaln(steps + 1.0) - gammaln(j + 1) - gammaln(steps - j + 1) + xlogy(j, q) + xlog1py(steps - j, -q)
    return float(logsumexp(log_pmf + gaussian_log_delta(epsilon, change * np.sqrt(j) / sigma)))
