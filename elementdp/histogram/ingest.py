"""From a table of events to (group, item, units) rows on disk, with every cell checked on the way."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elementdp.errors import ElementdpError
from elementdp.histogram.element_rule import ElementRule, canonical
from elementdp.histogram.errors import TableError, at_row
from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import COUNT_UNITS
from elementdp.histogram.spill import Keys, Spill, hash_strings, mix
from elementdp.histogram.tables import Events, as_text

LARGEST_COUNT = 2.0**31
_REMEMBERED = 1 << 17

Progress = Callable[[str, float], None]
"""Called with the name of the stage and the share of it done."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns that hold the user, the item and (optionally) how often."""

    user: str
    item: str
    count: str | None = None


class Codes:
    """Items and their places in a list."""

    def __init__(self, items: Sequence[str]) -> None:
        self.items = list(items)
        self._index = pd.Index(self.items, dtype=object)

    def of(self, values: pa.Array) -> NDArray[np.int64]:
        """The place of each value, −1 where it is not in the list."""
        encoded = values.dictionary_encode()
        places = self._index.get_indexer(encoded.dictionary.to_numpy(zero_copy_only=False))
        return np.asarray(places[encoded.indices.to_numpy()], dtype=np.int64)


def ingest(
    events: Events,
    columns: Columns,
    rule: ElementRule,
    spill: Spill,
    codes: Codes | None,
    *,
    ignore_unknown_items: bool,
    progress: Progress,
) -> None:
    """Part the events by (user, element) into ``spill``: items by their place in ``codes``, or as they are without.

    A group is known by a 64-bit hash of (user, element). Should two share one, they are bounded as one group, so a
    collision can cost accuracy but never privacy.
    """
    wanted = [columns.user, columns.item, *filter(None, (rule.column, columns.count))]
    names = list(dict.fromkeys(map(events.need, wanted)))
    key = lru_cache(_REMEMBERED)(rule.key)  # the same items come batch after batch, and a URL takes long to take apart
    row = 0
    progress("reading", 0.0)
    for batch, share in events.batches(names):
        user = _strings(batch, columns.user, row)
        item = _strings(batch, columns.item, row)
        units = _units(batch, columns.count, row)
        element = _element_keys(batch, rule.column or key, item, row)
        keys = mix(hash_strings(user), element)
        row += batch.num_rows
        if codes is None:
            spill.add(keys, item, units)
        else:
            places = codes.of(item)
            known = places >= 0
            if not known.all():
                if not ignore_unknown_items:
                    first = int(np.argmin(known))
                    value = item[first].as_py()
                    raise at_row(
                        row - batch.num_rows + first + 1,
                        f"item {value!r} is not in the public domain; list it, or drop such items on purpose "
                        "with ignore_unknown_items",
                    )
                keys, places, units = keys[known], places[known], units[known]
            spill.add(keys, pa.array(places, pa.int64()), units)
        progress("reading", share)
    if row == 0:
        raise TableError(f"{events.source} has no events")


def _strings(batch: pa.RecordBatch, name: str, row: int) -> pa.Array:
    """A column as strings; a missing or empty value is an error."""
    values = batch.column(name)
    try:
        values = as_text(values)
    except pa.ArrowException as error:
        raise TableError(f"column {name!r} holds {values.type}, which cannot be read as text ({error})") from error
    missing = pc.fill_null(pc.equal(values, ""), True).to_numpy(zero_copy_only=False)
    if missing.any():
        raise at_row(row + int(np.argmax(missing)) + 1, f"{name!r} is missing")
    return values


def _units(batch: pa.RecordBatch, name: str | None, row: int) -> Integers:
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
        raise at_row(row + first + 1, f"{name!r} must be a finite count from 0 to 2^31, got {values[first].as_py()!r}")
    return np.asarray(np.floor(counts * COUNT_UNITS), dtype=np.int64)


def _number(cell: object) -> float:
    try:
        return float(str(cell))
    except ValueError:
        return float("nan")


def _element_keys(batch: pa.RecordBatch, rule: str | Callable[[str], Hashable], item: pa.Array, row: int) -> Keys:
    """The hash of each event's element: of a column, or of a function of the item."""
    if isinstance(rule, str):
        return hash_strings(_strings(batch, rule, row))
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
