"""The items of a release: a public list of them, or the wish to discover them privately."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elementdp.errors import ArgumentError, at_least
from elementdp.histogram.text import as_text


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
        self._values = pa.array(self.items, pa.string())

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

    def places(self, values: pa.Array) -> NDArray[np.int64]:
        """The place of each value, −1 where it is not in the list."""
        encoded = values.dictionary_encode()
        found = pc.fill_null(pc.index_in(encoded.dictionary, value_set=self._values), -1).to_numpy()
        return np.asarray(found[encoded.indices.to_numpy()], dtype=np.int64)
