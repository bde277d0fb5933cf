"""The error of the clustered histogram (eqn:histogram-mechanism) on real users, for every K, ρ and ε at once."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elementdp.companion.experiments.words.corpus import Corpus
from elementdp.companion.experiments.words.partitions import restricted
from elementdp.companion.theory.counting.calibration import Calibration, unit_sigma
from elementdp.companion.theory.counting.histograms import PAPER_RHOS
from elementdp.companion.theory.counting.projection import projected_means
from elementdp.elements import Clusters
from elementdp.errors import ArgumentError
from elementdp.privacy.curves import gaussian_epsilon


class Sensitivity(StrEnum):
    """What the noise is scaled to."""

    PRINTED = "as printed"  # ρ, whatever the cluster
    RIGHT = "right"  # ρ for a cluster of one word, √2·ρ for more


@dataclass(frozen=True)
class Elements:
    """A partition of the whole dictionary, and the same on the words that occur."""

    whole: Clusters
    occurring: Clusters
    alone: NDArray[np.bool_]  # for each word that occurs, whether its cluster has no other word

    @classmethod
    def of(cls, clusters: Clusters, corpus: Corpus) -> "Elements":
        """The partition as this corpus sees it."""
        if clusters.labels.size != corpus.vocabulary:
            raise ArgumentError("clusters", clusters.labels.size, f"a partition of {corpus.vocabulary} words")
        alone = (clusters.sizes == 1)[clusters.labels[corpus.column]]
        return cls(clusters, restricted(clusters, corpus.column), alone)

    def columns(self) -> NDArray[np.int64]:
        """How many words of the dictionary share their cluster with others, and how many do not."""
        alone = int((self.whole.sizes == 1).sum())
        return np.array([self.whole.labels.size - alone, alone])

    def scale(self, sensitivity: Sensitivity) -> NDArray[np.float64]:
        """Sensitivity over ρ of shared and of lone words."""
        return np.array([1.0 if sensitivity is Sensitivity.PRINTED else math.sqrt(2.0), 1.0])


@dataclass(frozen=True)
class Halves:
    """Users split in two: S₀ gives the histogram to be estimated, S₁ the sample of the mechanism."""

    truth: NDArray[np.float64]  # H₀ over the words that occur
    sample: csr_array  # counts of S₁
    baseline: float  # ‖H₁ - H₀‖²
    m: int

    @classmethod
    def split(cls, corpus: Corpus, rng: np.random.Generator) -> "Halves":
        """Random disjoint halves."""
        order = rng.permutation(corpus.n)
        first, second = order[: corpus.n // 2], order[corpus.n // 2 :]
        truth = corpus.counts[first].sum(axis=0) / (corpus.m * len(first))
        sample = corpus.counts[second]
        estimate = sample.sum(axis=0) / (corpus.m * len(second))
        return cls(truth, sample, float(np.square(estimate - truth).sum()), corpus.m)

    def bias(self, elements: Elements, rhos: tuple[float, ...] = PAPER_RHOS) -> NDArray[np.float64]:
        """‖(1/m) mean π_ρ - H₀‖² for each ρ, over words that share a cluster and over those that do not: ρ × 2."""
        means = projected_means(self.sample, elements.occurring, rhos)
        squares = np.square(means / self.m - self.truth)
        lone = squares[:, elements.alone].sum(axis=1)
        return np.stack([squares[:, ~elements.alone].sum(axis=1), lone], axis=1)

    @property
    def n(self) -> int:
        """Users in the sample S₁."""
        return int(self.sample.shape[0])


def noise_scale(rho: NDArray[np.float64] | float, epsilon: float, delta: float, n: int, m: int) -> NDArray[np.float64]:
    """Noise standard deviation in Ĥ for sensitivity ρ: ρσ/(nm), with the paper's σ."""
    return np.asarray(rho, dtype=float) * unit_sigma(epsilon, delta, Calibration.PAPER) / (n * m)


def expected_error(
    bias: NDArray[np.float64], sd: NDArray[np.float64], columns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """E‖Ĥ - H₀‖² over the noise: Σ over the two kinds of words of bias² + columns·sd² (last axis)."""
    total: NDArray[np.float64] = (bias + columns * np.square(sd)).sum(axis=-1)
    return total


def drawn_error(
    bias: NDArray[np.float64], sd: NDArray[np.float64], columns: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """One draw of ‖Ĥ - H₀‖², exactly as distributed, without drawing noise for every word of the dictionary.

    ‖b + sZ‖² for Z standard normal in R^c is (‖b‖ + s g)² + s² χ²_{c-1}: turn the first axis along b.
    """
    along = np.square(np.sqrt(bias) + sd * rng.normal(size=bias.shape))
    across = np.square(sd) * rng.chisquare(np.maximum(columns - 1, 0.5), size=bias.shape) * (columns > 1)
    total: NDArray[np.float64] = np.where(columns > 0, along + across, 0.0).sum(axis=-1)
    return total


def true_epsilon(epsilon: float, delta: float, reach: float = math.sqrt(2.0)) -> float:
    """The exact ε of noise calibrated as printed (sensitivity ρ) when the sensitivity is ``reach``·ρ."""
    return gaussian_epsilon(delta, reach / unit_sigma(epsilon, delta, Calibration.PAPER))


def largest_mass(corpus: Corpus, elements: Elements) -> float:
    """max P(c) over the clusters, estimated by all users' words: the paper expects errors to fall with its square."""
    total = np.asarray(corpus.counts.sum(axis=0)).ravel()
    return float(np.bincount(elements.occurring.labels, total).max() / total.sum())
