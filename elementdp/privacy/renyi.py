"""Rényi divergences of the printed pair (Corollary 2.5), and Rényi guarantees turned into (ε, δ)."""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from elementdp.errors import ArgumentError, nonnegative, positive, probability
from elementdp.privacy.curves import Floats

_REACH = 15.0  # standard deviations kept either side of a mode: what is left out weighs less than e^{-110}

_MOST_NODES = 200_000


def printed_renyi(order: float, q: float, sigma: float) -> float:
    """ε_α(q, σ) of Corollary 2.5: D_α(qP₁+(1−q)P₀ ‖ qP₋₁+(1−q)P₀) with P_t = N(t, σ²), real α ≥ 1.

    The two divergences in the printed maximum are equal, since x → −x exchanges the two mixtures. The integral of
    A^α B^{1−α} is a trapezoidal sum in log space: the integrand is analytic in a strip and decays like a Gaussian, so
    the sum converges faster than any power of its step.
    """
    if not (math.isfinite(order) and order >= 1):
        raise ArgumentError("order", order, "a finite number >= 1")
    probability("q", q)
    positive("sigma", sigma)
    if q == 0:
        return 0.0
    # Near z = 0 both mixtures are P₀; far right A is qP₁ and B is P₀ (or qP₋₁ if q = 1). Between these modes there may
    # be others where the parts of A take over gradually; with little noise there are none, and the range would be long.
    # Parts of a mixture take over within some σ² of ±(1/2 + σ²·log(1/q − 1)); where that is far from every mode, all
    # that counts is Gaussian of width σ, and a finer step would take hours where σ is tiny.
    reach = _REACH * sigma
    apart = q == 1 or reach + sigma**2 * abs(math.log1p(-q) - math.log(q)) < 0.4
    step = sigma / 16 if apart else min(sigma / 16, sigma * sigma / 4)
    modes = (-1.0, 0.0, order, 2 * order - 1)
    between = [(modes[0] - reach, modes[-1] + reach)] if 2 * order < _MOST_NODES * step else []
    nodes = _union([(mode - reach, mode + reach) for mode in modes] + between, step)
    log_a, log_b = _log_mixture(nodes, 1.0, q, sigma), _log_mixture(nodes, -1.0, q, sigma)
    base = -0.5 * (nodes / sigma) ** 2
    if order == 1:  # Kullback–Leibler, the limit
        return max(0.0, float(step * np.sum(np.exp(base + log_a) * (log_a - log_b)) / (sigma * math.sqrt(2 * math.pi))))
    exponent = base + order * log_a + (1 - order) * log_b
    if np.all(exponent < 600):
        # E_B[(A/B)^α] − 1 without cancellation for small q: subtract the density αA + (1−α)B, which integrates to 1.
        ratio = log_a - log_b
        mild = order * np.abs(ratio) < 1
        gentle = np.where(mild, ratio, 0.0)
        near = np.exp(base + log_b) * (np.expm1(order * gentle) - order * np.expm1(gentle))
        far = np.exp(exponent) - order * np.exp(base + log_a) - (1 - order) * np.exp(base + log_b)
        total = float(step * np.sum(np.where(mild, near, far)) / (sigma * math.sqrt(2 * math.pi)))
        return max(0.0, math.log1p(total) / (order - 1))
    log_total = float(logsumexp(exponent)) + math.log(step / sigma) - 0.5 * math.log(2 * math.pi)
    return max(0.0, log_total / (order - 1))


def _log_mixture(z: Floats, mean: float, q: float, sigma: float) -> Floats:
    """log of (qP_mean + (1−q)P₀)/P₀ at ``z``."""
    tilt = (mean * z - 0.5 * mean * mean) / sigma**2
    if q == 1:
        return tilt
    small = np.minimum(tilt, 0.0)
    # Two forms of one number: log1p keeps relative accuracy where q is tiny, the other cannot overflow.
    large = math.log(q) + tilt + np.log1p(np.exp(-np.maximum(tilt, 0.0)) * (1 - q) / q)
    return np.asarray(np.where(tilt > 0, large if q > 0 else small, np.log1p(q * np.expm1(small))))


def _union(windows: list[tuple[float, float]], step: float) -> Floats:
    """Points of the lattice ``step``·ℤ that lie in any of the windows."""
    ranges = [np.arange(math.floor(low / step), math.ceil(high / step) + 1) for low, high in windows]
    return np.asarray(np.unique(np.concatenate(ranges)) * step, dtype=float)


def mironov(epsilon: float, order: float, delta: float) -> float:
    """(ε, α)-Rényi privacy is (ε + log(1/δ)/(α−1), δ)-privacy (Mironov 2017; the text after Definition 2.2)."""
    _check(epsilon, order, delta)
    return epsilon - math.log(delta) / (order - 1)


def tightest(epsilon: float, order: float, delta: float) -> float:
    """The tightest known closed rule: ε + log((α−1)/α) − (log δ + log α)/(α−1), not below 0.

    (Balle et al. 2020, Asoodeh et al. 2020, in the form of Canonne, Kamath & Steinke 2020.)
    """
    _check(epsilon, order, delta)
    return max(0.0, epsilon + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1))


def _check(epsilon: float, order: float, delta: float) -> None:
    nonnegative("epsilon", epsilon)
    probability("delta", delta, low_open=True)
    if not (math.isfinite(order) and order > 1):
        raise ArgumentError("order", order, "a finite number > 1")


def printed_epsilon(q: float, sigma: float, steps: int, delta: float, *, tight: bool = False) -> float:
    """inf over α > 1 of T·ε_α(q, σ) turned into ε at ``delta`` by Mironov's rule, as printed, or by the tightest."""
    probability("delta", delta, low_open=True, high_open=True)
    convert = tightest if tight else mironov

    def at(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return convert(steps * printed_renyi(order, q, sigma), order, delta)

    # The best α − 1 is at most that of steps without sampling times 1/q; the curve in log(α−1) has one valley.
    centre = math.log(sigma) + 0.5 * math.log(-math.log(delta) / (2 * steps))
    grid = np.linspace(centre - 4, centre + 4 - math.log(q), 24)
    values = [at(float(x)) for x in grid]
    best = int(np.argmin(values))
    low, high = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    found = minimize_scalar(at, bounds=(float(low), float(high)), method="bounded", options={"xatol": 1e-6})
    return min(float(found.fun), values[best])
