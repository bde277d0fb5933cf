"""What the paper prints: its δ, and the noise at which its accountant claims an ε."""

import math
from dataclasses import replace

from scipy.optimize import brentq

from elementdp.privacy import SubsampledGaussian, claimed


def paper_delta(users: int) -> float:
    """δ = n^(-1.1), as in every experiment of the paper."""
    return float(users**-1.1)


def printed_sigma(run: SubsampledGaussian, epsilon: float, delta: float) -> float:
    """The σ at which the paper's accountant claims ``epsilon`` for ``run`` (whose own σ does not matter)."""

    def excess(log_sigma: float) -> float:
        return math.log(claimed(replace(run, sigma=math.exp(log_sigma)), delta) / epsilon)

    low, high = math.log(0.05), math.log(0.1)
    while excess(high) > 0:
        low, high = high, high + 1.0
    return math.exp(brentq(excess, low, high, xtol=1e-6))
