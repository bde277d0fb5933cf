"""Rows on disk: every part whole, none larger than it must be, and no file left with a name."""

import errno
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from elementdp.errors import ElementdpError
from elementdp.histogram.projection import pair_sums
from elementdp.histogram.spill import Sequential, Spill, temporary_file
from elementdp.histogram.text import hash_strings, mix


def fill(spill: Spill, rows: int, distinct: int) -> None:
    items = np.arange(rows, dtype=np.uint64) % np.uint64(distinct)
    keys = hash_strings(pa.array(items.astype(str).tolist()))
    for start in range(0, rows, 1000):
        part = slice(start, start + 1000)
        spill.add(keys[part], items[part])


@pytest.mark.parametrize("part_bytes", [1 << 9, 1 << 25])
def test_parts_hold_all_rows_of_their_keys_and_can_be_read_twice(part_bytes: int) -> None:
    with Spill(("u8", "u8"), pair_sums, part_bytes=part_bytes) as spill:
        fill(spill, 5000, 1000)
        assert spill.rows == 5000
        for _ in range(2):
            parts = [pair_sums(part) for part in spill.parts()]
            keys = [set(part[0].tolist()) for part in parts]
            assert sum(map(len, keys)) == len(set().union(*keys)) == 1000
            totals = {item: whole for part in parts for item, whole in zip(*map(list, part[1:3]), strict=True)}
            assert set(totals.values()) == {5}
        assert (len(parts) > 4) == (part_bytes < 1 << 20)


def test_a_key_that_fills_a_part_is_added_up_on_the_way() -> None:
    with Spill(("u8", "u8"), pair_sums, part_bytes=1 << 10) as spill:
        for _ in range(50):
            spill.add(np.full(1000, 7, np.uint64), np.arange(1000, dtype=np.uint64) % np.uint64(3))
        (part,) = spill.parts()
    assert len(part[0]) == 50 * 3
    assert pair_sums(part)[2].sum() == 50_000


def test_pieces_come_back_as_they_were_written() -> None:
    pieces = Sequential(("u8", "f8"))
    for size in (3, 0, 5):
        pieces.add(np.arange(size, dtype=np.uint64), np.linspace(0, 1, size))
    assert [len(pieces.piece(number)[0]) for number in range(len(pieces))] == [3, 0, 5]
    assert pieces.piece(2)[1].tolist() == np.linspace(0, 1, 5).tolist()
    pieces.close()


def test_nothing_is_left_in_the_folder_of_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Spill(("u8", "u8"), pair_sums, part_bytes=1 << 10) as spill:
        fill(spill, 2000, 100)
        assert list(tmp_path.iterdir()) == []
        assert len(next(spill.parts())[0])
        assert list(tmp_path.iterdir()) == []


def test_a_folder_for_temporary_files_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/no/such/folder")
    with pytest.raises(ElementdpError, match="TMPDIR is '/no/such/folder', which is not a folder"):
        Spill(("u8", "u8"), pair_sums)


def test_temporary_files_go_to_the_folder_named_and_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tempfile takes another folder if it cannot write to this one, such as a full disk."""

    def refuse(*arguments: object, **options: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", "/another/folder")
    with temporary_file() as stream:
        assert os.fstat(stream.fileno()).st_dev == tmp_path.stat().st_dev
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OSError, match="No space left"):
        temporary_file()


def test_few_files_are_open_at_once() -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 128), hard))
    try:
        with Spill(("u8", "u8"), pair_sums, part_bytes=1 << 9) as spill:
            fill(spill, 5000, 1000)
            assert sum(len(part[0]) for part in spill.parts()) == 5000
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_keys_depend_on_both_halves() -> None:
    first = hash_strings(pa.array(["a", "a", "b", "b"]))
    second = hash_strings(pa.array(["x", "y", "x", "y"]))
    assert first[0] == first[1]
    assert len(set(mix(first, second).tolist())) == 4


def murmur(data: bytes) -> int:
    """MurmurHash64A by Austin Appleby, with seed 0, straight from its definition."""
    m, mask = 0xC6A4A7935BD1E995, 2**64 - 1
    h = (len(data) * m) & mask
    whole = len(data) // 8 * 8
    for start in range(0, whole, 8):
        k = int.from_bytes(data[start : start + 8], "little") * m & mask
        k = (k ^ k >> 47) * m & mask
        h = (h ^ k) * m & mask
    if data[whole:]:
        k = int.from_bytes(data[whole:], "little") * m & mask  # mixed like a whole word, unlike the original's tail
        k = (k ^ k >> 47) * m & mask
        h = (h ^ k) * m & mask
    h = (h ^ h >> 47) * m & mask
    return h ^ h >> 47


@pytest.mark.parametrize("texts", [["", "a", "abcdefgh", "abcdefghi", "é" * 9, "x" * 1024], ["only one"], []])
def test_hashes_are_those_of_the_definition_whatever_the_neighbours(texts: list[str]) -> None:
    array = pa.array(["before", *texts, "after"], pa.string()).slice(1, len(texts))
    assert hash_strings(array).tolist() == [murmur(text.encode()) for text in texts]


def test_long_texts_have_hashes_too() -> None:
    long = ["y" * 5000, "y" * 5001, "z" * 5000]
    assert len(set(hash_strings(pa.array([*long, "y"])).tolist())) == 4
