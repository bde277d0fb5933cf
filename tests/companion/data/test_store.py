"""Data directories, content hashes, and files that are whole or not there."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from elementdp.companion.data import store
from elementdp.companion.data.store import DataError, digest, digest_arrays, directories, find, read_arrays, writable


@pytest.fixture
def folders(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.setenv("ELEMENTDP_DATA", os.pathsep.join([str(first), str(second)]))
    monkeypatch.setattr(store.platformdirs, "user_cache_path", lambda *args, **kwargs: tmp_path / "cache")
    return first, second


def test_directories_are_searched_in_order(folders, tmp_path):
    first, second = folders
    assert directories() == [first, second, tmp_path / "cache"]
    assert find("a") is None
    (second / "a").write_text("2")
    assert find("a") == second / "a"
    (first / "a").write_text("1")
    assert find("a") == first / "a"


def test_without_the_variable_the_cache_folder_is_used(folders, tmp_path, monkeypatch):
    monkeypatch.delenv("ELEMENTDP_DATA")
    assert directories() == [tmp_path / "cache"]
    assert writable() == tmp_path / "cache" and (tmp_path / "cache").is_dir()


def test_a_read_only_directory_is_read_but_never_written(folders):
    first, second = folders
    first.chmod(0o555)
    try:
        assert writable() == second
    finally:
        first.chmod(0o755)


def test_array_digest_depends_on_content_alone(tmp_path):
    arrays = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.array([1, 2], dtype=np.int64)}
    store.write_arrays(tmp_path / "x.npz", arrays)
    np.savez_compressed(tmp_path / "y.npz", **dict(reversed(arrays.items())))
    by_hand = hashlib.sha256()
    by_hand.update(b"a <i8 (2,)\n" + np.array([1, 2], dtype="<i8").tobytes())
    by_hand.update(b"b <f4 (2, 3)\n" + np.arange(6, dtype="<f4").tobytes())
    assert digest(tmp_path / "x.npz") == digest(tmp_path / "y.npz") == digest_arrays(arrays) == by_hand.hexdigest()
    assert digest_arrays({**arrays, "a": np.array([1, 3])}) != digest_arrays(arrays)
    assert digest_arrays({**arrays, "b": arrays["b"].reshape(3, 2)}) != digest_arrays(arrays)


def test_plain_files_have_the_usual_hash(tmp_path):
    (tmp_path / "x.tar").write_bytes(b"abc" * 100_000)
    assert digest(tmp_path / "x.tar") == hashlib.sha256(b"abc" * 100_000).hexdigest()


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_a_cut_off_file_is_refused(tmp_path, kept):
    store.write_arrays(tmp_path / "x.npz", {"a": np.arange(5000)})
    whole = (tmp_path / "x.npz").read_bytes()
    (tmp_path / "x.npz").write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(DataError, match="damaged"):
        read_arrays(tmp_path / "x.npz")


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    store.write_arrays(path, {"a": np.arange(3)})

    def cut_off(stream, **kwargs):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(store.np, "savez", cut_off)
    with pytest.raises(KeyboardInterrupt):
        store.write_arrays(path, {"a": np.arange(4)})
    assert read_arrays(path)["a"].tolist() == [0, 1, 2]
    assert [entry.name for entry in Path(tmp_path).iterdir()] == ["x.npz"]
