"""Optimal composition from the canonical pairs themselves (Kairouz, Oh and Viswanath, 2015), by enumeration.

Every (ε, δ)-private mechanism is a garbling of the canonical pair, adaptively too, so the product of canonical pairs
is the worst composition there is: no bound may fall below it.
"""

import math

import numpy as np
from scipy.stats import binom

from elementdp.errors import at_least, nonnegative, probability


def optimal_delta_equal(total: float, epsilon: float, delta: float, k: int) -> float:
    """The exact δ at ε = ``total`` of k canonical pairs with equal levels: only the number of true answers matters."""
    at_least("k", k, 1)
    truths = np.arange(k + 1)
    chance = binom.pmf(truths, k, 1 / (1 + math.exp(-nonnegative("epsilon", epsilon))))
    loss = (2.0 * truths - k) * epsilon
    excess = float((chance[loss > total] * -np.expm1(total - loss[loss > total])).sum())
    intact = k * math.log1p(-probability("delta", delta, high_open=True))  # no pair has leaked
    return -math.expm1(intact) + math.exp(intact) * excess
