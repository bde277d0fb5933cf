"""Choosing ρ for the clustered histogram: on validation users as in the paper, or privately in two stages."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from elementdp.elements import Clusters
from elementdp.errors import ArgumentError, at_least, nonnegative, positive, probability
from elementdp.mechanisms.gaussian_curve import gaussian_mu
from elementdp.mechanisms.histogram import (
    PAPER_RHOS,
    HistogramRelease,
    cluster_sensitivity,
    protected_unit,
)
from elementdp.mechanisms.noise import Calibration, unit_sigma
from elementdp.mechanisms.projection import checked, projected_means
from elementdp.privacy import Guarantee


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
    """A histogram whose ρ was itself chosen privately; ``mass`` is the private bound on max P(c) it came from."""

    histogram: HistogramRelease
    mass: float


def two_stage_histogram(
    counts: csr_array,
    clusters: Clusters,
    m: int,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    share: float = 0.1,
    t: float | None = None,
) -> TwoStageRelease:
    """The two-stage estimator Section 3.2 mentions: private cluster masses, then ρ from them, then the histogram.

    Stage one releases the mean fraction Y_c/m of each user's items in each cluster, clipped to [0, 1]: an element
    changes one of the K numbers by at most 1/n. Stage two is eqn:histogram-mechanism with ρ = :func:`rho_for` of the
    largest noisy mass. Gaussian mechanisms compose exactly (μ² adds, also adaptively), so ``share`` of μ² pays for
    stage one and the rest for stage two; together they are (ε, δ)-private, nothing lost. m, n, clusters are public.
    """
    table = checked(counts, clusters)
    n = table.shape[0]
    probability("share", share, low_open=True, high_open=True)
    at_least("m", m, 1)
    mu = gaussian_mu(positive("epsilon", epsilon), delta)
    mass = float(
        np.max(
            cluster_masses(table, clusters, m) + rng.normal(scale=1 / (n * mu * math.sqrt(share)), size=clusters.count)
        )
    )
    rho = rho_for(min(max(mass, 0.0), 1.0), m, math.log(n) if t is None else t)
    sd = cluster_sensitivity(clusters, rho) / (n * mu * math.sqrt(1 - share))
    value = projected_means(table, clusters, [rho])[0] + sd * rng.standard_normal(sd.size)
    guarantee = Guarantee(epsilon, delta, protected_unit(clusters))
    return TwoStageRelease(HistogramRelease(value, guarantee, rho, sd), mass)


def cluster_masses(counts: csr_array, clusters: Clusters, m: int) -> NDArray[np.float64]:
    """(1/n) Σ_u min{Y_c⁽ᵘ⁾/m, 1} for each cluster c, Y_c the user's items in c."""
    n, k = counts.shape[0], clusters.count
    indicator = csr_array(
        (np.ones(counts.shape[1]), clusters.labels, np.arange(counts.shape[1] + 1)), shape=(counts.shape[1], k)
    )
    totals = csr_array(counts.astype(float) @ indicator)
    fractions: NDArray[np.float64] = np.bincount(totals.indices, np.minimum(totals.data / m, 1.0), minlength=k) / n
    return fractions
