"""How far apart users and samples are: Equation (2) and Equation (3)."""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from elementdp.elements.partition import Multiset, Partition
from elementdp.errors import ArgumentError

Parts = dict[Hashable, Counter[Hashable]]


def user_distance(x: Multiset, x_prime: Multiset, partition: Partition) -> int:
    r"""The number of elements in which two users differ, :math:`d_{\mathsf{user}}(x, x')` (Equation (2))."""
    return _differing(partition.split(x), partition.split(x_prime))


def sample_distance(sample: Sequence[Multiset], sample_prime: Sequence[Multiset], partition: Partition) -> int:
    r"""The least total user distance over all matchings, :math:`d_{\mathsf{element}}(S, S')` (Equation (3)).

    Exact: an assignment problem. Users present in both samples are matched to each other first, which the triangle
    inequality makes optimal, so a large sample with few differing users costs little.
    """
    if len(sample) != len(sample_prime):
        raise ArgumentError("sample_prime", f"{len(sample_prime)} users", f"of the size of sample, {len(sample)} users")
    left, right = _unmatched([partition.split(x) for x in sample], [partition.split(x) for x in sample_prime])
    cost = np.array([[_differing(x, y) for y in right] for x in left], dtype=np.int64).reshape(len(left), len(right))
    rows, columns = linear_sum_assignment(cost)
    return int(cost[rows, columns].sum())


def are_neighbours(sample: Sequence[Multiset], sample_prime: Sequence[Multiset], partition: Partition) -> bool:
    """Whether the samples are element-neighbours: the same but for at most one element of at most one user."""
    return sample_distance(sample, sample_prime, partition) <= 1


def _differing(x: Parts, y: Parts) -> int:
    return sum(x.get(element) != y.get(element) for element in x.keys() | y.keys())


def _unmatched(sample: list[Parts], sample_prime: list[Parts]) -> tuple[list[Parts], list[Parts]]:
    """The users of each sample left over once equal users are matched."""
    waiting: dict[Hashable, list[Parts]] = {}
    for parts in sample_prime:
        waiting.setdefault(_fingerprint(parts), []).append(parts)
    left = []
    for parts in sample:
        if twins := waiting.get(_fingerprint(parts)):
            twins.pop()
        else:
            left.append(parts)
    return left, [parts for twins in waiting.values() for parts in twins]


def _fingerprint(parts: Parts) -> Hashable:
    return frozenset((element, item, count) for element, items in parts.items() for item, count in items.items())
