"""A table of events as every reader gives it: its columns, and its rows in batches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from elementdp.histogram.bad_rows import BadRows
from elementdp.histogram.errors import TableError

BATCH_ROWS = 1 << 18

Batches = Iterator[tuple[pa.RecordBatch, float]]
"""Batches of the columns asked for, each with the share of the table read so far."""


@dataclass(frozen=True)
class Events:
    """A table of events: its column names, and its rows in batches, to be read once."""

    source: str
    names: tuple[str, ...]
    batches: Callable[[Sequence[str], BadRows], Batches]

    def need(self, column: str) -> str:
        """``column``, if the table has it, and once."""
        return one_column(self.source, self.names, column)


def one_column(source: str, names: Sequence[str], column: str) -> str:
    """``column``, if it is one of ``names``, and once."""
    if (found := names.count(column)) != 1:
        problem = f"no column {column!r}" if not found else f"{found} columns {column!r}"
        raise TableError(f"{source} has {problem}; its columns are {', '.join(map(repr, names))}")
    return column
