"""Clusters of the columns of a users × items matrix, and k-means that makes them from embeddings."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elementdp.errors import ArgumentError, at_least, missing_extra

_DIRECT = 256
"""Up to this many centroids plain k-means++ seeding is quick; above, seeding is done in two levels."""

_CHUNK = 1 << 24
"""Distances held at a time while looking for nearest centroids (float32: 64 MiB)."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """A partition {c₁, …, c_K} of the columns [d]: ``labels[j]`` is the number of the cluster of column j."""

    labels: NDArray[np.int64]
    names: tuple[Hashable, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if self.labels.ndim != 1 or self.labels.size == 0:
            raise ArgumentError("labels", self.labels.shape, "one label a column, at least one column")
        if self.labels.min() < 0:
            raise ArgumentError("labels", int(self.labels.min()), "numbers >= 0")
        self.labels.setflags(write=False)

    @classmethod
    def from_labels(cls, labels: NDArray[Any] | Sequence[Hashable]) -> "Clusters":
        """Columns with equal labels share a cluster; clusters are numbered in order of first appearance."""
        order: dict[Hashable, int] = {}
        values: list[Hashable] = np.asarray(labels).tolist() if isinstance(labels, np.ndarray) else list(labels)
        numbers = [order.setdefault(value, len(order)) for value in values]
        return cls(np.asarray(numbers, dtype=np.int64), tuple(order))

    @classmethod
    def singletons(cls, d: int) -> "Clusters":
        """Every column its own cluster, K = d."""
        return cls(np.arange(at_least("d", d, 1), dtype=np.int64))

    @classmethod
    def single(cls, d: int) -> "Clusters":
        """All columns in one cluster, K = 1: user-level privacy."""
        return cls(np.zeros(at_least("d", d, 1), dtype=np.int64))

    @classmethod
    def kmeans(cls, vectors: ArrayLike, k: int, seed: int = 0, iterations: int = 5) -> "Clusters":
        """The nearest of k centroids for each row of ``vectors``; see :func:`kmeans`."""
        points = np.asarray(vectors, dtype=np.float32)
        return cls.from_labels(nearest(points, kmeans(points, k, seed, iterations)))

    @property
    def count(self) -> int:
        """K, the number of clusters."""
        return int(self.labels.max()) + 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many columns each cluster has."""
        return np.bincount(self.labels, minlength=self.count)


def nearest(points: NDArray[np.floating], centroids: NDArray[np.floating]) -> NDArray[np.int64]:
    """The number of the nearest centroid (in ℓ2) for each point, the first of several equally near."""
    if points.shape[1] != centroids.shape[1]:
        raise ArgumentError("centroids", centroids.shape, f"rows of {points.shape[1]} numbers")
    half = 0.5 * np.einsum("ij,ij->i", centroids, centroids)
    rows = max(1, _CHUNK // len(centroids))
    chunks = [np.argmin(half - points[i : i + rows] @ centroids.T, axis=1) for i in range(0, max(1, len(points)), rows)]
    return np.concatenate(chunks)


def kmeans(vectors: ArrayLike, k: int, seed: int = 0, iterations: int = 5) -> NDArray[np.float32]:
    """k centroids by k-means++ seeding and Lloyd's iterations.

    For large k the seeding is done in two levels (k-means++ of about √k coarse cells, then k-means++ inside each cell,
    seeds in proportion to its share of the squared error), because plain k-means++ passes over all points once a seed.
    """
    try:
        from sklearn.cluster import KMeans, kmeans_plusplus  # slow to import; only clustering needs it
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, "companion") from missing

    points = np.ascontiguousarray(vectors, dtype=np.float32)
    if points.ndim != 2 or not np.isfinite(points).all():
        raise ArgumentError("vectors", getattr(points, "shape", None), "a matrix of finite numbers, one row an item")
    if not at_least("k", k, 1) <= len(points):
        raise ArgumentError("k", k, f"at most the number of items, {len(points)}")
    rng = np.random.RandomState(seed)
    if k <= _DIRECT:
        seeds = kmeans_plusplus(points, k, random_state=rng)[0]
    else:
        coarse = kmeans(points, round(k**0.5), seed, iterations=2)
        cell = nearest(points, coarse)
        error = np.square(points - coarse[cell]).sum(axis=1, dtype=float)
        size = np.bincount(cell, minlength=len(coarse))
        share = apportion(np.bincount(cell, error, minlength=len(coarse)).astype(float), size, k)
        seeds = np.concatenate(
            [kmeans_plusplus(points[cell == c], share[c], random_state=rng)[0] for c in np.flatnonzero(share)]
        )
    fitted = KMeans(k, init=seeds, n_init=1, max_iter=at_least("iterations", iterations, 1), tol=0.0, random_state=rng)
    return np.asarray(fitted.fit(points).cluster_centers_, dtype=np.float32)


def apportion(weight: NDArray[np.float64], limit: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Whole numbers adding up to ``total``, about in proportion to ``weight``: ≤ ``limit``, and ≥ 1 where limit is."""
    share: NDArray[np.int64] = np.minimum(
        limit, np.maximum(np.floor(weight * total / max(weight.sum(), 1e-300)), 1)
    ).astype(np.int64)
    while (gap := total - int(share.sum())) != 0:
        room = limit - share if gap > 0 else share - (limit > 0)
        order = np.argsort(-(weight / np.maximum(share, 1)) * np.sign(gap), kind="stable")
        chosen = order[room[order] > 0][: abs(gap)]
        share[chosen] += np.sign(gap)
    return share
