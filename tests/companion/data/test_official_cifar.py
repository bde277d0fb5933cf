"""CIFAR-10 from its authors' archive: the same arrays, and no code run on the way."""

import io
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest

from elementdp.companion.data.images import prepare_official_cifar10
from elementdp.companion.data.store import DataError, read_arrays

BATCHES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


def archive(path: Path, contents: list[object]) -> Path:
    with tarfile.open(path, "w:gz") as package:
        for name, content in zip(BATCHES, contents, strict=True):
            data = pickle.dumps(content)
            entry = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            entry.size = len(data)
            package.addfile(entry, io.BytesIO(data))
    return path


def batch(seed: int) -> dict[bytes, object]:
    rng = np.random.default_rng(seed)
    return {b"data": rng.integers(0, 256, (2, 3072), dtype=np.uint8), b"labels": [seed, 9 - seed]}


def test_rows_become_photos_in_order(tmp_path: Path) -> None:
    batches = [batch(seed) for seed in range(6)]
    prepare_official_cifar10(archive(tmp_path / "c.tar.gz", list(batches)), tmp_path / "c.npz")
    arrays = read_arrays(tmp_path / "c.npz")
    photos = next(array for array in arrays.values() if array.shape == (10, 32, 32, 3))
    # The authors store a photo as 1,024 red values, then green, then blue, each row by row.
    assert photos[2, 5, 7].tolist() == [
        int(np.asarray(batches[1][b"data"])[0, c * 1024 + 5 * 32 + 7]) for c in range(3)
    ]


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("code ran",))


def test_an_archive_that_would_run_code_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contents: list[object] = [batch(seed) for seed in range(5)] + [Evil()]
    with pytest.raises(DataError, match="only arrays"):
        prepare_official_cifar10(archive(tmp_path / "c.tar.gz", contents), tmp_path / "c.npz")
    assert "code ran" not in capsys.readouterr().out
    assert not (tmp_path / "c.npz").exists()
