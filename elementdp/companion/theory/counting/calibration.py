"""How much Gaussian noise: the paper's formula (eqn:mironov-gaussian-mech), the exact curve, and the waste between."""

import math
from enum import StrEnum

from elementdp.errors import ArgumentError, positive, probability
from elementdp.privacy.curves import gaussian_mu


class Calibration(StrEnum):
    """How the noise for a target (ε, δ) is computed."""

    PAPER = "paper"  # the closed formula, where it is proved
    EXACT = "exact"  # the least noise the Gaussian curve allows


def paper_variance(epsilon: float, delta: float) -> float:
    """1{ε>1}/ε + 2 log(1/δ)/ε², the printed variance at sensitivity 1 (eqn:mironov-gaussian-mech), for any δ."""
    positive("epsilon", epsilon)
    probability("delta", delta, low_open=True, high_open=True)
    return (1 / epsilon if epsilon > 1 else 0.0) + 2 * math.log(1 / delta) / epsilon**2


def paper_formula_is_proved(epsilon: float, delta: float) -> bool:
    """Whether the printed variance is private: always for ε > 1, and for ε ≤ 1 once δ ≤ e^(-ε/4).

    For ε ≤ 1 write s² = 2 log(1/δ) and μ = ε/s. If s ≥ μ/2, that is δ ≤ e^(-ε/4), then
    δ(ε; μ) ≤ Φ(μ/2 - s) ≤ ½ exp(-(s - μ/2)²/2) ≤ ½ e^(ε/2) δ < δ.
    """
    return epsilon > 1 or delta <= math.exp(-epsilon / 4)


def unit_sigma(epsilon: float, delta: float, calibration: Calibration | str = Calibration.EXACT) -> float:
    """Standard deviation of Gaussian noise that makes a quantity of ℓ2 sensitivity 1 (ε, δ)-private."""
    positive("epsilon", epsilon)
    probability("delta", delta, low_open=True, high_open=True)
    if Calibration(calibration) is Calibration.EXACT:
        return 1 / gaussian_mu(epsilon, delta)
    if not paper_formula_is_proved(epsilon, delta):
        raise ArgumentError("delta", delta, f"at most e^(-ε/4) = {math.exp(-epsilon / 4):.4g} for the paper's formula")
    return math.sqrt(paper_variance(epsilon, delta))


def wasted_variance(epsilon: float, delta: float) -> float:
    """Variance of the paper's formula over the least variance that is enough: 1 would be no waste."""
    return paper_variance(epsilon, delta) * gaussian_mu(epsilon, delta) ** 2
