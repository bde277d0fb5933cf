"""Real photos where they can be had: Tiny-ImageNet or one's own for Section 4.3, CIFAR-10 for Section 4.4."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from elementdp.companion.data import SOURCES, STAND_IN, digest_arrays, directories, file_of, find, read_arrays
from elementdp.companion.data import tiny_imagenet as tiny
from elementdp.companion.data.features import read_tagged
from elementdp.companion.experiments.images.photo_set import Extraction, PhotoSet, prefix, real_or, reduced
from elementdp.companion.experiments.images.stand_ins import CIFAR_NAMES, cifar_stand_in, photos_stand_in, tiles
from elementdp.errors import ArgumentError, one_of

PHOTOS_SIDE = 128
"""Photos of 64 × 64 pixels are upsampled to this before they go through the backbone."""

CIFAR_SIDE = 96
"""Photos of 32 × 32 pixels are upsampled to this."""

PHOTO_SOURCES = ("tiny-imagenet-101", "tiny-imagenet")
READY_MADE = ("features.npy", "tags.txt")
"""The two files of a directory with features of one's own."""


def load_photos(
    source: str = "tiny-imagenet-101",
    photos: int = 20_480,
    tests: int = 5_600,
    dimension: int = 256,
    backbone: str = "mobilenet-v2",
    *,
    compute: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> PhotoSet:
    """Photos as feature rows of length one, from a source by name or from a path of your own.

    By name (:data:`PHOTO_SOURCES`), data that cannot be had and features that are not in the cache (unless ``compute``)
    mean the stand-in, and it says so. A path is used or refused, never replaced: a directory with
    :data:`READY_MADE` features, or photos in Tiny-ImageNet's layout (a directory, ``.zip`` or ``.tar``).
    """
    size = Extraction(photos, tests, dimension, backbone, compute, report)

    def invented(reason: str) -> PhotoSet:
        return photos_stand_in(min(photos, 4_000), min(tests, 1_000), reason=reason)

    if source == STAND_IN:
        return invented("asked for")
    if source in PHOTO_SOURCES:
        return real_or(lambda: _photos(*_located(source), size), invented)
    path = Path(source).expanduser()
    if not path.exists():
        raise ArgumentError("source", source, f"one of {', '.join((*PHOTO_SOURCES, STAND_IN))}, or a path that exists")
    return _ready_made(path, size) if (path / READY_MADE[0]).is_file() else _photos(path, {}, size)


def load_cifar(
    source: str = "cifar10",
    photos: int = 20_480,
    tests: int = 10_000,
    dimension: int = 256,
    backbone: str = "mobilenet-v2",
    *,
    compute: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> PhotoSet:
    """CIFAR-10 as bytes, with features that make elements.

    Unless ``compute``, features not yet in the cache mean the stand-in, and it says so.
    """
    one_of("source", source, ["cifar10", STAND_IN])
    size = Extraction(photos, tests, dimension, backbone, compute, report)

    def invented(reason: str) -> PhotoSet:
        return cifar_stand_in(min(photos, 2_000), min(tests, 500), reason=reason)

    return invented("asked for") if source == STAND_IN else real_or(lambda: _cifar(size), invented)


def _cifar(size: Extraction) -> PhotoSet:
    arrays = read_arrays(file_of("cifar10"))
    everything = np.asarray(arrays["train_images"], dtype=np.uint8)
    rows = prefix(size.photos, len(everything))
    return PhotoSet(
        inputs=everything[rows],
        labels=np.asarray(arrays["train_labels"], dtype=np.int64)[rows],
        test_inputs=np.asarray(arrays["test_images"], dtype=np.uint8)[: size.tests],
        test_labels=np.asarray(arrays["test_labels"], dtype=np.int64)[: size.tests],
        looks=size(lambda chosen: everything[chosen], rows, CIFAR_SIDE),
        pictures=lambda chosen: everything[rows[chosen]],
        names=CIFAR_NAMES,
        data={"cifar10": SOURCES["cifar10"].sha256, **size.data},
    )


def _located(source: str) -> tuple[Path, dict[str, str]]:
    """Where a source is, with its SHA-256 if its content is known; the whole set may also lie there unpacked."""
    names = ("tiny-imagenet-200.tar", "tiny-imagenet-200") if source == "tiny-imagenet" else ()
    if find(SOURCES[source].file) is None:
        for path in (folder / name for folder in directories() for name in names):
            if path.exists():
                return path, {}
    return file_of(source), {source: SOURCES[source].sha256}


def _photos(path: Path, known: dict[str, str], size: Extraction) -> PhotoSet:
    found = tiny.read(path)
    rows, test_rows = prefix(size.photos, len(found.train)), prefix(size.tests, len(found.validation))
    inputs = size(found.train.images, rows, PHOTOS_SIDE)
    test_inputs = size(found.validation.images, test_rows, PHOTOS_SIDE)
    if not known:
        both = found.train.digest(rows) + found.validation.digest(test_rows)
        known = {path.resolve().name: hashlib.sha256(both.encode()).hexdigest()}
    return PhotoSet(
        inputs=inputs,
        labels=found.train.labels[rows],
        test_inputs=test_inputs,
        test_labels=found.validation.labels[test_rows],
        looks=inputs,
        pictures=lambda chosen: found.train.images(rows[chosen]),
        names=found.names,
        data={**known, **size.data},
    )


def _ready_made(path: Path, size: Extraction) -> PhotoSet:
    """Features without pictures, as YFCC100M's: pool and test photos from the two ends of a fixed random order.

    At most a fifth of the photos are test photos, so that a small set still has a pool.
    """
    found = read_tagged(path / READY_MADE[0], path / READY_MADE[1])
    order = prefix(len(found.labels), len(found.labels))
    tests = min(size.tests, max(len(order) // 5, 1))
    rows, test_rows = order[: min(size.photos, len(order) - tests)], order[::-1][:tests]
    if not len(rows):
        raise ArgumentError("source", str(path), "a directory with the features of at least two photos")
    raw, test_raw = found.rows(rows), found.rows(test_rows)
    labels, test_labels = found.labels[rows], found.labels[test_rows]
    inputs = reduced(raw, size.dimension)
    sha = digest_arrays({"inputs": raw, "labels": labels, "test inputs": test_raw, "test labels": test_labels})
    return PhotoSet(
        inputs=inputs,
        labels=labels,
        test_inputs=reduced(test_raw, size.dimension),
        test_labels=test_labels,
        looks=inputs,
        pictures=tiles(inputs),
        names=found.names,
        data={f"{path.resolve().name} (features without pictures)": sha},
    )
