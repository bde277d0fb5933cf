"""The items of a release: a public list of them, or the wish to discover them privately."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elementdp.errors import ArgumentError, at_least
from elementdp.histogram.item_columns import public_texts
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.text import Keys, places_among


@dataclass(frozen=True)
class Discovery:
    """Items are discovered privately; one group names at most ``max_items_per_element`` of its items."""

    max_items_per_element: int = 100

    def __post_init__(self) -> None:
        at_least("max_items_per_element", self.max_items_per_element, 1)


class ItemList:
    """Items, each once, and their places in the list."""

    def __init__(self, items: Sequence[str]) -> None:
        self.items = list(items)
        self._sorted: tuple[ItemHash | None, Keys, NDArray[np.int64]] = (None, np.empty(0, np.uint64), np.empty(0, int))

    @classmethod
    def public(cls, items: Iterable[object], columns: int = 1) -> "ItemList":
        """A public list of items of so many columns; what is listed twice is one item."""
        if isinstance(items, str):
            raise ArgumentError("items", items, "a list of items")
        return cls(list(dict.fromkeys(public_texts(items, columns))))

    def __len__(self) -> int:
        return len(self.items)

    def places_of_hashes(self, hashes: Keys, hashing: ItemHash) -> NDArray[np.int64]:
        """The place of each item by its hash under ``hashing``, −1 where it is not in the list."""
        if not self.items:
            return np.full(len(hashes), -1)
        if self._sorted[0] != hashing:
            own = hashing.of(pa.array(self.items, pa.string()))
            order = np.argsort(own)
            self._sorted = hashing, own[order], order
        _, listed, order = self._sorted
        return np.append(order, -1)[places_among(listed, hashes)]  # −1 is the last
