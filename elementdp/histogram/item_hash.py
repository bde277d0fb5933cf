"""Items as 64-bit numbers under a secret key, so that nobody can make up two texts that are taken for one.

Rows are sorted and added up by hashes of their items. Whoever knows the hash function can make up an item that shares a
hash with another person's, and then that person's item decides which of the two texts is released. So each release
draws a key, and keeps it.

**The bound.** A text of at most 1,024 bytes is a vector x of 32-bit words, its length among them. The hash is twice
(Σ aᵢxᵢ + b mod 2⁶⁴) ≫ 32 with independent uniform 64-bit aᵢ and b, which is strongly universal (Thorup, *High speed
hashing for integers and strings*, 2015): two different texts share it with probability 2⁻⁶⁴ over the key, whoever chose
them. Longer texts have a keyed BLAKE2b. The key is expanded by SHAKE-256, so all of this is up to telling its output
from random bits. In a table with N items, m of them in the group that a neighbour changes, a collision with one of
these m has probability at most 2mN/2⁶⁴; only then can the promise fail. For m = 1,000 and N = 10⁷ that is 10⁻⁹.
"""

import hashlib
import secrets
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elementdp.histogram.text import LONGEST, Keys, hash_each, text_bytes

_WORDS = LONGEST // 4
_HIGH = np.uint64(32)


@dataclass(frozen=True)
class ItemHash:
    """The hash of items under one key of 32 bytes."""

    key: bytes

    @classmethod
    def secret(cls) -> "ItemHash":
        """A key from the operating system: what a release uses."""
        return cls(secrets.token_bytes(32))

    @classmethod
    def seeded(cls, seed: int) -> "ItemHash":
        """A key that repeats, for tests: whoever knows the seed can make up collisions."""
        return cls(hashlib.sha256(f"item hash {seed}".encode()).digest())

    @cached_property
    def _coefficients(self) -> NDArray[np.uint64]:
        """For each of the two halves: a factor a word, one for the length, and a constant."""
        random = hashlib.shake_256(self.key).digest(2 * (_WORDS + 2) * 8)
        return np.frombuffer(random, "<u8").reshape(2, _WORDS + 2)

    def of(self, values: pa.Array) -> Keys:
        """The hash of each of some strings, none of them missing."""
        return hash_each(values, self._of_short, self.key)

    def _of_short(self, texts: pa.Array, lengths: NDArray[np.int64]) -> Keys:
        if not len(texts):
            return np.empty(0, np.uint64)
        starts, data = text_bytes(texts, padding=4)
        words = np.ndarray((len(data) - 3,), "<u4", data, strides=(1,))  # the four bytes from each byte on
        first, second = self._coefficients
        with np.errstate(over="ignore"):
            one = first[-1] + first[-2] * lengths.astype(np.uint64)
            two = second[-1] + second[-2] * lengths.astype(np.uint64)
            rows = np.arange(len(texts))
            for place in range(-(-int(lengths.max()) // 4)):
                rows = rows[lengths[rows] > 4 * place]
                left = np.minimum(lengths[rows] - 4 * place, 4).astype(np.uint64)
                keep = np.uint64(0xFFFFFFFF) >> (_HIGH - np.uint64(8) * left)
                word = words[starts[rows] + 4 * place].astype(np.uint64) & keep
                one[rows] += first[place] * word
                two[rows] += second[place] * word
        return np.asarray((one >> _HIGH) << _HIGH | two >> _HIGH)
