"""The engine of this machine: events are read in batches, parted by group on disk, and added up part by part."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elementdp.errors import at_least
from elementdp.histogram.bad_rows import BadRows, RowPolicy
from elementdp.histogram.element_rule import ElementRule
from elementdp.histogram.engine import Columns, Measure, Progress
from elementdp.histogram.errors import TableError
from elementdp.histogram.events import BATCH_ROWS, Events
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.items import ItemList
from elementdp.histogram.naming import Naming, item_sums
from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import GroupCounts, pair_sums
from elementdp.histogram.rows import ItemTexts, RowReader, measured
from elementdp.histogram.spill import PART_BYTES, Rows, Sequential, Spill
from elementdp.histogram.tables import open_events
from elementdp.histogram.text import Keys

_PROCESSORS = os.cpu_count() or 1

Given = TypeVar("Given")
Made = TypeVar("Made")


def silent(stage: str, share: float) -> None:
    """Tell no one how far the work is."""


@dataclass(frozen=True)
class LocalEngine:
    """One machine: memory holds a few batches, a few parts of the table on disk (``part_bytes`` each) and the items.

    ``form`` is the format of files whose names do not tell it: csv, tsv, jsonl or parquet.
    """

    progress: Progress = silent
    batch_rows: int = BATCH_ROWS
    part_bytes: int = PART_BYTES
    form: str | None = None

    def __post_init__(self) -> None:
        at_least("batch_rows", self.batch_rows, 1)
        at_least("part_bytes", self.part_bytes, 1)

    def open(self, table: object) -> "LocalSource":
        """A file or a table in memory."""
        return LocalSource(open_events(table, self.batch_rows, self.form), self)


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
        self, columns: Columns, rule: ElementRule, items: ItemList | None, policy: RowPolicy, hashing: ItemHash
    ) -> Iterator["LocalGroups"]:
        """The events by group on disk, for as long as the context lasts."""
        texts = ItemTexts()
        packed = Sequential(("u8", "u8", "f8") if columns.value is None else ("u8", "u8", "f8", "i8"))
        try:
            self._read(RowReader(columns, rule, items, BadRows(policy), hashing), texts, packed)
            yield LocalGroups(packed, texts, self.engine, hashing, listed=items is not None)
        finally:
            texts.close()
            packed.close()

    def _read(self, reader: RowReader, texts: ItemTexts, packed: Sequential) -> None:
        """Part the events by group and add up the counts of each (group, item) pair into ``packed``."""
        names = list(map(self.events.need, reader.names))
        numbers = 3 if reader.columns.value is not None else 2 if reader.columns.count is not None else 0
        progress = self.engine.progress
        progress("reading", 0.0)
        first = 0

        def numbered() -> Iterator[tuple[pa.RecordBatch, int, float]]:
            nonlocal first
            for batch, share in self.events.batches(names, reader.bad):
                yield batch, first, share
                first += batch.num_rows

        with Spill(("u8", "u8", *["i8"] * numbers), pair_sums, part_bytes=self.engine.part_bytes) as spill:

            def prepared(given: tuple[pa.RecordBatch, int, float]) -> tuple[Rows, NDArray[np.int64], float]:
                rows = reader.rows(given[0], given[1])
                if reader.items is None:
                    texts.add(rows.hashes, rows.texts)
                return *spill.sorted((rows.keys, rows.items, *rows.counts)), given[2]

            for rows, bounds, share in in_threads(prepared, numbered()):
                spill.write(rows, bounds)
                progress("reading", share)
            if first == 0:
                raise TableError(f"{self.source} has no events")
            reader.bad.tell()
            progress("grouping", 0.0)
            for groups in in_threads(lambda part: GroupCounts.of(*part), spill.parts()):
                values = () if groups.values is None else (groups.values,)
                packed.add(groups.keys, groups.items, groups.counts, *values)
                progress("grouping", min(1.0, packed.rows / max(1, spill.rows)))


@dataclass(frozen=True)
class LocalGroups:
    """Counts by (group, item) on this machine's disk; ``listed``: items are places in a list, not hashes of texts."""

    packed: Sequential
    texts: ItemTexts
    engine: LocalEngine
    hashing: ItemHash
    listed: bool

    def item_weights(self, naming: Naming) -> Iterator[tuple[Keys, Integers]]:
        """The items that groups name and their weights, part by part of the items."""
        with Spill(("u8", "i8"), item_sums, part_bytes=self.engine.part_bytes) as weights:
            for items, given in self._mapped(lambda groups: item_sums(naming.weights(groups)), "discovering items"):
                weights.add(items, given)
            for items, given in map(item_sums, weights.parts()):
                yield items, given

    def item_texts(self, items: Keys) -> list[str]:
        """The texts of items by their hashes."""
        return self.texts.of(items)

    def add_up(self, measure: Measure, items: ItemList, alone: NDArray[np.bool_], stage: str) -> Integers:
        """The sum of ``measure`` over all groups, a few parts in memory at a time."""

        def on_items(groups: GroupCounts) -> Integers:
            hashes = groups.items.view(np.uint64)
            places = groups.items if self.listed else items.places_of_hashes(hashes, self.hashing)
            return measured(groups, measure, places, alone)

        total = measure(GroupCounts.none())
        for part in self._mapped(on_items, stage):
            total = total + part
        return total

    def _mapped(self, function: Callable[[GroupCounts], Made], stage: str) -> Iterator[Made]:
        """A function of each part of whole groups, on all processors."""

        def piece(number: int) -> Made:
            keys, items, counts, *values = self.packed.piece(number)
            every = np.ones(len(keys), dtype=bool)
            return function(GroupCounts.sorted(keys, items.view(np.int64), counts, every, *values))

        self.engine.progress(stage, 0.0)
        for done, result in enumerate(in_threads(piece, range(len(self.packed))), start=1):
            yield result
            self.engine.progress(stage, done / len(self.packed))


def in_threads(function: Callable[[Given], Made], values: Iterable[Given]) -> Iterator[Made]:
    """``function`` of each value, in order, on all processors, with few values in memory at a time.

    NumPy and Arrow let go of the interpreter while they work, so threads are enough.
    """
    with ThreadPoolExecutor(_PROCESSORS) as pool:
        source = iter(values)
        waiting: list[Future[Made]] = [pool.submit(function, value) for value in islice(source, _PROCESSORS + 1)]
        try:
            while waiting:
                yield waiting.pop(0).result()
                waiting += [pool.submit(function, value) for value in islice(source, 1)]
        finally:
            for future in waiting:
                future.cancel()
