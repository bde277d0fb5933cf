"""Element and global sensitivity of a function of one user's data, by brute force over a finite space of users."""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from elementdp.elements.distance import user_distance
from elementdp.elements.partition import Multiset, Partition
from elementdp.errors import ArgumentError

_NORMS = {1: 1.0, 2: 2.0}


def element_sensitivity(
    f: Callable[[Multiset], ArrayLike], space: Sequence[Multiset], partition: Partition, norm: int = 2
) -> float:
    """es(f) (Equation (5)): the most f moves, in ℓ1 or ℓ2, between users at d_user ≤ 1."""
    return _most(f, space, norm, lambda x, y: user_distance(x, y, partition) <= 1)


def global_sensitivity(f: Callable[[Multiset], ArrayLike], space: Sequence[Multiset], norm: int = 2) -> float:
    """gs(f): the most f moves, in ℓ1 or ℓ2, between any two users."""
    return _most(f, space, norm, lambda x, y: True)


def _most(
    f: Callable[[Multiset], ArrayLike],
    space: Sequence[Multiset],
    norm: int,
    related: Callable[[Multiset, Multiset], bool],
) -> float:
    if norm not in _NORMS:
        raise ArgumentError("norm", norm, "1 or 2")
    values = [np.atleast_1d(np.asarray(f(x), dtype=float)) for x in space]
    pairs = combinations(range(len(space)), 2)
    gaps = (float(np.linalg.norm(values[i] - values[j], _NORMS[norm])) for i, j in pairs if related(space[i], space[j]))
    return max(gaps, default=0.0)
