"""Tiny-ImageNet's layout, made small: labels by frequency, everything else unknown, photos decoded on demand."""

import io
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from elementdp.companion.data import SOURCES, DataError, find
from elementdp.companion.data.tiny_imagenet import UNKNOWN, read


def jpeg(colour):
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), colour).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def tar(path, files):
    with tarfile.open(path, "w") as package:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"tiny-imagenet-200/{name}")
            entry.size = len(content)
            package.addfile(entry, io.BytesIO(content))
    return path


@pytest.fixture
def small(tmp_path):
    files = {"words.txt": b"n1\tcat, house cat\nn2\tlemon\nn3\tship\n"}
    for label, count in (("n1", 2), ("n2", 4), ("n3", 1)):
        for number in range(count):
            files[f"train/{label}/images/{label}_{number}.JPEG"] = jpeg((60 * number, 10, 200))
    files |= {"val/images/val_0.JPEG": jpeg((255, 0, 0)), "val/images/val_1.JPEG": jpeg((0, 255, 0))}
    files["val/val_annotations.txt"] = b"val_0.JPEG\tn3\t0\t0\t9\t9\nval_1.JPEG\tn2\t0\t0\t9\t9\n"
    return tar(tmp_path / "small.tar", files)


def test_the_most_frequent_labels_are_kept_and_the_rest_is_unknown(small):
    data = read(small, frequent=2)
    assert data.names == ("lemon", "cat", UNKNOWN)
    assert sorted(data.train.labels) == [0, 0, 0, 0, 1, 1, 2]
    assert data.validation.labels.tolist() == [2, 0]


def test_photos_are_those_of_the_archive_in_the_order_asked_for(small):
    found = read(small).validation.images(np.array([1, 0, 1]))
    assert found.shape == (3, 64, 64, 3)
    assert found.dtype == np.uint8
    assert np.abs(found[0].mean((0, 1)) - (0, 255, 0)).max() < 5
    assert np.abs(found[1].mean((0, 1)) - (255, 0, 0)).max() < 5
    assert (found[0] == found[2]).all()


def test_another_layout_is_refused_by_name(tmp_path):
    with pytest.raises(DataError, match="Tiny-ImageNet's layout"):
        read(tar(tmp_path / "other.tar", {"train/a.txt": b"x", "words.txt": b"x"}))


def unpacked(small, folder):
    with tarfile.open(small) as package:
        package.extractall(folder, filter="data")
    return folder / "tiny-imagenet-200"


def zipped(directory, path):
    with zipfile.ZipFile(path, "w") as package:
        for file in sorted(directory.rglob("*"), reverse=True):  # any order
            if file.is_file():
                package.writestr(file.relative_to(directory.parent).as_posix(), file.read_bytes())
    return path


def test_the_packing_changes_nothing(small, tmp_path):
    directory = unpacked(small, tmp_path / "out")
    ways = [read(path, frequent=2) for path in (small, directory, zipped(directory, tmp_path / "small.zip"))]
    rows = np.array([3, 0, 6])
    for data in ways[1:]:
        assert data.train.files == ways[0].train.files
        assert data.validation.files == ways[0].validation.files
        assert (data.train.labels == ways[0].train.labels).all()
        assert (data.train.images(rows) == ways[0].train.images(rows)).all()
        assert data.train.digest(rows) == ways[0].train.digest(rows)
    assert ways[0].train.digest(rows) != ways[0].train.digest(rows[::-1])


def test_photos_come_in_the_order_of_the_published_lists(small, tmp_path):
    directory = unpacked(small, tmp_path)
    (directory / "wnids.txt").write_text("n3\nn1\nn2\n")
    (directory / "val/val_annotations.txt").write_text("val_1.JPEG\tn2\t0\t0\t9\t9\nval_0.JPEG\tn3\t0\t0\t9\t9\n")
    data = read(directory)
    assert [file.split("/")[2] for file in data.train.files] == ["n3", "n1", "n1", "n2", "n2", "n2", "n2"]
    assert [file.split("/")[-1] for file in data.validation.files] == ["val_1.JPEG", "val_0.JPEG"]


def test_labels_equally_common_are_kept_in_the_order_of_their_ids(tmp_path):
    files = {f"train/{label}/images/{label}_0.JPEG": b"" for label in ("n9", "n4", "n7")}
    files |= {"words.txt": b"n4\tfour\n", "wnids.txt": b"n9\nn7\nn4\n"}
    files |= {"val/images/val_0.JPEG": b"", "val/val_annotations.txt": b"val_0.JPEG\tn9\n"}
    data = read(tar(tmp_path / "even.tar", files), frequent=2)
    assert data.ids == ("n4", "n7")
    assert data.names == ("four", "n7", UNKNOWN)
    assert data.validation.labels.tolist() == [2]


def test_a_validation_photo_without_a_label_is_refused(small, tmp_path):
    directory = unpacked(small, tmp_path)
    (directory / "val/val_annotations.txt").write_text("val_1.JPEG\tn2\t0\t0\t9\t9\n")
    with pytest.raises(DataError, match=r"no label for 1 photos \(val_0\.JPEG\)"):
        read(directory)


def test_photos_that_cannot_be_used_are_named(small, tmp_path):
    directory = unpacked(small, tmp_path)
    data = read(directory)
    Image.new("RGB", (32, 64)).save(directory / "val/images/val_1.JPEG")
    with pytest.raises(DataError, match=r"val_1\.JPEG has another size"):
        data.validation.images(np.array([0, 1]))
    (directory / "val/images/val_1.JPEG").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"val_1\.JPEG is no photo"):
        data.validation.images(np.array([1]))


def test_the_order_of_the_101_class_cut_is_that_of_its_tar_file():
    """Cached features and recorded runs go by this order."""
    path = find(SOURCES["tiny-imagenet-101"].file)
    if path is None:
        pytest.skip("tiny-imagenet-101 is in no data directory")
    with tarfile.open(path) as package:
        names = [member.name for member in package if member.name.endswith(".JPEG")]
    data = read(path)
    assert (*data.train.files, *data.validation.files) == tuple(names)
    assert len(data.names) == 101
