"""Pairs of Gaussian mixtures on the line: what one step of a subsampled sum shows, whatever the other elements add.

A route of its own beside the accountants of :mod:`elementdp.privacy`: events as intervals between the roots of the
likelihood ratio, Rényi divergences by the trapezoid rule in log space.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp, ndtr

from elementdp.errors import ArgumentError, nonnegative, positive, probability

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mixture:
    """Σ wᵢ N(mᵢ, σ²)."""

    means: tuple[float, ...]
    weights: tuple[float, ...]
    sigma: float

    def __post_init__(self) -> None:
        positive("sigma", self.sigma)
        if len(self.means) != len(self.weights) or min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-12:
            raise ArgumentError("weights", self.weights, "one non-negative weight a mean, adding up to 1")

    def log_density(self, x: Floats) -> Floats:
        """log of the density at each point."""
        terms = [
            math.log(weight) - 0.5 * ((x - mean) / self.sigma) ** 2
            for mean, weight in zip(self.means, self.weights, strict=True)
            if weight > 0
        ]
        norm = math.log(self.sigma * math.sqrt(2 * math.pi))
        return np.asarray(logsumexp(np.stack(terms), axis=0) - norm)

    def cdf(self, x: float) -> float:
        """The chance of falling below ``x``."""
        parts = (w * ndtr((x - m) / self.sigma) for m, w in zip(self.means, self.weights, strict=True))
        return float(sum(parts))

    def mass(self, low: float, high: float) -> float:
        """The chance of falling between, without cancellation in the upper tail."""
        total = 0.0
        for mean, weight in zip(self.means, self.weights, strict=True):
            a, b = (low - mean) / self.sigma, (high - mean) / self.sigma
            a, b = (-b, -a) if a > 0 else (a, b)
            total += weight * float(ndtr(b) - ndtr(a))
        return total


def user_sampled(q: float, sigma: float, others: float, secret: float) -> Mixture:
    """One step under user sampling: nothing, or with probability q the secret element *and* what the others add."""
    probability("q", q)
    return Mixture((0.0, others + secret), (1 - q, q), sigma)


def pair_sampled(q: float, sigma: float, others: tuple[float, ...], secret: float) -> Mixture:
    """One step under pair sampling: every element, the secret one included, comes with a coin of its own."""
    probability("q", q)
    means, weights = [0.0], [1.0]
    for element in (*others, secret):
        means = means + [mean + element for mean in means]
        weights = [weight * (1 - q) for weight in weights] + [weight * q for weight in weights]
    return Mixture(tuple(means), tuple(weights), sigma)


def hockey_stick(p: Mixture, q: Mixture, epsilon: float) -> float:
    """The smallest δ with P(A) ≤ e^ε Q(A) + δ for every A, from the intervals where the ratio exceeds e^ε."""
    nonnegative("epsilon", epsilon)
    edges = _crossings(p, q, epsilon)
    total = 0.0
    for low, high in itertools.pairwise(edges):
        total += max(0.0, p.mass(low, high) - math.exp(epsilon) * q.mass(low, high))
    return total


def _crossings(p: Mixture, q: Mixture, epsilon: float) -> list[float]:
    """The points where log p - log q = ε, with ±∞ around them."""
    spread = max(abs(mean) for mean in (*p.means, *q.means, 1.0))
    sigma = max(p.sigma, q.sigma)
    # Beyond this point one component rules each density and the ratio is monotone or constant to double precision.
    reach = spread + 40 * sigma
    grid = np.linspace(-reach, reach, 20 * max(200, math.ceil(2 * reach / sigma)))

    def gap(x: float | Floats) -> Floats:
        points = np.atleast_1d(np.asarray(x, dtype=float))
        return p.log_density(points) - q.log_density(points) - epsilon

    values = gap(grid)
    roots = [
        float(brentq(lambda x: float(gap(x)[0]), grid[i], grid[i + 1], xtol=1e-13))
        for i in np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0)
    ]
    return [-math.inf, *roots, math.inf]


def renyi(p: Mixture, q: Mixture, order: float) -> float:
    """D_α(P‖Q) for α > 1 (Definition 2.2)."""
    if not order > 1:
        raise ArgumentError("order", order, "> 1")
    spread = max(abs(mean) for mean in (*p.means, *q.means, 1.0))
    sigma = min(p.sigma, q.sigma)
    # p^α q^(1-α) of single Gaussians peaks at αa + (1-α)b: no peak of the mixture lies further out.
    reach = (2 * order + 1) * spread + 14 * max(p.sigma, q.sigma)
    step = sigma / 16
    x = np.arange(-reach, reach + step, step)
    values = order * p.log_density(x) + (1 - order) * q.log_density(x)
    return float((logsumexp(values) + math.log(step)) / (order - 1))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """δ(ε) of one Gaussian release whose means are μ standard deviations apart (closed form)."""
    if mu == 0:
        return 0.0
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def leading_coefficient(sigma: float) -> float:
    """lim_{q→0} D_α(printed pair)/(αq²) = 2 sinh(1/σ²): the second-order term of Corollary 2.5's divergence."""
    return 2 * math.sinh(1 / positive("sigma", sigma) ** 2)
