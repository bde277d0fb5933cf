"""From a batch of events to rows of numbers: the group's hash, the item's, and how often; bad rows found on the way."""

import threading
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from elementdp.histogram.bad_rows import BadRows
from elementdp.histogram.cells import Counts, Names, numbers
from elementdp.histogram.element_keys import ElementKeys
from elementdp.histogram.element_rule import ElementRule
from elementdp.histogram.engine import Columns, Measure
from elementdp.histogram.errors import at_row
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.items import ItemList
from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import GroupCounts
from elementdp.histogram.spill import temporary_file
from elementdp.histogram.text import Keys, hash_strings, mix, places_among

_REMEMBERED = 1 << 20


@dataclass(frozen=True)
class ReadRows:
    """Rows as numbers: the group's hash, the item's hash (or place in the list), and how often.

    Row k has the item ``texts[codes[k]]``; ``hashes`` are those of ``texts``. Without a column of counts ``counts`` is
    empty, else it has their whole parts and fractions, and the units of the values if there are such.
    """

    keys: Keys
    items: Keys
    counts: tuple[Integers, ...]
    codes: NDArray[np.int64]
    texts: pa.Array
    hashes: Keys


@dataclass
class RowReader:
    """Reads batches by one rule; may be used from several threads.

    A group is known by a 64-bit hash of (user, element). Should two share one, they are bounded as one group, so such a
    collision can cost accuracy but never privacy. Items are known by a hash under a secret key.
    """

    columns: Columns
    rule: ElementRule
    items: ItemList | None
    bad: BadRows
    hashing: ItemHash
    _elements: ElementKeys = field(init=False)

    def __post_init__(self) -> None:
        self._elements = ElementKeys(self.rule)

    @property
    def names(self) -> list[str]:
        """The columns that are read, each once."""
        return columns_read(self.columns, self.rule)

    def rows(self, batch: pa.RecordBatch, first: int = 0) -> ReadRows:
        """The rows of a batch that ``first`` rows came before; bad ones are refused or dropped."""
        user = Names.of(batch, self.columns.user, once=False)
        cells = [Names.of(batch, name) for name in self.columns.items]
        item = Names.joined(cells)
        hashes = self.hashing.of(item.texts)
        bad = {f"{self.columns.user!r} is missing": user.codes < 0}
        bad |= {f"{name!r} is missing": cell.codes < 0 for name, cell in zip(self.columns.items, cells, strict=True)}
        kinds: dict[str, str] = {}
        if self.rule.column is not None:
            column = Names.of(batch, self.rule.column)
            element = column.take(hash_strings(column.texts))
            bad[f"{self.rule.column!r} is missing"] = column.codes < 0
        else:
            by_item, wrong = self._elements.of(item.texts, hashes)
            element = item.take(by_item)
            for code, words in wrong.items():
                bad[words], kinds[words] = item.codes == code, "an item has no element"
        counts = self._counts(batch, bad, kinds)
        good = self._good(bad, kinds, first)
        items = item.take(hashes)
        if self.items is not None:
            places = self.items.places_of_hashes(items, self.hashing)
            self._check_known(good & (places < 0), batch, first)
            good &= places >= 0
            items = places.view(np.uint64)
        keys = mix(user.take(hash_strings(user.texts)), element)
        kept = slice(None) if good.all() else good
        counts = tuple(column[kept] for column in counts)
        return ReadRows(keys[kept], items[kept], counts, item.codes[kept], item.texts, hashes)

    def _counts(
        self, batch: pa.RecordBatch, bad: dict[str, NDArray[np.bool_]], kinds: dict[str, str]
    ) -> tuple[Integers, ...]:
        """What each row counts, and its value, if there are columns for these; cells that are none go to ``bad``."""
        if self.columns.count is not None:
            name, words = self.columns.count, f"{self.columns.count!r} must be a finite count from 0 to 2^31"
            read = Counts.of(batch, name)
            wrong, counts = read.bad, [read.whole, read.fraction]
        elif self.columns.value is not None:
            name, words = self.columns.value.column, f"{self.columns.value.column!r} must be a finite number"
            values = numbers(batch, name)
            wrong, once = ~np.isfinite(values), np.ones(len(values), np.int64)
            counts = [once, np.zeros_like(once), self.columns.value.units(np.where(wrong, 0.0, values))]
        else:
            return ()
        if wrong.any():
            quoted = f"{words}, got {batch.column(name)[int(np.argmax(wrong))].as_py()!r}"
            bad[quoted], kinds[quoted] = wrong, words
        return tuple(counts)

    def _good(self, bad: dict[str, NDArray[np.bool_]], kinds: dict[str, str], first: int) -> NDArray[np.bool_]:
        """Which rows can be counted; others are refused or dropped, as the policy says."""
        any_bad = np.logical_or.reduce(list(bad.values()))
        if any_bad.any():
            place = int(np.argmax(any_bad))
            words = next(words for words, rows in bad.items() if rows[place])
            self.bad.found(first + place + 1, words, kinds.get(words), int(any_bad.sum()))
        return np.asarray(~any_bad)

    def _check_known(self, unknown: NDArray[np.bool_], batch: pa.RecordBatch, first: int) -> None:
        if self.bad.policy.unknown_items == "refuse" and unknown.any():
            place = int(np.argmax(unknown))
            missing = (
                "is not in the public list of items; list it, or drop such items on purpose with ignore_unknown_items"
            )
            cells = [repr(batch.column(name)[place].as_py()) for name in self.columns.items]
            raise at_row(first + place + 1, f"item {', '.join(cells)} {missing}", f"an item {missing}")


