"""Composition and group privacy of (ε, δ) guarantees (section Properties)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
from scipy.special import logsumexp

from elementdp.errors import ArgumentError, at_least, nonnegative, probability
from elementdp.privacy.curves import Floats
from elementdp.privacy.guarantee import Guarantee, Sampler

_MOST_LOSSES = 1 << 20  # distinct sums of losses the exact composition keeps; beyond it the problem is #P-hard


def compose_basic(parts: Sequence[Guarantee]) -> Guarantee:
    """All ε added up, and all δ: the first half of Corollary 2.3."""
    first = _same(parts)
    epsilon, delta = sum(part.epsilon for part in parts), sum(part.delta for part in parts)
    return replace(first, epsilon=epsilon, delta=min(1.0, delta))


def compose_advanced_as_printed(parts: Sequence[Guarantee], delta0: float) -> Guarantee:
    """The second half of Corollary 2.3 exactly as printed. Not a guarantee: see the ledger's ``composition``.

    (3/2·Σε² + √(6·Σε²·log(1/δ₀)), δ₀ + Σδ/(1+e^ε)).
    """
    probability("delta0", delta0, low_open=True, high_open=True)
    first = _same(parts)
    squares = sum(part.epsilon**2 for part in parts)
    delta = delta0 + sum(part.delta * math.exp(-part.epsilon) / (1 + math.exp(-part.epsilon)) for part in parts)
    return replace(first, epsilon=1.5 * squares + math.sqrt(-6 * squares * math.log(delta0)), delta=min(1.0, delta))


def compose_advanced(parts: Sequence[Guarantee], delta0: float) -> Guarantee:
    """Advanced composition that is proved: Kairouz, Oh & Viswanath (2015), for parts that need not be equal.

    ε = Σ ε·tanh(ε/2) + min over both forms of √(2·Σε²·log(1/δ₀)) …, δ = 1 − (1−δ₀)·Π(1−δ).
    """
    probability("delta0", delta0, low_open=True, high_open=True)
    first = _same(parts)
    squares = sum(part.epsilon**2 for part in parts)
    drift = sum(part.epsilon * math.tanh(part.epsilon / 2) for part in parts)
    noise = math.sqrt(-2 * squares * math.log(delta0))
    noise = min(noise, math.sqrt(2 * squares * math.log(math.e + math.sqrt(squares) / delta0)))
    delta = _any([delta0, *(part.delta for part in parts)])
    return replace(first, epsilon=min(drift + noise, sum(part.epsilon for part in parts)), delta=delta)


def compose_optimal(parts: Sequence[Guarantee], *, epsilon: float) -> Guarantee:
    """The smallest δ at ``epsilon`` that holds for every adaptive composition of ``parts`` (Kairouz, Oh & Viswanath).

    The worst (ε, δ) mechanism is randomized response that fails openly with probability δ, so the answer is
    1 − Π(1−δ)·(1 − δ_RR(ε)) with δ_RR the curve of the product of randomized responses, summed exactly. Equal parts
    are merged as they come, which makes k equal ones cost k; many different ones are refused (the problem is #P-hard,
    Murtagh & Vadhan 2016).
    """
    nonnegative("epsilon", epsilon)
    first = _same(parts)
    if math.isinf(max(part.epsilon for part in parts)):
        return replace(first, epsilon=epsilon, delta=1.0)
    losses, mass = reduce(_add_response, (part.epsilon for part in parts), (np.zeros(1), np.ones(1)))
    above = losses > epsilon
    response = float(np.sum(mass[above] * -np.expm1(epsilon - losses[above])))
    return replace(first, epsilon=epsilon, delta=_any([*(part.delta for part in parts), min(1.0, response)]))


def compose_optimal_epsilon(parts: Sequence[Guarantee], *, delta: float) -> Guarantee:
    """The smallest ε with :func:`compose_optimal` at most ``delta``, or infinity if no ε does."""
    probability("delta", delta)
    return replace(
        _same(parts), epsilon=_smallest(lambda e: compose_optimal(parts, epsilon=e).delta, parts, delta), delta=delta
    )


def _any(chances: Sequence[float]) -> float:
    """1 − Π(1−p), the chance of any of independent failures; not by that difference, which is 0 for tiny chances."""
    return 1.0 if 1.0 in chances else -math.expm1(math.fsum(math.log1p(-chance) for chance in chances))


def _smallest(curve: Callable[[float], float], parts: Sequence[Guarantee], delta: float) -> float:
    high = sum(part.epsilon for part in parts)
    if math.isinf(high) or curve(high) > delta:
        return math.inf
    low = 0.0
    if curve(low) <= delta:
        return low
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if curve(middle) <= delta else (middle, high)
    return high


def _add_response(state: tuple[np.ndarray, np.ndarray], epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Convolve the privacy loss so far with that of randomized response: ±ε with odds e^ε : 1."""
    losses, mass = state
    truth = 1 / (1 + math.exp(-epsilon))
    sums = np.concatenate([losses + epsilon, losses - epsilon])
    weights = np.concatenate([mass * truth, mass * (1 - truth)])
    keys, where = np.unique(np.round(sums, 12), return_inverse=True)
    if len(keys) > _MOST_LOSSES:
        raise ArgumentError("parts", f"{len(keys)} different sums of losses", f"at most {_MOST_LOSSES} different sums")
    total = np.bincount(where, weights)
    return np.bincount(where, weights * sums) / np.where(total > 0, total, 1), total


def group(guarantee: Guarantee, size: int) -> Guarantee:
    r"""What ``guarantee`` says at distance k = ``size``: Corollary 2.2, with its sum kept.

    .. math:: \Big(k\varepsilon,\ \sum_{i<k} e^{i\varepsilon}\,\delta\Big)
    """
    at_least("size", size, 1)
    # δ_k = δ·(e^{kε} − 1)/(e^ε − 1) ≤ k·e^{(k−1)ε}·δ, the printed form; the direct sum cannot divide by zero.
    delta = _grown(guarantee.delta, guarantee.epsilon * np.arange(size, dtype=float))
    return replace(guarantee, epsilon=size * guarantee.epsilon, delta=delta)


def _grown(delta: float, exponents: Floats) -> float:
    """Σ e^x·δ, at most 1: in logarithms, since a tiny δ times what overflows may be anything.

    Rounded up by a few units in the last place, since a logarithm and back may lose as many.
    """
    if delta == 0:
        return 0.0
    grown = math.log(delta) + float(logsumexp(exponents))
    return math.exp(min(0.0, grown + 4 * math.ulp(max(abs(grown), abs(math.log(delta)), 1.0))))


def _same(parts: Sequence[Guarantee]) -> Guarantee:
    """The first part with the samplers of all, after making sure that all speak of the same unit and relation.

    Which part of the sample a mechanism sees is its own affair: (ε, δ) privacy of each part is all that composition
    asks for. Units and relations are what it speaks of: nothing is proved of parts that protect different changes.
    """
    if not parts:
        raise ArgumentError("parts", parts, "at least one guarantee")
    for part in parts:
        if (part.unit, part.relation) != (parts[0].unit, parts[0].relation):
            raise ArgumentError("parts", f"{part.unit}, {part.relation}", "guarantees for one unit and one relation")
    used = {sampler for part in parts for sampler in part.samplers}
    samplers = tuple(sampler for sampler in Sampler if sampler in used)
    return replace(parts[0], sampler=samplers[0] if len(samplers) == 1 else samplers)
