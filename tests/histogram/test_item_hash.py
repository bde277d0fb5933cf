"""Hashes of items under a secret key: against a second implementation, and against texts made up to collide."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.histogram import Budget, private_histogram
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.text import hash_strings, places_among

COLLIDING = ["w0002563[^Mf4< J", "secret-of-ann-01"]
"""Two texts with one hash under a function that everybody knows."""


def by_hand(text: str, key: bytes) -> int:
    """Σ aᵢxᵢ + b in Python's whole numbers, twice, the upper halves side by side."""
    content = text.encode()
    if len(content) > 1024:
        return int.from_bytes(hashlib.blake2b(content, digest_size=8, key=key).digest(), "little")
    random = hashlib.shake_256(key).digest(2 * 258 * 8)
    numbers = [int.from_bytes(random[8 * k : 8 * k + 8], "little") for k in range(2 * 258)]
    words = [int.from_bytes(content[k : k + 4], "little") for k in range(0, len(content), 4)]
    halves = []
    for factors in (numbers[:258], numbers[258:]):
        total = factors[257] + factors[256] * len(content) + sum(a * x for a, x in zip(factors, words, strict=False))
        halves.append(total % 2**64 >> 32)
    return halves[0] << 32 | halves[1]


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=1), seed=st.integers(0, 99)
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_hashes_are_those_computed_by_hand(texts: list[str], seed: int) -> None:
    texts = [*texts, "x" * 1024, "é" * 600]
    hashing = ItemHash.seeded(seed)
    assert hashing.of(pa.array(texts)).tolist() == [by_hand(text, hashing.key) for text in texts]


def test_keys_are_secret_and_differ() -> None:
    first, second = ItemHash.secret(), ItemHash.secret()
    assert first.key != second.key
    assert len(first.key) == 32
    assert ItemHash.seeded(1) == ItemHash.seeded(1) != ItemHash.seeded(2)


def test_a_text_made_up_to_collide_does_not_bring_out_another_persons() -> None:
    """Were items known by a public hash, the last text written under it would be released: what only ann has."""
    assert len(set(hash_strings(pa.array(COLLIDING)).tolist())) == 1
    users = [f"u{k}" for k in range(3000)]
    table = pa.table({"user": [*users, "ann"], "item": [COLLIDING[0]] * 3000 + [COLLIDING[1]]})
    for last in (table, table.slice(3000), table.slice(0, 3000)):
        shown = pa.concat_tables([last, table]) if last.num_rows < 3001 else last
        result = private_histogram(shown, user="user", item="item", element="item", privacy=Budget(1, 1e-6), rho=1.0)
        assert result.histogram["item"].to_pylist() == [COLLIDING[0]]


@pytest.mark.parametrize("few", [0, 1, 7, 5000])
@pytest.mark.parametrize("many", [0, 3, 100_000])
def test_hashes_are_found_in_order_whichever_way_is_taken(few: int, many: int) -> None:
    rng = np.random.default_rng(0)
    known = np.unique(rng.integers(0, 2**64, few, dtype=np.uint64))
    known[-1:] = 2**64 - 1
    asked = np.r_[rng.integers(0, 2**64, many, dtype=np.uint64), known, np.uint64([0, 2**64 - 1])]
    place = {value: k for k, value in enumerate(known.tolist())}
    assert places_among(known, asked).tolist() == [place.get(value, -1) for value in asked.tolist()]
