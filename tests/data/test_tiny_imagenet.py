"""Tiny-ImageNet's layout, made small: labels by frequency, everything else unknown, photos decoded on demand."""

import io
import tarfile

import numpy as np
import pytest
from PIL import Image

from elementdp.data import DataError
from elementdp.data.tiny_imagenet import UNKNOWN, read


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
