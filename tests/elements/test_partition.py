"""Partitions split multisets; clusters label columns."""

from collections import Counter

import numpy as np
import pytest

from elementdp.elements import Clusters, Partition, domain_of, kmeans, nearest
from elementdp.elements.clusters import apportion
from elementdp.errors import ArgumentError


def test_split_keeps_multisets() -> None:
    parts = Partition.from_key(domain_of).split(["http://a.org/1", "https://www.a.org/2", "http://a.org/1", "b.org"])
    assert parts == {
        "a.org": Counter({"http://a.org/1": 2, "https://www.a.org/2": 1}),
        "b.org": Counter({"b.org": 1}),
    }


def test_counts_and_lists_are_the_same_data() -> None:
    words = Partition.identity()
    assert words.split({"yo": 3, "bro": 0}) == words.split(["yo", "yo", "yo"])
    with pytest.raises(ArgumentError, match="whole number"):
        words.split({"yo": -1})
    with pytest.raises(ArgumentError, match="whole number"):
        words.split({"yo": 0.5})  # type: ignore[dict-item]


def test_labels_refuse_strangers() -> None:
    partition = Partition.from_labels({"a": 1, "b": 1, "c": 2})
    assert partition.split("abc").keys() == {1, 2}
    with pytest.raises(ArgumentError, match="one of the 3 items"):
        partition.split("abd")


def test_nearest_breaks_ties_by_the_first() -> None:
    partition = Partition.nearest([[0.0], [2.0]])
    assert [partition.key(np.array([v])) for v in (-1.0, 1.0, 1.1)] == [0, 0, 1]


def test_nearest_agrees_with_all_distances() -> None:
    rng = np.random.default_rng(3)
    points, centroids = rng.normal(size=(300, 5)), rng.normal(size=(17, 5))
    brute = np.linalg.norm(points[:, None] - centroids[None], axis=2).argmin(axis=1)
    assert np.array_equal(nearest(points, centroids), brute)


def test_clusters_number_labels_in_order() -> None:
    clusters = Clusters.from_labels(["x", "y", "x", "z"])
    assert clusters.labels.tolist() == [0, 1, 0, 2]
    assert clusters.names == ("x", "y", "z")
    assert clusters.count == 3
    assert clusters.sizes.tolist() == [2, 1, 1]
    assert Clusters.singletons(4).count == 4
    assert Clusters.single(4).count == 1
    assert Partition.from_key(len).clusters(["a", "bb", "c"]).labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize("k", [3, 300])
def test_kmeans_finds_separated_blobs(k: int) -> None:
    rng = np.random.default_rng(0)
    centres = rng.permutation(np.stack(np.meshgrid(np.arange(20), np.arange(15)), -1).reshape(-1, 2))[:k] * 10.0
    points = np.repeat(centres, 8, axis=0) + rng.normal(scale=0.05, size=(8 * k, 2))
    clusters = Clusters.kmeans(points, k, seed=1)
    found = clusters.labels.reshape(k, 8)
    if k == 3:
        assert clusters.count == k
        assert (found == found[:, :1]).all()
    assert np.mean(found == found[:, :1]) > 0.9


def test_kmeans_is_reproducible_and_checks_its_arguments() -> None:
    points = np.random.default_rng(0).normal(size=(50, 3))
    assert np.array_equal(kmeans(points, 7, seed=2), kmeans(points, 7, seed=2))
    with pytest.raises(ArgumentError, match="at most the number of items"):
        kmeans(points, 51)
    points[0, 0] = np.nan
    with pytest.raises(ArgumentError, match="finite"):
        kmeans(points, 3)


@pytest.mark.parametrize("total", [3, 10, 23])
def test_apportion_adds_up_within_limits(total: int) -> None:
    limit = np.array([1, 20, 2, 0])
    share = apportion(np.array([5.0, 1.0, 100.0, 0.0]), limit, total)
    assert share.sum() == total
    assert (share <= limit).all()
    assert (share[limit > 0] >= 1).all()
