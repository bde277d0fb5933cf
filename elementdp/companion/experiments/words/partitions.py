"""Clusters of words by their vectors, kept in the data directory once computed."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from elementdp.companion.data.store import DataError, find, read_arrays, writable, write_arrays
from elementdp.elements import Clusters
from elementdp.errors import ArgumentError, at_least

ITERATIONS = 5
"""Lloyd's iterations after k-means++ seeding; more changes the figure less than another seed does."""

WORTH_KEEPING = 10**6
"""Words times clusters from which computing again takes longer than reading a file."""


def word_clusters(vectors: NDArray[np.float32], sha256: str, count: int, seed: int = 0) -> Clusters:
    """K clusters of the whole vocabulary: one (user-level), K-means, or every word its own.

    The result is kept under the hash of everything it depends on, ``sha256`` being that of the vectors.
    """
    d = len(vectors)
    if not at_least("clusters", count, 1) <= d:
        raise ArgumentError("clusters", count, f"at most the number of words, {d}")
    if count == 1:
        return Clusters.single(d)
    if count == d:
        return Clusters.singletons(d)
    key = hashlib.sha256(f"{sha256} {vectors.shape} {count} {seed} {ITERATIONS}".encode()).hexdigest()[:16]
    file = f"word-clusters-{count}-{key}.npz"
    present = find(file)
    if present is not None:
        try:
            labels = read_arrays(present)["labels"]
            if labels.shape == (d,):
                return Clusters(labels.astype(np.int64))
        except DataError:
            pass  # a damaged cache is recomputed
    found = Clusters.kmeans(vectors, count, seed, ITERATIONS)
    if d * count >= WORTH_KEEPING:
        write_arrays(writable() / file, {"labels": found.labels.astype(np.int32)})
    return found


def restricted(clusters: Clusters, column: NDArray[np.int64]) -> Clusters:
    """The partition on the words that occur alone; projections only depend on this part of it."""
    if clusters.count == clusters.labels.size:
        return Clusters.singletons(len(column))
    return Clusters(np.unique(clusters.labels[column], return_inverse=True)[1].astype(np.int64))
