"""Optimal composition from the canonical pairs themselves (Kairouz, Oh and Viswanath, 2015), by enumeration.

Every (ε, δ)-private mechanism is a garbling of the canonical pair, adaptively too, so the product of canonical pairs
is the worst composition there is: no bound may fall below it.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.stats import binom

from elementdp.audit.finite import Distribution, canonical_pair, independent
from elementdp.errors import ArgumentError, at_least, nonnegative, probability


def worst_composition(odds: Fraction, leak: Fraction, k: int) -> tuple[Distribution, Distribution]:
    """k independent canonical pairs with all their outcomes: the worst composition in exact fractions, for small k."""
    p, q = canonical_pair(odds, leak)
    return independent(*[p] * k), independent(*[q] * k)


MOST = 18
"""Enumeration looks at 2^k sign patterns."""


def optimal_delta(total: float, epsilons: Sequence[float], deltas: Sequence[float]) -> float:
    """The exact δ at ε = ``total`` of the composition of canonical pairs, each with levels of its own."""
    if len(epsilons) != len(deltas) or not 0 < len(epsilons) <= MOST:
        raise ArgumentError("epsilons", len(epsilons), f"as many as deltas, between 1 and {MOST}")
    log_mass, loss = np.zeros(1), np.zeros(1)
    for epsilon in epsilons:
        nonnegative("epsilon", epsilon)
        yes = -math.log1p(math.exp(-epsilon))
        log_mass = np.concatenate([log_mass + yes, log_mass + yes - epsilon])
        loss = np.concatenate([loss + epsilon, loss - epsilon])
    return _with_leaks(_excess(total, log_mass, loss), deltas)


def optimal_delta_equal(total: float, epsilon: float, delta: float, k: int) -> float:
    """The same for k mechanisms with equal levels: only the number of true answers matters."""
    at_least("k", k, 1)
    truths = np.arange(k + 1)
    log_mass = binom.logpmf(truths, k, 1 / (1 + math.exp(-nonnegative("epsilon", epsilon))))
    return _with_leaks(_excess(total, log_mass, (2.0 * truths - k) * epsilon), [delta] * k)


def _excess(total: float, log_mass: np.ndarray, loss: np.ndarray) -> float:
    """Σ P(z)(1 - e^{ε - loss(z)})₊ over the outcomes without a leak."""
    kept = loss > total
    return float((np.exp(log_mass[kept]) * -np.expm1(total - loss[kept])).sum())


def _with_leaks(excess: float, deltas: Sequence[float]) -> float:
    intact = math.fsum(math.log1p(-probability("delta", delta, high_open=True)) for delta in deltas)
    return -math.expm1(intact) + math.exp(intact) * excess
