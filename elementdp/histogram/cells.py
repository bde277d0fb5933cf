"""The cells of a batch of events: names as codes of a small dictionary, counts as whole numbers, and which are bad."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elementdp.histogram.errors import TableError
from elementdp.histogram.item_columns import joined_texts
from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import FRACTION_UNITS
from elementdp.histogram.text import as_text

LARGEST_COUNT = 2.0**31
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"


@dataclass(frozen=True)
class Names:
    """A column of names: row k has ``texts[codes[k]]``; −1 where the name is missing (null, empty, NaN)."""

    texts: pa.Array
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, batch: pa.RecordBatch, name: str, *, once: bool = True) -> "Names":
        """The column ``name`` of a batch as text; a column that is no text and no numbers is refused.

        Unless each text has to be there ``once``, a column of strings is taken as it is: a dictionary of many different
        ones costs more than it saves.
        """
        values = batch.column(name)
        try:
            if pa.types.is_string(values.type) and not once:
                texts, codes = values, np.arange(len(values))
            else:
                encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
                texts = as_text(encoded.dictionary)
                codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        except pa.ArrowException as error:
            words = f"column {name!r} holds {values.type}, which cannot be read as text"
            raise TableError(f"{words} ({error})", words) from error
        empty = pc.fill_null(pc.equal(texts, ""), True).to_numpy(zero_copy_only=False)
        if empty.any():
            places = np.where(empty, -1, np.cumsum(~empty) - 1)
            texts, codes = texts.filter(pa.array(~empty)), np.where(codes < 0, -1, places[codes])
        return cls(texts, codes)

    @classmethod
    def joined(cls, columns: Sequence["Names"]) -> "Names":
        """Several columns as one, by the texts of :mod:`item_columns`; missing where one of them is."""
        if len(columns) == 1:
            return columns[0]
        good = np.flatnonzero(np.logical_and.reduce([column.codes >= 0 for column in columns]))
        places, first = np.zeros(len(good), np.int64), np.empty(0, np.int64)
        for column in columns:  # numbered anew each time, so that the product stays small
            pairs = places * len(column.texts) + column.codes[good]
            _, first, places = np.unique(pairs, return_index=True, return_inverse=True)
        codes = np.full(len(columns[0].codes), -1)
        codes[good] = places
        return cls(joined_texts([one.texts.take(pa.array(one.codes[good[first]])) for one in columns]), codes)

    def take(self, by_text: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """For each row the number of its text; anything where there is none."""
        return by_text[self.codes] if len(by_text) else np.zeros(len(self.codes), np.uint64)


@dataclass(frozen=True)
class Counts:
    """Counts of a batch: whole parts, fractions in units of 2⁻⁴⁰ (rounded down), and which cells are no counts."""

    whole: Integers
    fraction: Integers
    bad: NDArray[np.bool_]

    @classmethod
    def of(cls, batch: pa.RecordBatch, name: str) -> "Counts":
        """The column ``name``: finite numbers from 0 to 2³¹ are counts."""
        counts = numbers(batch, name)
        bad = ~((counts >= 0) & (counts <= LARGEST_COUNT))
        counts = np.where(bad, 0.0, counts)
        whole = np.floor(counts)
        return cls(whole.astype(np.int64), np.floor((counts - whole) * FRACTION_UNITS).astype(np.int64), bad)


def numbers(batch: pa.RecordBatch, name: str) -> NDArray[np.float64]:
    """The column ``name`` as numbers; NaN where a cell is missing or is text that is no number."""
    values = batch.column(name)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        written = pc.fill_null(pc.match_substring_regex(values, _NUMBER), False)
        values = pc.utf8_trim_whitespace(pc.if_else(written, values, pa.scalar(None, values.type)))
    try:
        return np.asarray(pc.fill_null(values.cast(pa.float64(), safe=False), np.nan).to_numpy(zero_copy_only=False))
    except pa.ArrowException as error:
        words = f"column {name!r} holds {values.type}, not numbers"
        raise TableError(words, words) from error
