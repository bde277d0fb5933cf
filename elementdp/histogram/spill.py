"""Rows parted by key on disk, so that a group-by needs memory for one part and not for the table.

The files have no name (they are unlinked as they are made), so the operating system removes them whatever happens.
"""

import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from elementdp.histogram.text import Keys

_BITS = (8, 4, 4, 4)
"""Bits of the key that choose a part, level by level. What is larger than a part after all is one group's own."""

PART_BYTES = 1 << 23


class Spill:
    """Rows (key, item, units) by their key; a part holds all the rows of its keys."""

    def __init__(self, item_type: pa.DataType, *, part_bytes: int = PART_BYTES, level: int = 0) -> None:
        self.schema = pa.schema([("key", pa.uint64()), ("item", item_type), ("units", pa.int64())])
        self.part_bytes, self.level = part_bytes, level
        self.rows = 0
        self._files: dict[int, IO[bytes]] = {}
        self._writers: dict[int, Any] = {}

    def __enter__(self) -> "Spill":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def add(self, keys: Keys, items: pa.Array, units: NDArray[np.int64]) -> None:
        """Append rows, each to the part of its key."""
        fanout = 1 << _BITS[self.level]
        shift = np.uint64(64 - sum(_BITS[: self.level + 1]))
        part = ((keys >> shift) & np.uint64(fanout - 1)).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        columns = [pa.array(keys[order]), items.take(pa.array(order)), pa.array(units[order])]
        batch = pa.record_batch(columns, schema=self.schema)
        bounds = np.searchsorted(part[order], np.arange(fanout + 1))
        for index in np.flatnonzero(np.diff(bounds)).tolist():
            self._append(index, batch.slice(bounds[index], bounds[index + 1] - bounds[index]))
        self.rows += len(keys)

    def _append(self, index: int, batch: pa.RecordBatch) -> None:
        if index not in self._writers:
            self._files[index] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
            self._writers[index] = pa.ipc.new_stream(self._files[index], self.schema)
        self._writers[index].write_batch(batch)

    def parts(self) -> Iterator[pa.Table]:
        """Every part in turn, as one table each; may be called again, but nothing may be added after."""
        while self._writers:
            self._writers.popitem()[1].close()
        held: list[pa.Table] = []  # small parts, handed over together
        room = self.part_bytes
        for _, file in sorted(self._files.items()):
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            stream = pa.ipc.open_stream(file)
            if size <= self.part_bytes or self.level == len(_BITS) - 1:
                if size > room and held:
                    yield pa.concat_tables(held)
                    held, room = [], self.part_bytes
                held.append(stream.read_all())
                room -= size
            else:
                with Spill(self.schema.field("item").type, part_bytes=self.part_bytes, level=self.level + 1) as finer:
                    for table in _runs(stream, self.part_bytes):
                        finer.add_table(_added_up(table))
                    yield from finer.parts()
        if held:
            yield pa.concat_tables(held)

    def shares(self) -> Iterator[tuple[float, pa.Table]]:
        """The parts, each with the share of all rows handed out by then."""
        done = 0
        for part in self.parts():
            done += part.num_rows
            yield min(1.0, done / self.rows), part

    def add_table(self, table: pa.Table) -> None:
        """Append the rows of a table of the same columns."""
        columns = [table.column(name).combine_chunks() for name in ("key", "item", "units")]
        self.add(columns[0].to_numpy(), columns[1], columns[2].to_numpy())


def _runs(stream: Any, most_bytes: int) -> Iterator[pa.Table]:
    """The batches of a stream, put together up to a size."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in stream:
        held.append(batch)
        size += batch.nbytes
        if size >= most_bytes:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _added_up(table: pa.Table) -> pa.Table:
    """The rows of the same (key, item) as one, so that a busy group does not fill a part with repeats."""
    sums = table.group_by(["key", "item"]).aggregate([("units", "sum")])
    return sums.rename_columns({"units_sum": "units"}).select(["key", "item", "units"])
