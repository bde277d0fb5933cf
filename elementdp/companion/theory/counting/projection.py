"""The projection π_{ρ,{c_k}} of Section 3.2: each user's counts in each cluster into an ℓ2 ball of radius ρ."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from elementdp.elements import Clusters
from elementdp.errors import ArgumentError, positive

_BINS = 1 << 21
"""(user, cluster) sums held at a time: small enough to stay in cache, whatever n and K."""


def checked(counts: csr_array, clusters: Clusters) -> csr_array:
    """Counts as CSR, one column for each label, all finite and non-negative, at least one user; else an error."""
    table = csr_array(counts)
    if table.shape[0] < 1:
        raise ArgumentError("counts", table.shape, "a table with at least one user")
    if table.shape[1] != clusters.labels.size:
        raise ArgumentError("counts", table.shape, f"a table with one column for each of {clusters.labels.size} labels")
    if table.nnz and not (np.isfinite(table.data).all() and table.data.min() >= 0):
        raise ArgumentError("counts", "negative or non-finite counts", "finite and >= 0")
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    return table


def cluster_square_sums(counts: csr_array, clusters: Clusters) -> NDArray[np.float64]:
    """For each stored count x_j of user u, ‖x_{c(j)}‖₂² of that user's counts in the cluster of j."""
    squares: NDArray[np.float64] = np.square(counts.data, dtype=float)
    k = clusters.count
    if k == clusters.labels.size:  # one word a cluster
        return squares
    labels = clusters.labels[counts.indices]
    n = counts.shape[0]
    if k * n > 32 * max(counts.nnz, 1):  # few of the (user, cluster) pairs occur: number those that do
        users = np.repeat(np.arange(n, dtype=np.int64), np.diff(counts.indptr))
        _, pairs = np.unique(users * k + labels, return_inverse=True)
        return np.asarray(np.bincount(pairs, squares)[pairs])
    sums = np.empty(counts.nnz)
    step = max(1, _BINS // k)
    for first in range(0, n, step):
        last = min(n, first + step)
        part = slice(counts.indptr[first], counts.indptr[last])
        rows = np.repeat(np.arange(last - first, dtype=np.int64), np.diff(counts.indptr[first : last + 1]))
        pairs = rows * k + labels[part]
        sums[part] = np.bincount(pairs, squares[part], minlength=(last - first) * k)[pairs]
    return sums


def project(counts: csr_array, clusters: Clusters, rho: float) -> csr_array:
    """π_{ρ,{c_k}}(x) for every user: x_c · min{1, ρ/‖x_c‖₂}, cluster by cluster."""
    table = checked(counts, clusters)
    norms = np.sqrt(cluster_square_sums(table, clusters))
    shrink = positive("rho", rho) / np.maximum(norms, rho)
    return csr_array((table.data * shrink, table.indices, table.indptr), shape=table.shape)


def projected_means(counts: csr_array, clusters: Clusters, rhos: ArrayLike | Sequence[float]) -> NDArray[np.float64]:
    """The means (1/n) Σ_u π_ρ(x⁽ᵘ⁾) for every ρ at once, one row for each ρ, in one pass over the nonzeros.

    A count x_j in a cluster of norm N gives x_j to every ρ ≥ N and ρ·x_j/N to every ρ < N. So each count is put in the
    bin of the first ρ ≥ N; sums of x_j over the bins up to ρ, and of x_j/N over the bins beyond, are all it takes.

    Nothing is added that is subtracted again: a count of 10¹⁷ would take the digits of every other user with it, and
    the mean would move by far more than ρ/n.
    """
    table = checked(counts, clusters)
    radii = _radii(rhos)
    order = np.argsort(radii, kind="stable")
    ascending = radii[order]
    n, d = table.shape
    norms = np.sqrt(cluster_square_sums(table, clusters))
    data = table.data.astype(float, copy=False)
    # Counts in clusters below the least ρ are whole for every ρ; only the others' columns differ.
    cut = norms > ascending[0]
    whole = np.bincount(table.indices[~cut], data[~cut], minlength=d) / n
    columns = table.indices[cut]
    touched = np.zeros(d, dtype=bool)
    touched[columns] = True
    if np.count_nonzero(touched) >= d // 2:
        touched[:] = True
    places = (np.cumsum(touched) - 1)[columns]
    changes = _clipped_means(data[cut], n, norms[cut], places, int(np.count_nonzero(touched)), ascending)
    means = np.empty((len(radii), d))
    for row, change in zip(order, changes, strict=True):
        if touched.all():
            np.add(whole, change, out=means[row])
        else:
            means[row] = whole
            means[row, touched] += change
    return means


def _radii(rhos: ArrayLike | Sequence[float]) -> NDArray[np.float64]:
    radii = np.asarray(rhos, dtype=float).ravel()
    if not radii.size:
        raise ArgumentError("rhos", radii, "at least one radius")
    for rho in radii:
        positive("rho", float(rho))
    return radii


def _clipped_means(
    counts: NDArray[np.float64],
    n: int,
    norms: NDArray[np.float64],
    columns: NDArray[np.int64],
    width: int,
    ascending: NDArray[np.float64],
) -> Iterator[NDArray[np.float64]]:
    """What counts in clusters with norms above the least ρ add to each column, ρ by ρ upwards."""
    index = (np.searchsorted(ascending, norms, side="left") - 1) * width + columns  # the last ρ below the norm
    bins = len(ascending) * width
    kept = np.bincount(index, counts / norms / n, minlength=bins).reshape(len(ascending), width)
    for row in range(len(ascending) - 2, -1, -1):
        kept[row] += kept[row + 1]
    seen = index < bins - width  # beyond the largest ρ no count is ever whole
    added = np.bincount(index[seen], counts[seen] / n, minlength=bins).reshape(len(ascending), width)
    below = np.zeros(width)
    for row, rho in enumerate(ascending):
        yield kept[row] * rho + below
        below = below + added[row]
