"""The (K, ρ) grid of Section 4.1 at the paper's size: one pass for all ρ against a projection for each (K, ρ).

Synthetic users with Zipf-distributed words stand in for the Reddit table: 2,000 users × 4,000 tokens, 400,000 words,
six partitions, 22 values of ρ. The peer is plain SciPy, written the way one would: cluster norms as a sparse matrix,
scale, mean, once for each (K, ρ). It is timed on some values of ρ for every K in this same run, and the rest of
its grid is extrapolated from these (``--all`` times every cell). Times are CPU seconds: both sides run on one thread,
and the clock of a busy machine would measure its other work.
"""

import argparse
import time

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elementdp.companion.theory.counting import PAPER_RHOS, projected_means
from elementdp.elements import Clusters


def zipf_users(n: int, tokens: int, words: int, seed: int) -> csr_array:
    """n users with ``tokens`` words each, word r with probability about 1/r."""
    rng = np.random.default_rng(seed)
    p = 1 / np.arange(1, words + 1)
    cumulative = np.cumsum(p / p.sum())
    drawn = np.searchsorted(cumulative, rng.random(n * tokens)).clip(max=words - 1)
    table = csr_array((np.ones(n * tokens), (np.repeat(np.arange(n), tokens), drawn)), shape=(n, words))
    table.sum_duplicates()
    return table


def plain_scipy(counts: csr_array, labels: NDArray[np.int64], k: int, rho: float) -> NDArray[np.float64]:
    """The projected mean for one (K, ρ): cluster norms as a sparse matrix, each nonzero looks its own up."""
    n, d = counts.shape
    users = np.repeat(np.arange(n), np.diff(counts.indptr))
    norms = csr_array((counts.data**2, (users, labels[counts.indices])), shape=(n, k))
    norms.sum_duplicates()
    keys = np.repeat(np.arange(n), np.diff(norms.indptr)) * np.int64(k) + norms.indices
    found = norms.data[np.searchsorted(keys, users * np.int64(k) + labels[counts.indices])]
    scaled = csr_array((counts.data * (rho / np.maximum(np.sqrt(found), rho)), counts.indices, counts.indptr), (n, d))
    return np.asarray(scaled.sum(axis=0)).ravel() / n


def seconds(function, *arguments: object) -> tuple[float, NDArray[np.float64]]:  # type: ignore[no-untyped-def]
    """CPU time of a call, and its result."""
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def main() -> None:
    """Print the table; exit 1 if the whole grid is not at least ten times faster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--tokens", type=int, default=4000)
    parser.add_argument("--words", type=int, default=400_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="time every cell of the peer's grid")
    options = parser.parse_args()
    counts = zipf_users(options.users, options.tokens, options.words, options.seed)
    rng = np.random.default_rng(options.seed)
    rhos = np.array(PAPER_RHOS, dtype=float)
    timed = range(len(rhos)) if options.all else (0, 10, 21)
    print(f"stand-in table: {counts.shape[0]} users, {counts.shape[1]} words, {counts.nnz} nonzeros; 22 values of rho")
    print(f"{'K':>7} {'all rho':>9} {'one rho':>9} {'all/one':>8} {'SciPy, one':>11} {'SciPy, all':>11} {'ratio':>7}")
    ours = peer = 0.0
    for k in (1, 10, 100, 1000, 10_000, options.words):
        labels = np.arange(options.words) if k == options.words else rng.integers(0, k, size=options.words)
        clusters = Clusters(labels)
        whole, means = min((seconds(projected_means, counts, clusters, rhos) for _ in range(3)), key=lambda x: x[0])
        single = min(seconds(projected_means, counts, clusters, rhos[10:11])[0] for _ in range(3))
        cells = []
        for i in timed:
            took, mean = seconds(plain_scipy, counts, labels, k, rhos[i])
            cells.append(took)
            if not np.allclose(mean, means[i], rtol=1e-9, atol=1e-12):
                raise SystemExit(f"the two disagree at K = {k}, rho = {rhos[i]}")
        grid = float(np.mean(cells)) * len(rhos)
        ours, peer = ours + whole, peer + grid
        print(
            f"{k:>7} {whole:>8.3f}s {single:>8.3f}s {whole / single:>8.2f} "
            f"{np.mean(cells):>10.3f}s {grid:>10.2f}s {grid / whole:>7.1f}"
        )
    how = "timed" if options.all else f"extrapolated from {len(list(timed))} of {len(rhos)} rho"
    print(f"whole grid: {ours:.2f} s, SciPy {peer:.1f} s ({how}): {peer / ours:.1f} times faster")
    if peer < 10 * ours:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
