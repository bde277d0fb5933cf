"""Heavy hitters (Section 3.1): how many users have each item, with noise (eqn:heavy-hitters-mech)."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elementdp.companion.theory.counting.averages import GaussianMechanism, Release
from elementdp.companion.theory.counting.calibration import Calibration, unit_sigma
from elementdp.companion.theory.counting.projection import checked
from elementdp.elements import Clusters
from elementdp.errors import ArgumentError, at_least, positive
from elementdp.privacy import Guarantee, Unit


def item_users(counts: csr_array) -> NDArray[np.int64]:
    """Σ_u 1(x⁽ᵘ⁾): for each item the number of users with at least one of it."""
    table = checked(counts, Clusters.singletons(counts.shape[1]))
    return np.bincount(table.indices[table.data > 0], minlength=table.shape[1])


def indicator_sensitivity(unit: Unit, m: int, d: int) -> float:
    """ℓ2 sensitivity of 1(x) when each item is an element and a user has at most m items out of d.

    Element: 1, for users whose number of items may change; with exactly m items each, no two users differ in one item.
    User: two users share no item and fill 2m coordinates, or all d: √min(2m, d). (The printed σ²_std has m, not 2m.)
    """
    at_least("m", m, 1)
    return 1.0 if unit is Unit.ELEMENT else math.sqrt(min(2 * m, at_least("d", d, 1)))


def heavy_hitters(
    counts: csr_array,
    epsilon: float,
    delta: float,
    unit: Unit,
    rng: np.random.Generator,
    m: int | None = None,
    calibration: Calibration | str = Calibration.EXACT,
) -> Release:
    """Ĥ = Σ_u 1(x⁽ᵘ⁾) + N(0, σ²I) (eqn:heavy-hitters-mech); user-level needs ``m``, the most items a user may have."""
    users = item_users(counts)
    if unit is Unit.USER:
        if m is None:
            raise ArgumentError("m", m, "the most items one user may have, for user-level privacy")
        most = int(np.diff(csr_array(counts).indptr).max(initial=0))
        if most > m:
            raise ArgumentError("m", m, f"at least the {most} distinct items one user has")
    sensitivity = indicator_sensitivity(unit, 1 if m is None else m, counts.shape[1])
    mechanism = GaussianMechanism(sensitivity, sensitivity * unit_sigma(epsilon, delta, calibration), unit)
    return Release(mechanism.release(users, rng), Guarantee(epsilon, delta, unit), mechanism.sigma)


def ordering_loss(estimate: NDArray[np.floating], p: NDArray[np.floating], gamma: float) -> int:
    """Pairs with p_j - p_l ≥ γ that the estimate puts the wrong way: Ĥ_j < Ĥ_l.

    eqn:heavyhittersloss prints Ĥ_j > Ĥ_l, which counts the pairs in the right order.
    """
    positive("gamma", gamma)
    return sum(int(np.count_nonzero((p <= p[j] - gamma) & (estimate > estimate[j]))) for j in range(len(p)))
