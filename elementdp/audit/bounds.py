"""What an experiment proves about ε: exact binomial confidence, and the bound it gives."""

import math
from dataclasses import dataclass

from scipy.stats import beta

from elementdp.errors import ArgumentError, at_least, probability


def clopper_pearson(hits: int, trials: int, confidence: float) -> tuple[float, float]:
    """One-sided bounds on a success probability, *each* of which holds with the given confidence."""
    at_least("trials", trials, 1)
    probability("confidence", confidence, low_open=True, high_open=True)
    if not 0 <= hits <= trials:
        raise ArgumentError("hits", hits, f"between 0 and trials ({trials})")
    low = 0.0 if hits == 0 else float(beta.ppf(1 - confidence, hits, trials - hits + 1))
    up = 1.0 if hits == trials else float(beta.ppf(confidence, hits + 1, trials - hits))
    return low, up


def epsilon_from_rates(true_rate: float, false_rate: float, delta: float) -> float:
    """The ε that a test with these rates refutes: P(hit) ≤ e^ε P'(hit) + δ forces ε ≥ log((tpr - δ)/fpr)."""
    if true_rate <= delta or true_rate - delta <= false_rate:
        return 0.0
    return math.inf if false_rate == 0 else math.log((true_rate - delta) / false_rate)


@dataclass(frozen=True)
class EmpiricalEpsilon:
    """A lower bound on ε at ``delta`` that holds with probability at least ``confidence``."""

    low: float
    delta: float
    confidence: float
    true_rate: float
    false_rate: float
    threshold: float

    @classmethod
    def from_counts(
        cls, true_hits: int, false_hits: int, trials: int, delta: float, confidence: float, threshold: float
    ) -> "EmpiricalEpsilon":
        """The bound of one fixed test: half of the allowed error goes to each of the two rates."""
        each = 1 - (1 - confidence) / 2
        true_low, _ = clopper_pearson(true_hits, trials, each)
        _, false_up = clopper_pearson(false_hits, trials, each)
        low = epsilon_from_rates(true_low, false_up, delta)
        return cls(low, delta, confidence, true_hits / trials, false_hits / trials, threshold)
