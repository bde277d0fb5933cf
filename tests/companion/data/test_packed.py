"""One set of files packed three ways is read the same; what is none of the three is refused."""

import io
import tarfile
import zipfile

import pytest

from elementdp.companion.data import DataError
from elementdp.companion.data.packed import open_packed

FILES = {"top/a.txt": b"one", "top/deep/er/b.bin": bytes(range(256)) * 50, "top/deep/empty": b""}


@pytest.fixture
def packed(tmp_path):
    """The three packings of the same files, by kind."""
    with tarfile.open(tmp_path / "x.tar", "w") as package:
        for name, content in FILES.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            package.addfile(entry, io.BytesIO(content))
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as package:
        package.mkdir("top")
        for name, content in FILES.items():
            package.writestr(name, content)
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return {"tar": tmp_path / "x.tar", "zip": tmp_path / "x.zip", "directory": tmp_path / "top"}


@pytest.mark.parametrize("kind", ["tar", "zip", "directory"])
def test_every_packing_has_the_same_files(packed, kind):
    found = open_packed(packed[kind])
    assert sorted(found.names) == sorted(FILES)
    backwards = sorted(FILES, reverse=True)
    assert list(found.read(backwards)) == [FILES[name] for name in backwards]
    assert found.text("top/a.txt") == "one"


def test_the_current_directory_has_a_name_too(packed, monkeypatch):
    monkeypatch.chdir(packed["directory"])
    assert sorted(open_packed(packed["directory"].relative_to(packed["directory"])).names) == sorted(FILES)


def test_a_compressed_tar_file_has_no_places_to_read_from(packed, tmp_path):
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as package:
        package.add(packed["directory"], "top")
    with pytest.raises(DataError, match="uncompressed tar"):
        open_packed(tmp_path / "x.tar.gz")
    (tmp_path / "note.txt").write_text("hello")
    with pytest.raises(DataError, match="no directory, zip file"):
        open_packed(tmp_path / "note.txt")


def test_a_damaged_photo_in_a_zip_file_is_named(packed):
    content = bytearray(packed["zip"].read_bytes())
    with zipfile.ZipFile(packed["zip"]) as package:
        entry = package.getinfo("top/a.txt")
    content[entry.header_offset + 30 + len(entry.filename) + 1] ^= 0x55
    packed["zip"].write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"damaged at top/a\.txt"):
        list(open_packed(packed["zip"]).read(["top/a.txt"]))
