"""The clustered histogram (Section 3.2, eqn:histogram-mechanism) with the sensitivity its projection really has."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import binom

from elementdp.companion.theory.counting.calibration import Calibration, unit_sigma
from elementdp.companion.theory.counting.projection import projected_means
from elementdp.elements import Clusters
from elementdp.errors import positive
from elementdp.privacy import Guarantee, Unit

PAPER_RHOS: tuple[float, ...] = (*range(1, 11), *range(15, 51, 5), 70, 100, 150, 200)
"""The 22 values of ρ the paper tries in Section 4.1."""


def cluster_sensitivity(clusters: Clusters, rho: float) -> NDArray[np.float64]:
    """For each column, how far the projected counts of its cluster can move (ℓ2) when one user changes that cluster.

    Counts are non-negative. One word: the projection lies in [0, ρ], so ρ. Two or more: it lies in the part of the ball
    where no coordinate is negative, ‖x - y‖² = ‖x‖² + ‖y‖² - 2⟨x, y⟩ ≤ 2ρ², so √2·ρ, reached by ρe₁ and ρe₂.
    """
    many = clusters.sizes[clusters.labels] > 1
    return np.where(many, math.sqrt(2.0), 1.0) * positive("rho", rho)


def protected_unit(clusters: Clusters) -> Unit:
    """One cluster is user-level privacy; more than one is element-level."""
    return Unit.USER if clusters.count == 1 else Unit.ELEMENT


@dataclass(frozen=True)
class HistogramRelease:
    """A private mean histogram (counts a user), the guarantee it carries, the ρ used, and the noise in each column."""

    value: NDArray[np.float64]
    guarantee: Guarantee
    rho: float
    noise_sd: NDArray[np.float64]


def histogram_noise_sd(
    clusters: Clusters, rho: float, n: int, epsilon: float, delta: float, calibration: Calibration | str
) -> NDArray[np.float64]:
    """Noise standard deviation of each column. An element-neighbour changes one cluster, so each gets just its own."""
    return cluster_sensitivity(clusters, rho) * unit_sigma(epsilon, delta, calibration) / n


def mean_histogram(
    counts: csr_array,
    clusters: Clusters,
    rho: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    calibration: Calibration | str = Calibration.EXACT,
) -> HistogramRelease:
    """M(S, ρ, {c_k}) (eqn:histogram-mechanism): the mean of the projected counts plus Gaussian noise.

    ``counts`` is users × items (CSR). ρ must not depend on these users' data; see :func:`two_stage_histogram`.
    """
    sd = histogram_noise_sd(clusters, rho, max(1, counts.shape[0]), epsilon, delta, calibration)
    mean = projected_means(counts, clusters, [rho])[0]
    guarantee = Guarantee(epsilon, delta, protected_unit(clusters))
    return HistogramRelease(mean + sd * rng.standard_normal(mean.size), guarantee, rho, sd)


def one_word_errors(p: NDArray[np.float64], rho: float, n: int, m: int, sigma: float) -> tuple[float, float, float]:
    """Sampling, bias and noise of the mean histogram of words with probabilities ``p``, each its own element.

    E‖M − mp‖² splits into these (Section 3.2), and the counts are binomial: nothing is simulated. ``sigma`` is the
    noise at sensitivity 1.
    """
    counts = np.arange(m + 1)
    law = binom.pmf(counts[None, :], m, p[:, None])
    clipped = np.minimum(counts, rho)
    mean, second = law @ clipped, law @ clipped**2.0
    sampling, bias = float((second - mean**2).sum()) / n, float(((mean - m * p) ** 2).sum())
    return sampling, bias, p.size * (rho * sigma / n) ** 2
