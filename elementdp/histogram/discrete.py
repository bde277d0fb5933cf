"""The path that does not rest on floating-point noise: whole counts, OpenDP's exact discrete Gaussian."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from elementdp.elements import Clusters
from elementdp.errors import ArgumentError, positive, probability
from elementdp.histogram.heavy_hitters import indicator_sensitivity, item_users
from elementdp.histogram.matrix import project_to_integers
from elementdp.histogram.means import cluster_sensitivity, protected_unit
from elementdp.privacy import Guarantee, Unit


@dataclass(frozen=True)
class IntegerRelease:
    """Private whole counts (sums over users), the guarantee OpenDP proves for them, and the scale of the noise."""

    value: NDArray[np.int64]
    guarantee: Guarantee
    scale: float


def discrete_gaussian(value: ArrayLike, sensitivity: float, epsilon: float, delta: float, unit: Unit) -> IntegerRelease:
    """Whole numbers plus discrete Gaussian noise (Canonne, Kamath & Steinke 2020) of the least scale OpenDP certifies.

    Sampled exactly, with the operating system's randomness: there is no seed, and none would be safe. The scale follows
    from zero-concentrated privacy, a little more than the exact Gaussian curve asks for.
    """
    import opendp.prelude as dp

    exact = np.asarray(value)
    if not np.issubdtype(exact.dtype, np.integer):
        raise ArgumentError("value", exact.dtype, "whole numbers")
    positive("epsilon", epsilon)
    probability("delta", delta, low_open=True, high_open=True)
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")

    def measure(scale: float) -> dp.Measurement:
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale)), delta=delta)

    goal = (epsilon, delta)
    scale = dp.binary_search_param(measure, d_in=float(positive("sensitivity", sensitivity)), d_out=goal, T=float)
    noisy = dp.m.make_gaussian(*space, scale=scale)(exact.ravel().tolist())
    return IntegerRelease(np.asarray(noisy, dtype=np.int64), Guarantee(epsilon, delta, unit), float(scale))


def discrete_heavy_hitters(counts: csr_array, epsilon: float, delta: float) -> IntegerRelease:
    """Heavy hitters (eqn:heavy-hitters-mech) with exact integer noise, element-level."""
    users = item_users(counts)
    sensitivity = indicator_sensitivity(Unit.ELEMENT, 1, counts.shape[1])
    return discrete_gaussian(users, sensitivity, epsilon, delta, Unit.ELEMENT)


def discrete_histogram(counts: csr_array, clusters: Clusters, rho: int, epsilon: float, delta: float) -> IntegerRelease:
    """Sums of projected counts, rounded down inside their balls, with exact integer noise; divide by n for the mean."""
    whole = project_to_integers(counts, clusters, rho)
    totals = np.bincount(whole.indices, whole.data, minlength=whole.shape[1]).astype(np.int64)
    sensitivity = float(cluster_sensitivity(clusters, rho).max())
    return discrete_gaussian(totals, sensitivity, epsilon, delta, protected_unit(clusters))
