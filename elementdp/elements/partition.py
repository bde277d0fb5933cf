"""Partitions of a data space into elements: the clusters c₁, …, c_K of Section 2.2."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from elementdp.elements.clusters import Clusters, nearest
from elementdp.errors import ArgumentError

Item = Any
"""A data point: a word, a URL, a vector. Anything hashable, or a numpy array."""

Multiset = Iterable[Item] | Mapping[Item, int]
"""One user's data x⁽ᵘ⁾: a multiset of items, listed one by one or as counts by item."""


def _identity(item: Item) -> Hashable:
    return frozen(item)


def _constant(item: Item) -> Hashable:
    return 0


@dataclass(frozen=True)
class Partition:
    """A partition of the data space: ``key`` names the one element each item belongs to.

    Args:
        key: a function from an item to its element, which may be any hashable value.
        name: what to call the partition.

    Raises:
        ArgumentError: an item cannot be hashed, or is not one that the partition knows.

    >>> by_letter = Partition.from_key(lambda word: word[0], name="first letter")
    >>> {element: sorted(items) for element, items in by_letter.split(["apple", "ant", "bee"]).items()}
    {'a': ['ant', 'apple'], 'b': ['bee']}
    """

    key: Callable[[Item], Hashable]
    name: str = "partition"

    @classmethod
    def from_labels(cls, labels: Mapping[Item, Hashable], name: str = "labels") -> "Partition":
        """The partition that ``labels`` spells out, item by item; an item not listed is an error."""

        def key(item: Item) -> Hashable:
            found = frozen(item)
            if found not in labels:
                raise ArgumentError("item", item, f"one of the {len(labels)} items of the partition {name!r}")
            return labels[found]

        return cls(key, name)

    @classmethod
    def from_key(cls, key: Callable[[Item], Hashable], name: str = "") -> "Partition":
        """The partition into the level sets of ``key``, such as :func:`elementdp.elements.domain_of`."""
        return cls(key, name or getattr(key, "__name__", "key"))

    @classmethod
    def identity(cls) -> "Partition":
        """Each item is its own element: words as in Example 1 of the paper."""
        return cls(_identity, "each item")

    @classmethod
    def single(cls) -> "Partition":
        """One cluster, K = 1: element-level privacy is then user-level privacy."""
        return cls(_constant, "one cluster")

    @classmethod
    def nearest(cls, centroids: ArrayLike, name: str = "nearest centroid") -> "Partition":
        """Each vector belongs to the nearest (in ℓ2) of K centroids; the first of several equally near."""
        points = np.asarray(centroids, dtype=float)

        def key(item: Item) -> Hashable:
            return int(nearest(np.atleast_2d(np.asarray(item, dtype=float)), points)[0])

        return cls(key, name)

    def split(self, user: Multiset) -> dict[Hashable, Counter[Hashable]]:
        r"""The items of one user by element: :math:`\{x_i : x_i\in c_k\}`, a multiset for each element there is."""
        parts: dict[Hashable, Counter[Hashable]] = {}
        pairs = user.items() if isinstance(user, Mapping) else ((item, 1) for item in user)
        for item, count in pairs:
            if count < 0 or int(count) != count:
                raise ArgumentError("count", count, "a whole number >= 0")
            if count:
                parts.setdefault(self.key(item), Counter())[frozen(item)] += int(count)
        return parts

    def clusters(self, items: Sequence[Item]) -> Clusters:
        """The partition this induces on the columns of a users × items matrix."""
        return Clusters.from_labels([self.key(item) for item in items])


def frozen(item: Item) -> Hashable:
    """A hashable stand-in equal exactly when the items are: numpy arrays by their values, others themselves."""
    if isinstance(item, np.ndarray):
        return (item.shape, tuple(item.ravel().tolist()))
    if not isinstance(item, Hashable):
        raise ArgumentError("item", item, "hashable, or a numpy array")
    return item
