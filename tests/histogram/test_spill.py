"""Rows on disk: every part whole, none larger than it must be, and no file left with a name."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from elementdp.histogram.spill import Spill
from elementdp.histogram.text import hash_strings, mix


def fill(spill: Spill, rows: int, distinct: int) -> np.ndarray:
    names = pa.array([str(k % distinct) for k in range(rows)])
    keys = hash_strings(names)
    for start in range(0, rows, 1000):
        part = slice(start, start + 1000)
        spill.add(keys[part], names[part], np.ones(len(keys[part]), dtype=np.int64))
    return keys


@pytest.mark.parametrize("part_bytes", [1 << 13, 1 << 25])
def test_parts_hold_all_rows_of_their_keys_and_can_be_read_twice(part_bytes: int) -> None:
    with Spill(pa.string(), part_bytes=part_bytes) as spill:
        fill(spill, 5000, 1000)
        for _ in range(2):
            parts = list(spill.parts())
            keys = [set(part.column("key").to_pylist()) for part in parts]
            assert sum(map(len, keys)) == len(set().union(*keys)) == 1000
            totals = {row["item"]: 0 for part in parts for row in part.to_pylist()}
            for part in parts:
                for row in part.to_pylist():
                    totals[row["item"]] += row["units"]
            assert set(totals.values()) == {5}
        assert (len(parts) > 4) == (part_bytes < 1 << 20)
        assert [share for share, _ in spill.shares()][-1] <= 1.0


def test_nothing_is_left_in_the_folder_of_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Spill(pa.string(), part_bytes=1 << 10) as spill:
        fill(spill, 2000, 100)
        assert list(tmp_path.iterdir()) == []
        assert next(spill.parts()).num_rows
        assert list(tmp_path.iterdir()) == []


def test_keys_depend_on_both_halves() -> None:
    first = hash_strings(pa.array(["a", "a", "b", "b"]))
    second = hash_strings(pa.array(["x", "y", "x", "y"]))
    assert first[0] == first[1]
    assert len(set(mix(first, second).tolist())) == 4
