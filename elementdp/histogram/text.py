"""Names as text and text as keys: what counts as the same user, item or element."""

import hashlib
import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

_MULTIPLIER = np.uint64(0xC6A4A7935BD1E995)
LONGEST = 1024
"""Bytes beyond which a text is digested one by one: one very long text must not cost a pass over all others."""


def as_text(values: pa.Array) -> pa.Array:
    """Names as text, whole numbers as integers are written: 7 and 7.0, 0 and −0.0, 10¹⁵ and 1e15 are one name.

    Other numbers are written as Python writes them, whatever read them. NaN is no name but a missing one, as pandas
    has it: all who lack a name would otherwise be one user.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_timestamp(values.type):
        return _instants(values)
    if not pa.types.is_floating(values.type):
        return values.cast(pa.string())
    encoded = values.dictionary_encode()
    numbers, texts = encoded.dictionary.to_pylist(), encoded.dictionary.cast(pa.string()).to_pylist()
    pairs = zip(numbers, texts, strict=True)
    written = [None if math.isnan(number) else whole_number(number) or repr(float(text)) for number, text in pairs]
    return pa.array(written, pa.string()).take(encoded.indices)


def _instants(values: pa.Array) -> pa.Array:
    """Instants in UTC, without zeros at their end: the zone and unit in which a table keeps one change no name."""
    if values.type.tz is not None:
        values = values.cast(pa.timestamp(values.type.unit, "UTC"))
    texts = pc.replace_substring_regex(values.cast(pa.string()), r"(\.[0-9]*?)0+(Z?)$", r"\1\2")
    return pc.replace_substring_regex(texts, r"\.(Z?)$", r"\1")


def whole_number(cell: object) -> str | None:
    """The digits of a float that is a whole number."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else None


def hash_strings(values: pa.Array) -> Keys:
    """A 64-bit hash of each string (MurmurHash64A), the same in every run and on every machine."""
    return hash_each(values, _murmur)


def hash_each(texts: pa.Array, short: Callable[[pa.Array, NDArray[np.int64]], Keys], key: bytes = b"") -> Keys:
    """Hashes of strings, none of them missing: ``short`` of those up to ``LONGEST`` bytes (texts and lengths).

    Longer ones are digested one by one by BLAKE2b under ``key``.
    """
    lengths = pc.binary_length(texts).to_numpy().astype(np.int64)
    few = np.flatnonzero(lengths <= LONGEST)
    hashed = np.empty(len(texts), dtype=np.uint64)
    hashed[few] = short(texts if len(few) == len(texts) else texts.take(pa.array(few)), lengths[few])
    for place in np.flatnonzero(lengths > LONGEST).tolist():
        digest = hashlib.blake2b(texts[place].as_buffer(), digest_size=8, key=key).digest()
        hashed[place] = np.frombuffer(digest, "<u8")[0]
    return hashed


def text_bytes(texts: pa.Array, padding: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where each string without nulls begins, and the bytes of all, with some zeros after the last."""
    _, offsets, content = texts.buffers()
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    starts = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts)].astype(np.int64)
    return starts, np.concatenate([np.frombuffer(content or b"", np.uint8), np.zeros(padding, np.uint8)])


def mix(first: Keys, second: Keys) -> Keys:
    """One well-mixed 64-bit key of two (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        key = first * np.uint64(0x9E3779B97F4A7C15) + second
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(key ^ (key >> np.uint64(31)))


def places_among(known: Keys, values: Keys) -> NDArray[np.int64]:
    """The place of each value among ``known`` hashes (each once, in order), −1 where it is not one of them.

    The upper bits of a hash nearly tell its place, so for many values a table of these is faster than a binary search.
    """
    if not len(known):
        return np.full(len(values), -1)
    bits = len(known).bit_length() + 2
    closed = np.append(known, np.uint64(0xFFFFFFFFFFFFFFFF))
    if len(values) < 1 << bits:
        places = np.searchsorted(known, values)
    else:
        shift = np.uint64(64 - bits)
        begins = np.searchsorted(known, np.arange(1 << bits, dtype=np.uint64) << shift)
        places = begins[(values >> shift).astype(np.int64)]
        for _ in range(int(np.diff(begins, append=len(known)).max())):
            places += closed[places] < values
    return np.where((closed[places] == values) & (places < len(known)), places, -1)


def _murmur(texts: pa.Array, lengths: NDArray[np.int64]) -> Keys:
    """The hash of strings without nulls, eight bytes of all of them at a time."""
    if not len(texts):
        return np.empty(0, np.uint64)
    starts, data = text_bytes(texts, padding=8)
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))  # the eight bytes from each byte on
    shift = np.uint64(47)
    with np.errstate(over="ignore"):
        hashed = lengths.astype(np.uint64) * _MULTIPLIER
        rows = np.arange(len(texts))
        for done in range(0, int(lengths.max()), 8):
            rows = rows[lengths[rows] > done]
            left = np.minimum(lengths[rows] - done, 8).astype(np.uint64)
            keep = np.uint64(0xFFFFFFFFFFFFFFFF) >> (np.uint64(64) - np.uint64(8) * left)
            word = (words[starts[rows] + done] & keep) * _MULTIPLIER
            word = (word ^ (word >> shift)) * _MULTIPLIER
            hashed[rows] = (hashed[rows] ^ word) * _MULTIPLIER
        hashed = (hashed ^ (hashed >> shift)) * _MULTIPLIER
    return np.asarray(hashed ^ (hashed >> shift))
