"""The items of a release: a public list of them, or the wish to discover them privately."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elementdp.errors import ArgumentError, at_least
from elementdp.histogram.text import Keys, as_text, hash_strings


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
        hashes = hash_strings(pa.array(self.items, pa.string()))
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]

    @classmethod
    def public(cls, items: Iterable[object]) -> "ItemList":
        """A public list, read as the table's own items are: 7.0 is written 7, and what is listed twice is one item."""
        if isinstance(items, str):
            raise ArgumentError("items", items, "a list of items")
        values = list(items)
        if not values:
            raise ArgumentError("items", items, "a list of at least one item")
        try:
            texts = as_text(pa.array(values, from_pandas=True)).to_pylist()
        except (pa.ArrowException, UnicodeError, OverflowError) as error:
            raise ArgumentError("items", f"a list that is not ({error})", "a list of items of one kind") from error
        if None in texts:
            raise ArgumentError("items", values[texts.index(None)], "a list of items, none of them missing")
        return cls(list(dict.fromkeys(texts)))

    def __len__(self) -> int:
        return len(self.items)

    def places_of_hashes(self, hashes: Keys) -> NDArray[np.int64]:
        """The place of each item by its hash, −1 where it is not in the list.

        Two items with one hash would be counted as one; among a million items that happens once in 30 million lists.
        """
        if not self.items:
            return np.full(len(hashes), -1)
        found = np.minimum(np.searchsorted(self._hashes, hashes), len(self.items) - 1)
        return np.where(self._hashes[found] == hashes, self._order[found], -1)
