"""The projection against its definition, user by user and cluster by cluster, and the grid against single radii."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from elementdp.companion.theory.counting import project, projected_means
from elementdp.companion.theory.counting.projection import cluster_square_sums
from elementdp.elements import Clusters
from elementdp.errors import ArgumentError


def dense_projection(x: np.ndarray, labels: np.ndarray, rho: float) -> np.ndarray:
    out = x.astype(float)
    for u in range(len(x)):
        for c in np.unique(labels):
            norm = np.linalg.norm(x[u, labels == c])
            if norm > rho:
                out[u, labels == c] *= rho / norm
    return out


@pytest.fixture(params=[1, 3, 12, 40])
def case(request: pytest.FixtureRequest) -> tuple[np.ndarray, Clusters]:
    rng = np.random.default_rng(request.param)
    x = rng.poisson(rng.gamma(0.3, 4.0, size=(15, 40)))
    labels = np.arange(40) if request.param == 40 else rng.integers(0, request.param, size=40)
    return x, Clusters.from_labels(labels)


def test_projection_is_the_definition(case: tuple[np.ndarray, Clusters]) -> None:
    x, clusters = case
    for rho in (0.5, 2.0, 7.0, 1e6):
        assert project(csr_array(x), clusters, rho).toarray() == pytest.approx(
            dense_projection(x, clusters.labels, rho)
        )


def test_grid_in_one_pass_equals_single_radii(case: tuple[np.ndarray, Clusters]) -> None:
    x, clusters = case
    rhos = [9.0, 1.0, np.linalg.norm(x[0, clusters.labels == 0]) or 2.0, 1e4, 3.0, 3.0]
    grid = projected_means(csr_array(x), clusters, rhos)
    for row, rho in zip(grid, rhos, strict=True):
        assert row == pytest.approx(dense_projection(x, clusters.labels, rho).mean(axis=0), abs=1e-12)


@pytest.mark.parametrize("count", [0.0, 1e3, 1e10, 1e17, 1e150])
def test_one_user_moves_a_mean_by_rho_over_n_whatever_the_count(count: float) -> None:
    """999 users have the word once; what the last one has must not take their digits away."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, size=(1000, 3)).astype(float)
    for clusters in (Clusters.singletons(3), Clusters.single(3)):
        x[-1] = 0
        rhos = [2.0, 0.5, 9.0]
        without = projected_means(csr_array(x), clusters, rhos)
        x[-1, 0] = count
        moved = projected_means(csr_array(x), clusters, rhos) - without
        assert moved[:, 0] == pytest.approx(np.minimum(rhos, count) / 1000, abs=1e-12)
        assert moved[:, 1:] == pytest.approx(0, abs=1e-12)


def test_the_three_ways_to_sum_squares_agree() -> None:
    rng = np.random.default_rng(1)
    x = csr_array((rng.random((300, 5000)) < 0.002) * rng.integers(1, 9, size=(300, 5000)))
    for k in (2, 40, 4000):  # 4000 × 300 pairs are many times the nonzeros: the sparse way
        clusters = Clusters(rng.integers(0, k, size=5000))
        dense = x.toarray()
        expected = [
            np.square(dense[u, clusters.labels == clusters.labels[j]]).sum() for u, j in zip(*x.nonzero(), strict=True)
        ]
        assert cluster_square_sums(x, clusters) == pytest.approx(expected)


def test_bad_tables_are_refused() -> None:
    clusters = Clusters.single(2)
    for table in ([[1.0, -1.0]], [[np.nan, 0.0]], [[1.0, 2.0, 3.0]]):
        with pytest.raises(ArgumentError):
            projected_means(csr_array(table), clusters, [1.0])
    with pytest.raises(ArgumentError, match="at least one user"):
        projected_means(csr_array((0, 2)), clusters, [1.0])
    with pytest.raises(ArgumentError, match="rho"):
        projected_means(csr_array([[1.0, 2.0]]), clusters, [0.0])


def test_duplicate_entries_are_one_count() -> None:
    twice = csr_array((np.array([2.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    assert projected_means(twice, Clusters.singletons(2), [3.0])[0].tolist() == [3.0, 0.0]


def test_many_users_and_items_stay_sparse() -> None:
    # dense this would be 10¹¹ numbers; the result is one row of a million
    rng = np.random.default_rng(0)
    n, d = 100_000, 1_000_000
    columns = rng.integers(0, d, size=3 * n)
    counts = csr_array((np.full(3 * n, 5.0), columns, np.arange(0, 3 * n + 1, 3)), shape=(n, d))
    for clusters in (Clusters.single(d), Clusters(np.arange(d) % 50_000), Clusters.singletons(d)):
        mean = projected_means(counts, clusters, [1.0])[0]
        assert mean.shape == (d,)
        assert 1.0 <= mean.sum() <= 3.0 + 1e-9
