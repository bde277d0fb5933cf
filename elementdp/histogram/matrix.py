"""The projection π_{ρ,{c_k}} of Section 3.2: each user's counts in each cluster into an ℓ2 ball of radius ρ."""

from collections.abc import Sequence

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


def project_to_integers(counts: csr_array, clusters: Clusters, rho: int) -> csr_array:
    """The projection rounded down, in exact integer arithmetic: ⌊x_j ρ/‖x_c‖₂⌋ wherever ‖x_c‖₂ > ρ.

    Rounding down a non-negative vector keeps it in the ball, so the sensitivity is that of the projection itself.
    """
    table = checked(counts, clusters)
    if int(rho) != positive("rho", rho):
        raise ArgumentError("rho", rho, "a whole number")
    x = table.data.astype(np.int64)
    if not np.array_equal(x, table.data):
        raise ArgumentError("counts", "fractions", "whole numbers")
    squared = cluster_square_sums(table, clusters)
    limit = min(2.0**53, (2.0**31 / rho) ** 2)  # sums exact in floats, products exact in 64-bit integers
    if squared.max(initial=0.0) >= limit:
        raise ArgumentError("counts", f"norm {squared.max() ** 0.5:.4g}", f"of norm below {limit**0.5:.4g} a cluster")
    whole = squared.astype(np.int64)
    top = x * x * int(rho) ** 2
    out = np.floor(x * (rho / np.sqrt(np.maximum(squared, 1.0)))).astype(np.int64)
    out -= out * out * whole > top  # the float quotient can be one off either way
    out += (out + 1) ** 2 * whole <= top
    out = np.where(whole <= int(rho) ** 2, x, out)
    return csr_array((out, table.indices, table.indptr), shape=table.shape)


def projected_means(counts: csr_array, clusters: Clusters, rhos: ArrayLike | Sequence[float]) -> NDArray[np.float64]:
    """The means (1/n) Σ_u π_ρ(x⁽ᵘ⁾) for every ρ at once, one row for each ρ, in one pass over the nonzeros.

    A count x_j in a cluster of norm N gives x_j to every ρ ≥ N and ρ·x_j/N to every ρ < N. So each count is put in the
    bin of the first ρ ≥ N; sums of x_j over the bins up to ρ, and of x_j/N over the bins beyond, are all it takes.

    Nothing is added that is subtracted again: a count of 10¹⁷ would take the digits of every other user with it, and
    the mean would move by far more than ρ/n.
    """
    table = checked(counts, clusters)
    radii = np.asarray(rhos, dtype=float).ravel()
    if not radii.size:
        raise ArgumentError("rhos", radii, "at least one radius")
    for rho in radii:
        positive("rho", float(rho))
    order = np.argsort(radii, kind="stable")
    ascending = radii[order]
    n, d = table.shape
    norms = np.sqrt(cluster_square_sums(table, clusters))
    data = table.data.astype(float, copy=False)
    columns = table.indices
    means = np.empty((len(radii), d))
    # Counts in clusters below the least ρ are whole for every ρ; only the others' columns differ.
    cut = norms > ascending[0]
    whole = ~cut
    total = np.bincount(columns[whole], data[whole], minlength=d) / n
    norms, data, columns = norms[cut], data[cut], columns[cut]
    touched = np.zeros(d, dtype=bool)
    touched[columns] = True
    narrow = np.count_nonzero(touched) < d // 2
    if narrow:
        columns = (np.cumsum(touched) - 1)[columns]
    width = int(np.count_nonzero(touched)) if narrow else d
    index = (np.searchsorted(ascending, norms, side="left") - 1) * width + columns  # the last ρ below the norm
    bins = len(radii) * width
    kept = np.bincount(index, data / norms / n, minlength=bins).reshape(len(radii), width)
    for row in range(len(radii) - 2, -1, -1):
        kept[row] += kept[row + 1]
    seen = index < bins - width  # beyond the largest ρ no count is ever whole
    added = np.bincount(index[seen], data[seen] / n, minlength=bins).reshape(len(radii), width)
    below = np.zeros(width)
    for row, rho in enumerate(ascending):
        change = kept[row] * rho
        change += below
        below += added[row]
        if narrow:
            means[order[row]] = total
            means[order[row], touched] += change
        else:
            np.add(total, change, out=means[order[row]])
    return means
