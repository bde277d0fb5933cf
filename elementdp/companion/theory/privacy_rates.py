"""The privacy half of proposition:private-normality: its ε(τ), and the ε that T = γn steps really have."""

import math

from elementdp.errors import at_least, positive, probability
from elementdp.privacy import Sampler, SubsampledGaussian, Unit, account


def printed_rate(n: int, m: int, gamma: float, tau: float, delta: float) -> float:
    """ε(τ) = inf over α ≤ τ² log(n/m) of γm²(1 + α)/(nτ²) + log(1/δ)/α, in closed form."""
    at_least("n", n, m + 1)
    positive("tau", tau)
    probability("delta", delta, low_open=True, high_open=True)
    slope = gamma * m**2 / (n * tau**2)
    order = min(math.sqrt(-math.log(delta) / slope), tau**2 * math.log(n / m))
    return slope * (1 + order) - math.log(delta) / order


def run(
    sampler: Sampler, n: int, m: int, gamma: float, sigma: float, elements: int | None, unit: Unit = Unit.ELEMENT
) -> SubsampledGaussian:
    """The γn steps of eqn:private-element-sgd with q = m/n, as an event to account for."""
    return SubsampledGaussian(
        sampler=sampler, q=m / n, sigma=sigma, steps=round(gamma * n), unit=unit, elements_per_user=elements
    )


def true_rate(
    sampler: Sampler, n: int, m: int, gamma: float, sigma: float, delta: float, elements: int | None = None
) -> float:
    """The element-level ε of the whole run, as small as is proved."""
    return account(run(sampler, n, m, gamma, sigma, elements), delta).up
