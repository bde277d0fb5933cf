"""The engine of this machine: events are read in batches, parted by group on disk, and added up part by part."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elementdp.errors import at_least
from elementdp.histogram.element_rule import ElementRule
from elementdp.histogram.engine import Columns, Measure, Progress, RowPolicy
from elementdp.histogram.errors import TableError
from elementdp.histogram.items import ItemList
from elementdp.histogram.naming import Naming
from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import GroupCounts
from elementdp.histogram.reading import RowReader, measured
from elementdp.histogram.spill import PART_BYTES, Spill
from elementdp.histogram.tables import BATCH_ROWS, Events, open_events
from elementdp.histogram.text import hash_strings


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
        reader = RowReader(columns, rule, items, policy)
        with Spill(reader.item_type, part_bytes=self.engine.part_bytes) as spill:
            self._read(reader, spill)
            yield LocalGroups(spill, self.engine.progress)

    def _read(self, reader: RowReader, spill: Spill) -> None:
        """Part the events by (user, element) into ``spill``."""
        names = list(map(self.events.need, reader.names))
        row = 0
        self.engine.progress("reading", 0.0)
        for batch, share in self.events.batches(names):
            spill.add(*reader.rows(batch, row))
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
            total = total + measured(part, measure, items, alone)
            self.progress(stage, share)
        return total