def columns_read(columns: Columns, rule: ElementRule) -> list[str]:
    """The columns of a table that a release reads, each once."""
    value = None if columns.value is None else columns.value.column
    return list(dict.fromkeys([columns.user, *columns.items, *filter(None, (rule.column, columns.count, value))]))


def measured(groups: GroupCounts, measure: Measure, places: NDArray[np.int64], alone: NDArray[np.bool_]) -> Integers:
    """``measure`` of whole groups, seen on listed items only: row k is the item at ``places[k]``, or none (−1).

    Where ``alone``, an item is a group of its own.
    """
    known = places >= 0
    single = known & alone[places] if len(alone) else known
    seen = replace(groups, items=places)
    return np.asarray(measure(seen.keep(single).apart()) + measure(seen.keep(known & ~single)))


class ItemTexts:
    """The texts of items by their hashes, on disk; each is written once, or a few times if there are very many."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known = np.empty(0, np.uint64)
        self._file = temporary_file()
        self._writer = pa.ipc.new_stream(self._file, pa.schema([("hash", pa.uint64()), ("text", pa.string())]))

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()

    def add(self, hashes: Keys, texts: pa.Array) -> None:
        """Keep texts for later."""
        with self._lock:
            fresh = np.flatnonzero(places_among(self._known, hashes) < 0)
            if len(fresh):
                self._writer.write_batch(
                    pa.record_batch([pa.array(hashes[fresh]), texts.take(pa.array(fresh))], names=["hash", "text"])
                )
                if len(self._known) < _REMEMBERED:
                    self._known = np.unique(np.r_[self._known, hashes[fresh]])

    def of(self, hashes: Keys) -> list[str]:
        """The texts of some hashes, in their order."""
        wanted = np.sort(hashes)
        found: dict[int, str] = {}
        self._writer.close()
        self._file.seek(0)
        for batch in pa.ipc.open_stream(self._file):
            keys = batch.column("hash").to_numpy()
            some = places_among(wanted, keys) >= 0
            texts = batch.column("text").filter(pa.array(some)).to_pylist()
            found.update(zip(keys[some].tolist(), texts, strict=True))
        return [found[key] for key in hashes.tolist()]
