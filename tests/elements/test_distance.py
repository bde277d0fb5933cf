"""Distances against the definitions, by brute force over permutations."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.elements import (
    Partition,
    are_neighbours,
    element_sensitivity,
    global_sensitivity,
    sample_distance,
    user_distance,
)
from elementdp.errors import ArgumentError

PARTITIONS = [Partition.identity(), Partition.single(), Partition.from_key(lambda item: item % 2)]
users = st.lists(st.integers(0, 4), max_size=4)
samples = st.lists(users, min_size=3, max_size=3)
quick = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: p.name)
@quick
@given(samples, samples)
def test_sample_distance_is_the_least_over_permutations(
    partition: Partition, s: list[list[int]], t: list[list[int]]
) -> None:
    brute = min(
        sum(user_distance(x, t[j], partition) for x, j in zip(s, order, strict=True))
        for order in permutations(range(3))
    )
    assert sample_distance(s, t, partition) == brute
    assert are_neighbours(s, t, partition) == (brute <= 1)


@quick
@given(users, users, users)
def test_user_distance_is_a_metric_and_coarsening_cannot_increase_it(x: list[int], y: list[int], z: list[int]) -> None:
    fine, coarse, parity = PARTITIONS
    assert user_distance(x, y, fine) == user_distance(y, x, fine)
    assert (user_distance(x, y, fine) == 0) == (sorted(x) == sorted(y))
    assert user_distance(x, z, fine) <= user_distance(x, y, fine) + user_distance(y, z, fine)
    assert user_distance(x, y, coarse) <= user_distance(x, y, parity) <= user_distance(x, y, fine)
    assert user_distance(x, y, coarse) == int(sorted(x) != sorted(y))


def test_one_cluster_gives_the_hamming_distance() -> None:
    assert sample_distance([[1], [2], [3]], [[3], [1], [9, 9]], Partition.single()) == 1


def test_samples_of_different_size_are_refused() -> None:
    with pytest.raises(ArgumentError, match="1 users"):
        sample_distance([[1]], [[1], [2]], Partition.identity())


def test_large_sample_with_one_changed_user_is_quick() -> None:
    sample = [[u, u + 1] for u in range(5000)]
    changed = [*sample[1:], [0, 7, 7]]
    assert sample_distance(sample, changed, Partition.identity()) == 2


def test_sensitivities_of_a_count() -> None:
    space = [[0] * a + [1] * b for a in range(4) for b in range(4) if a + b <= 3]
    by_item = Partition.identity()
    assert element_sensitivity(len, space, by_item) == 3  # all three items are of one kind
    assert element_sensitivity(lambda x: len(set(x)), space, by_item) == 1
    assert global_sensitivity(lambda x: len(set(x)), space) == 2
    assert element_sensitivity(lambda x: len(set(x)), space, Partition.single()) == 2
    assert global_sensitivity(lambda x: [x.count(0), x.count(1)], space, norm=1) == 6  # type: ignore[union-attr]
