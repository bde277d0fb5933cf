"""What Section 4.3 starts from: photos as feature vectors with labels, real or, where data are missing, a stand-in."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elementdp.companion.data import SOURCES, STAND_IN, digest_arrays, directories, file_of, find
from elementdp.companion.data import tiny_imagenet as tiny
from elementdp.companion.data.features import Pictures, read_tagged
from elementdp.companion.experiments.photo_set import Extraction, PhotoSet, prefix, real_or, reduced
from elementdp.errors import ArgumentError, at_least

SIDE = 128
"""Photos of 64 × 64 pixels are upsampled to this before they go through the backbone."""

PHOTO_SOURCES = ("tiny-imagenet-101", "tiny-imagenet")
READY_MADE = ("features.npy", "tags.txt")
"""The two files of a directory with features of one's own."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool(PhotoSet):
    """Photos users are made from and test photos as features; ``pictures`` shows photos of the pool."""

    inputs: NDArray[np.float32]  # rows of length one
    test_inputs: NDArray[np.float32]
    pictures: Pictures

    @property
    def looks(self) -> NDArray[np.float32]:
        """The inputs themselves."""
        return self.inputs


def load_pool(
    source: str = "tiny-imagenet-101",
    photos: int = 20_480,
    tests: int = 5_600,
    dimension: int = 256,
    backbone: str = "mobilenet-v2",
    *,
    compute: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> Pool:
    """Photos with features, from a source by name or from a path of your own.

    By name (:data:`PHOTO_SOURCES`), data that cannot be had and features that are not in the cache (unless ``compute``)
    mean the stand-in, and it says so. A path is used or refused, never replaced: a directory with
    :data:`READY_MADE` features, or photos in Tiny-ImageNet's layout (a directory, ``.zip`` or ``.tar``).
    """
    at_least("photos", photos, 1)
    at_least("tests", tests, 1)
    at_least("dimension", dimension, 0)
    extraction = Extraction(backbone, SIDE, compute, report)

    def invented(reason: str) -> Pool:
        return stand_in(min(photos, 4_000), min(tests, 1_000), reason=reason)

    if source == STAND_IN:
        return invented("asked for")
    if source in PHOTO_SOURCES:
        return real_or(lambda: _photos(*_located(source), photos, tests, dimension, extraction), invented)
    path = Path(source).expanduser()
    if not path.exists():
        raise ArgumentError("source", source, f"one of {', '.join((*PHOTO_SOURCES, STAND_IN))}, or a path that exists")
    if (path / READY_MADE[0]).is_file():
        return _ready_made(path, photos, tests, dimension)
    return _photos(path, {}, photos, tests, dimension, extraction)


def _located(source: str) -> tuple[Path, dict[str, str]]:
    """Where a source is, with its SHA-256 if its content is known; the whole set may also lie there unpacked."""
    names = ("tiny-imagenet-200.tar", "tiny-imagenet-200") if source == "tiny-imagenet" else ()
    if find(SOURCES[source].file) is None:
        for path in (folder / name for folder in directories() for name in names):
            if path.exists():
                return path, {}
    return file_of(source), {source: SOURCES[source].sha256}


def _photos(path: Path, known: dict[str, str], photos: int, tests: int, dimension: int, extraction: Extraction) -> Pool:
    found = tiny.read(path)
    rows, test_rows = prefix(photos, len(found.train)), prefix(tests, len(found.validation))
    inputs = reduced(extraction(found.train.images, rows), dimension)
    test_inputs = reduced(extraction(found.validation.images, test_rows), dimension)
    if not known:
        both = found.train.digest(rows) + found.validation.digest(test_rows)
        known = {path.resolve().name: hashlib.sha256(both.encode()).hexdigest()}
    return Pool(
        inputs=inputs,
        labels=found.train.labels[rows],
        test_inputs=test_inputs,
        test_labels=found.validation.labels[test_rows],
        names=found.names,
        pictures=lambda chosen: found.train.images(rows[chosen]),
        data={**known, **extraction.data},
    )


def _ready_made(path: Path, photos: int, tests: int, dimension: int) -> Pool:
    """Features without pictures, as YFCC100M's: pool and test photos from the two ends of a fixed random order.

    At most a fifth of the photos are test photos, so that a small set still has a pool.
    """
    array, tags = (path / name for name in READY_MADE)
    found = read_tagged(array, tags)
    order = prefix(len(found.labels), len(found.labels))
    tests = min(tests, max(len(order) // 5, 1))
    rows, test_rows = order[: min(photos, len(order) - tests)], order[::-1][:tests]
    if not len(rows):
        raise ArgumentError("source", str(path), "a directory with the features of at least two photos")
    raw, test_raw = found.rows(rows), found.rows(test_rows)
    inputs = reduced(raw, dimension)
    labels, test_labels = found.labels[rows], found.labels[test_rows]
    sha = digest_arrays({"inputs": raw, "labels": labels, "test inputs": test_raw, "test labels": test_labels})
    return Pool(
        inputs=inputs,
        labels=labels,
        test_inputs=reduced(test_raw, dimension),
        test_labels=test_labels,
        names=found.names,
        pictures=_tiles(inputs),
        data={f"{path.resolve().name} (features without pictures)": sha},
    )


def stand_in(
    photos: int, tests: int, classes: int = 21, dimension: int = 32, *, seed: int = 0, reason: str = "asked for"
) -> Pool:
    """Invented features: each class lies around a few centres, so that clusters and labels agree in part."""
    rng = np.random.default_rng([seed, 3])
    looks = 4
    centres = rng.normal(size=(classes, looks, dimension))

    def draw(count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        labels = rng.integers(classes, size=count)
        rows = centres[labels, rng.integers(looks, size=count)] + 0.7 * rng.normal(size=(count, dimension))
        return reduced(rows.astype(np.float32), 0), labels

    (inputs, labels), (test_inputs, test_labels) = draw(photos), draw(tests)
    return Pool(
        inputs=inputs,
        labels=labels,
        test_inputs=test_inputs,
        test_labels=test_labels,
        names=(*(f"c{number}" for number in range(classes - 1)), tiny.UNKNOWN),
        pictures=_tiles(inputs),
        data={"invented photos": digest_arrays({"inputs": inputs, "labels": labels})},
        stand_in=True,
        reason=reason,
    )


def _tiles(inputs: NDArray[np.float32]) -> Pictures:
    """Pictures of photos of which there are only features."""

    def pictures(chosen: NDArray[np.int64]) -> NDArray[np.uint8]:
        tiles = np.stack([_tile(inputs[row]) for row in chosen])
        return tiles.repeat(8, axis=1).repeat(8, axis=2)

    return pictures


def _tile(row: NDArray[np.float32]) -> NDArray[np.uint8]:
    """A 4 × 4 tile whose colours are the row's own numbers: photos that are near look alike."""
    values = np.resize(row, 48).reshape(4, 4, 3) * np.sqrt(len(row))
    return np.asarray(255 / (1 + np.exp(-values)), dtype=np.uint8)


def fingerprint(pool: Pool) -> str:
    """Tells two pools apart."""
    return hashlib.sha256(digest_arrays({"x": pool.inputs, "y": pool.labels}).encode()).hexdigest()
