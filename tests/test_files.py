"""Files are whole or not there."""

import os
from pathlib import Path

import pytest

from elementdp.errors import ArgumentError
from elementdp.files import require_writable, sha256_bytes, sha256_file, write_atomic


def test_write_replaces_and_hashes_agree(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    write_atomic(path, "one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert sha256_file(path) == sha256_bytes(b"two")
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    write_atomic(path, "old")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_new_file_has_the_ordinary_mode_a_secret_its_own_and_a_link_stays_a_link(tmp_path: Path) -> None:
    ordinary, ours, link = tmp_path / "ordinary", tmp_path / "ours", tmp_path / "link"
    ordinary.write_text("x")
    write_atomic(ours, "x")
    assert ours.stat().st_mode == ordinary.stat().st_mode
    write_atomic(tmp_path / "key", "x", secret=True)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    link.symlink_to(ours)
    write_atomic(link, "y")
    assert link.is_symlink()
    assert ours.read_text() == "y"


def test_what_cannot_be_written_is_known_before_the_work(tmp_path: Path) -> None:
    assert require_writable("output", tmp_path / "a.csv") == tmp_path / "a.csv"
    assert not list(tmp_path.iterdir())
    with pytest.raises(ArgumentError, match=r"output .*directory"):
        require_writable("output", tmp_path)
    with pytest.raises(ArgumentError, match="No such file"):
        require_writable("output", tmp_path / "absent" / "a.csv")


@pytest.mark.skipif(not Path("/dev/full").exists() or os.name != "posix", reason="needs a disk that is full")
def test_a_full_disk_is_said_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", lambda path, data: opened(Path("/dev/full"), data))
    with pytest.raises(ArgumentError, match="No space left"):
        require_writable("output", tmp_path / "a.csv")
