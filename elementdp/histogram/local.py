"""The engine of this machine: events are read in batches, parted by group on disk, and added up part by part."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elementdp.errors import ElementdpError, at_least
from elementdp.histogram.cells import strings, units
from elementdp.histogram.element_rule import ElementRule, canonical
from elementdp.histogram.engine import Columns, Measure, Progress, RowPolicy
from elementdp.histogram.errors import TableError, at_row
from elementdp.histogram.items import ItemList
from elementdp.histogram.naming import Naming
from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import GroupCounts
from elementdp.histogram.spill import PART_BYTES, Spill
from elementdp.histogram.tables import BATCH_ROWS, Events, open_events
from elementdp.histogram.text import Keys, hash_strings, mix

_REMEMBERED = 1 << 17


def silent(stage: str, share: float) -> None:
    """Tell no one how far the work is."""


@dataclass(frozen=True)
class LocalEngine:
    """One machine: memory holds one batch, one part of the table on disk (``part_bytes``) and the items."""

    progress: Progress = silent
    batch_rows: int = BATCH_ROWS
    part_bytes: int = PART_BYTES

    def __post_init__(self) -> None:
        at_least("batch_rows", self.batch_rows, 1)
        at_least("part_bytes", self.part_bytes, 1)

    def open(self, table: object) -> "LocalSource":
        """A file or a table in memory."""
        return LocalSource(open_events(table, self.batch_rows), self)


@dataclass(frozen=True)
class LocalSource:
    """A table on this machine."""

    events: Events
    engine: LocalEngine

    @property
    def source(self) -> str:
        """The path, or words for a table in memory."""
        return self.events.source

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table."""
        return self.events.names

    @contextmanager
    def grouped(
        self, columns: Columns, rule: ElementRule, items: ItemList | None, policy: RowPolicy
    ) -> Iterator["LocalGroups"]:
        """The events by group on disk, for as long as the context lasts."""
        with Spill(pa.string() if items is None else pa.int64(), part_bytes=self.engine.part_bytes) as spill:
            self._read(columns, rule, spill, items, policy)
            yield LocalGroups(spill, self.engine.progress)

    def _read(
        self, columns: Columns, rule: ElementRule, spill: Spill, items: ItemList | None, policy: RowPolicy
    ) -> None:
        """Part the events by (user, element) into ``spill``: items by their place in the list, or as they are without.

        A group is known by a 64-bit hash of (user, element). Should two share one, they are bounded as one group, so a
        collision can cost accuracy but never privacy.
        """
        wanted = [columns.user, columns.item, *filter(None, (rule.column, columns.count))]
        names = list(dict.fromkeys(map(self.events.need, wanted)))
        key = lru_cache(_REMEMBERED)(rule.key)  # the same items come batch after batch; a URL is slow to take apart
        row = 0
        self.engine.progress("reading", 0.0)
        for batch, share in self.events.batches(names):
            user, item = strings(batch, columns.user, row), strings(batch, columns.item, row)
            counts = units(batch, columns.count, row)
            keys = mix(hash_strings(user), _element_keys(batch, rule.column or key, item, row))
            if items is None:
                spill.add(keys, item, counts)
            else:
                places = items.places(item)
                known = places >= 0
                if policy.unknown_items == "refuse" and not known.all():
                    raise _unknown(item, row, int(np.argmin(known)))
                spill.add(keys[known], pa.array(places[known], pa.int64()), counts[known])
            row += batch.num_rows
            self.engine.progress("reading", share)
        if row == 0:
            raise TableError(f"{self.source} has no events")


@dataclass(frozen=True)
class LocalGroups:
    """Counts by (group, item) on this machine's disk."""

    spill: Spill
    progress: Progress

    def item_weights(self, naming: Naming) -> Iterator[tuple[pa.Array, Integers]]:
        """The items that groups name and their weights, part by part of the items."""
        self.progress("discovering items", 0.0)
        with Spill(pa.string(), part_bytes=self.spill.part_bytes) as weights:
            for share, part in self.spill.shares():
                words, given = naming.weights(part)
                weights.add(hash_strings(words), words, given)
                self.progress("discovering items", share / 2)
            for share, part in weights.shares():
                sums = part.group_by("item").aggregate([("units", "sum")])
                yield sums.column("item").combine_chunks(), sums.column("units_sum").to_numpy()
                self.progress("discovering items", (1 + share) / 2)

    def add_up(self, measure: Measure, items: ItemList, alone: NDArray[np.bool_], stage: str) -> Integers:
        """The sum of ``measure`` over all groups, one part in memory at a time."""
        total = measure(GroupCounts.none())
        self.progress(stage, 0.0)
        for share, part in self.spill.shares():
            column = part.column("item").combine_chunks()
            places = items.places(column) if pa.types.is_string(column.type) else column.to_numpy()
            keys, counts = part.column("key").to_numpy(), part.column("units").to_numpy()
            known = places >= 0
            single = known & alone[places] if len(alone) else known
            total = total + measure(GroupCounts.of(keys[single], places[single], counts[single]).apart())
            shared = known & ~single
            total = total + measure(GroupCounts.of(keys[shared], places[shared], counts[shared]))
            self.progress(stage, share)
        return total


def _unknown(item: pa.Array, row: int, first: int) -> TableError:
    return at_row(
        row + first + 1,
        f"item {item[first].as_py()!r} is not in the public list of items; list it, or drop such items on purpose "
        "with ignore_unknown_items",
    )


def _element_keys(batch: pa.RecordBatch, rule: str | Callable[[str], Hashable], item: pa.Array, row: int) -> Keys:
    """The hash of each event's element: of a column, or of a function of the item."""
    if isinstance(rule, str):
        return hash_strings(strings(batch, rule, row))
    encoded = item.dictionary_encode()
    elements: list[str] = []
    for place, value in enumerate(encoded.dictionary.to_pylist()):
        try:
            found = rule(value)
        except ElementdpError as error:
            first = int(np.argmax(encoded.indices.to_numpy() == place))
            raise at_row(row + first + 1, str(error)) from error
        elements.append(canonical(found))
    hashed: Keys = hash_strings(pa.array(elements, pa.string()))
    return np.asarray(hashed[encoded.indices.to_numpy()])
