"""Choosing ρ for the clustered histogram: on validation users as in the paper, or privately in two stages."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from elementdp.companion.theory.counting.calibration import Calibration, unit_sigma
from elementdp.companion.theory.counting.histograms import (
    PAPER_RHOS,
    HistogramRelease,
    cluster_sensitivity,
    protected_unit,
)
from elementdp.companion.theory.counting.projection import checked, projected_means
from elementdp.elements import Clusters
from elementdp.errors import ArgumentError, at_least, nonnegative, positive, probability
from elementdp.privacy import Guarantee
from elementdp.privacy.curves import gaussian_mu


@dataclass(frozen=True)
class RadiusGrid:
    """The expected squared error of each ρ on validation users; ``best`` is the ρ the paper would take."""

    rhos: NDArray[np.float64]
    errors: NDArray[np.float64]

    @property
    def best(self) -> float:
        """The ρ of the least error."""
        return float(self.rhos[int(np.argmin(self.errors))])


def validate_rho(
    counts: csr_array,
    target: NDArray[np.float64],
    clusters: Clusters,
    n: int,
    epsilon: float,
    delta: float,
    rhos: ArrayLike = PAPER_RHOS,
    calibration: Calibration | str = Calibration.EXACT,
) -> RadiusGrid:
    """E‖M(S, ρ) - target‖² for each ρ: exact in the noise, with the projected means of ``counts``, for n users.

    As in Section 4.1 this reads the validation users' data without privacy: those users must be public, or have agreed.
    """
    radii = np.asarray(rhos, dtype=float).ravel()
    if target.shape != (clusters.labels.size,):
        raise ArgumentError("target", target.shape, f"of shape ({clusters.labels.size},)")
    unit = unit_sigma(epsilon, delta, calibration)
    means = projected_means(counts, clusters, radii)
    spread = np.square(cluster_sensitivity(clusters, 1.0)).sum() * (unit / at_least("n", n, 1)) ** 2
    errors = np.square(means - target).sum(axis=1) + radii**2 * spread
    return RadiusGrid(radii, errors)


def rho_for(mass: float, m: int, t: float) -> float:
    """min{3mP + 3 log m + t, m}, the radius of proposition:element-level-histogram for clusters of probability ≤ P."""
    return min(3 * m * nonnegative("mass", mass) + 3 * math.log(at_least("m", m, 1)) + nonnegative("t", t), float(m))


@dataclass(frozen=True)
class TwoStageRelease:
    """A histogram whose ρ was itself chosen privately; ``estimate`` is the private number the choice came from."""

    histogram: HistogramRelease
    estimate: float


def two_stage_histogram(
    counts: csr_array,
    clusters: Clusters,
    m: int,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    share: float = 0.1,
    t: float | None = None,
    cap: float | None = None,
) -> TwoStageRelease:
    """The two-stage estimator of Section 3.2: a private number for each cluster, ρ from the largest, the histogram.

    Without ``cap``, the paper's rule: the numbers are the mean fractions Y_c/m of a user's items in each cluster,
    clipped to [0, 1], and ρ is :func:`rho_for` of the largest noisy one (t = log n unless given). With ``cap``, a
    less cautious rule: the numbers are the mean norms ‖x_c‖₂, clipped to [0, cap], and ρ = r + 2√r + 1 for the
    largest noisy r, about two standard deviations above the mean of a count. Either way an element changes one of
    the K numbers, by at most 1/n or cap/n. Gaussian mechanisms compose exactly (μ² adds, also adaptively), so
    ``share`` of μ² pays for stage one and the rest for stage two; together they are (ε, δ)-private, nothing lost.
    m, n, cap and the clusters are public.
    """
    table = checked(counts, clusters)
    n = table.shape[0]
    probability("share", share, low_open=True, high_open=True)
    at_least("m", m, 1)
    mu = gaussian_mu(positive("epsilon", epsilon), delta)
    if cap is None:
        numbers, top = cluster_masses(table, clusters, m), 1.0
    else:
        numbers, top = mean_norms(table, clusters, positive("cap", cap)), cap
    noise = rng.normal(scale=top / (n * mu * math.sqrt(share)), size=clusters.count)
    estimate = min(max(float((numbers + noise).max()), 0.0), top)
    if cap is None:
        rho = rho_for(estimate, m, math.log(n) if t is None else t)
    else:
        rho = min(estimate + 2 * math.sqrt(estimate) + 1, float(m))
    sd = cluster_sensitivity(clusters, rho) / (n * mu * math.sqrt(1 - share))
    value = projected_means(table, clusters, [rho])[0] + sd * rng.standard_normal(sd.size)
    guarantee = Guarantee(epsilon, delta, protected_unit(clusters))
    return TwoStageRelease(HistogramRelease(value, guarantee, rho, sd), estimate)


def cluster_masses(counts: csr_array, clusters: Clusters, m: int) -> NDArray[np.float64]:
    """(1/n) Σ_u min{Y_c⁽ᵘ⁾/m, 1} for each cluster c, Y_c the user's items in c."""
    totals = _by_cluster(counts.data, counts, clusters)
    return _column_means(np.minimum(totals.data / m, 1.0), totals)


def mean_norms(counts: csr_array, clusters: Clusters, cap: float) -> NDArray[np.float64]:
    """(1/n) Σ_u min{‖x_c⁽ᵘ⁾‖₂, cap} for each cluster c."""
    squares = _by_cluster(np.square(counts.data, dtype=float), counts, clusters)
    return _column_means(np.minimum(np.sqrt(squares.data), cap), squares)


def _by_cluster(data: NDArray[Any], counts: csr_array, clusters: Clusters) -> csr_array:
    """Sums of ``data``, stored like ``counts``, over the columns of each cluster: users × clusters."""
    shape = (counts.shape[0], clusters.count)
    # Summing duplicates rewrites the row pointers in place: they must be a copy.
    table = csr_array((data.astype(float), clusters.labels[counts.indices], counts.indptr.copy()), shape=shape)
    table.sum_duplicates()
    return table


def _column_means(values: NDArray[np.float64], table: csr_array) -> NDArray[np.float64]:
    means: NDArray[np.float64] = np.bincount(table.indices, values, minlength=table.shape[1]) / table.shape[0]
    return means
