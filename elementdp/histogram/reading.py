"""From the rows of a table to (group, item, units): what every engine does with a batch of events."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elementdp.errors import ElementdpError
from elementdp.histogram.cells import strings, units
from elementdp.histogram.element_rule import ElementRule, canonical
from elementdp.histogram.engine import Columns, Measure, RowPolicy
from elementdp.histogram.errors import TableError, at_row
from elementdp.histogram.items import ItemList
from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import GroupCounts
from elementdp.histogram.text import Keys, hash_strings, mix

_REMEMBERED = 1 << 17


@dataclass(frozen=True)
class RowReader:
    """Reads rows by their (user, element): items by their place in ``items``, or as they are without a list.

    A group is known by a 64-bit hash of (user, element). Should two share one, they are bounded as one group, so a
    collision can cost accuracy but never privacy.
    """

    columns: Columns
    rule: ElementRule
    items: ItemList | None
    policy: RowPolicy

    @property
    def names(self) -> list[str]:
        """The columns that are read, each once."""
        columns = self.columns
        return list(dict.fromkeys([columns.user, columns.item, *filter(None, (self.rule.column, columns.count))]))

    @property
    def item_type(self) -> pa.DataType:
        """How an item is written: as its place in the list, or as text."""
        return pa.string() if self.items is None else pa.int64()

    @cached_property
    def _element(self) -> Callable[[str], Hashable]:
        # The same items come batch after batch, and a URL is slow to take apart.
        return lru_cache(_REMEMBERED)(self.rule.key)

    def rows(self, batch: pa.RecordBatch, row: int = 0) -> tuple[Keys, pa.Array, Integers]:
        """Keys, items and units of a batch before which ``row`` rows came; a bad row is refused by its number."""
        columns = self.columns
        user, item = strings(batch, columns.user, row), strings(batch, columns.item, row)
        counts = units(batch, columns.count, row)
        keys = mix(hash_strings(user), self._element_keys(batch, item, row))
        if self.items is None:
            return keys, item, counts
        places = self.items.places(item)
        known = places >= 0
        if self.policy.unknown_items == "refuse" and not known.all():
            raise _unknown(item, row, int(np.argmin(known)))
        return keys[known], pa.array(places[known], pa.int64()), counts[known]

    def _element_keys(self, batch: pa.RecordBatch, item: pa.Array, row: int) -> Keys:
        """The hash of each event's element: of a column, or of a function of the item."""
        if self.rule.column is not None:
            return hash_strings(strings(batch, self.rule.column, row))
        encoded = item.dictionary_encode()
        elements: list[str] = []
        for place, value in enumerate(encoded.dictionary.to_pylist()):
            try:
                found = self._element(value)
            except ElementdpError as error:
                first = int(np.argmax(encoded.indices.to_numpy() == place))
                raise at_row(row + first + 1, str(error), "an item has no element") from error
            elements.append(canonical(found))
        hashed: Keys = hash_strings(pa.array(elements, pa.string()))
        return np.asarray(hashed[encoded.indices.to_numpy()])


def measured(part: pa.Table, measure: Measure, items: ItemList, alone: NDArray[np.bool_]) -> Integers:
    """``measure`` of a part's groups (columns key, item, units; whole groups), seen on ``items`` only.

    Where ``alone``, an item is a group of its own.
    """
    column = part.column("item").combine_chunks()
    places = items.places(column) if pa.types.is_string(column.type) else column.to_numpy()
    keys, counts = part.column("key").to_numpy(), part.column("units").to_numpy()
    known = places >= 0
    single = known & alone[places] if len(alone) else known
    shared = known & ~single
    return np.asarray(
        measure(GroupCounts.of(keys[single], places[single], counts[single]).apart())
        + measure(GroupCounts.of(keys[shared], places[shared], counts[shared]))
    )


def _unknown(item: pa.Array, row: int, first: int) -> TableError:
    missing = "is not in the public list of items; list it, or drop such items on purpose with ignore_unknown_items"
    return at_row(row + first + 1, f"item {item[first].as_py()!r} {missing}", f"an item {missing}")
