"""The cells of a batch of events, checked: names that are there, and counts that are counts."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elementdp.histogram.errors import TableError, at_row
from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import COUNT_UNITS
from elementdp.histogram.text import as_text

LARGEST_COUNT = 2.0**31


def strings(batch: pa.RecordBatch, name: str, row: int) -> pa.Array:
    """A column as strings; a missing or empty value is an error that names its row (``row`` rows came before)."""
    values = batch.column(name)
    try:
        values = as_text(values)
    except pa.ArrowException as error:
        raise TableError(f"column {name!r} holds {values.type}, which cannot be read as text ({error})") from error
    missing = pc.fill_null(pc.equal(values, ""), True).to_numpy(zero_copy_only=False)
    if missing.any():
        raise at_row(row + int(np.argmax(missing)) + 1, f"{name!r} is missing")
    return values


def units(batch: pa.RecordBatch, name: str | None, row: int) -> Integers:
    """Counts in units of 2⁻²⁰, rounded down; without a count column each event counts once."""
    if name is None:
        return np.full(batch.num_rows, COUNT_UNITS, dtype=np.int64)
    values = batch.column(name)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type) or pa.types.is_dictionary(values.type):
        counts = np.array([_number(cell) for cell in values.to_pylist()], dtype=float)
    else:
        try:
            counts = pc.fill_null(values.cast(pa.float64(), safe=False), np.nan).to_numpy(zero_copy_only=False)
        except pa.ArrowException as error:
            raise TableError(f"column {name!r} holds {values.type}, not counts") from error
    bad = ~((counts >= 0) & (counts <= LARGEST_COUNT))
    if bad.any():
        first = int(np.argmax(bad))
        kind = f"{name!r} must be a finite count from 0 to 2^31"
        raise at_row(row + first + 1, f"{kind}, got {values[first].as_py()!r}", kind)
    return np.asarray(np.floor(counts * COUNT_UNITS), dtype=np.int64)


def _number(cell: object) -> float:
    try:
        return float(str(cell))
    except ValueError:
        return float("nan")
