"""The exact privacy curve of the Gaussian mechanism (Balle & Wang 2018, Dong, Roth & Su 2019), and its inverses."""

import math

from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtr

from elementdp.errors import nonnegative, positive, probability

_ROOT2 = math.sqrt(2.0)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """δ(ε; μ) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ): the least δ between N(0, 1) and N(μ, 1) at this ε."""
    nonnegative("epsilon", epsilon)
    if nonnegative("mu", mu) == 0:
        return 0.0
    a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    if a <= 0:  # both tails share the factor φ(a) because e^ε φ(b) = φ(a); scaled tails do not cancel catastrophically
        return float(0.5 * math.exp(-a * a / 2) * (erfcx(-a / _ROOT2) - erfcx(-b / _ROOT2)))
    return float(ndtr(a) - math.exp(epsilon + log_ndtr(b)))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """The least ε ≥ 0 with δ(ε; μ) ≤ δ."""
    probability("delta", delta, low_open=True)
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))  # Rényi's bound, optimized: always enough
    return float(brentq(lambda e: math.log(max(gaussian_delta(e, mu), 1e-320) / delta), 0.0, high + 1e-9, xtol=1e-13))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest μ (sensitivity over noise standard deviation) that is (ε, δ)-private."""
    nonnegative("epsilon", epsilon)
    probability("delta", delta, low_open=True, high_open=True)

    def excess(log_mu: float) -> float:
        return math.log(max(gaussian_delta(epsilon, math.exp(log_mu)), 1e-320) / delta)

    low, high = math.log(positive("delta", delta)), 1.0  # δ(ε; μ) < μ, so μ = δ is always private
    while excess(high) < 0:
        high += 1.0
    return math.exp(float(brentq(excess, low, high, xtol=1e-14)))
