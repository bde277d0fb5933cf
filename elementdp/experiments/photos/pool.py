"""What Section 4.3 starts from: photos as feature vectors with labels, real or, where data are missing, a stand-in."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elementdp.data import SOURCES, STAND_IN, DataError, digest_arrays, file_of
from elementdp.data import tiny_imagenet as tiny
from elementdp.data.features import Pictures, cached_features, features
from elementdp.elements.clusters import kmeans, nearest
from elementdp.errors import at_least, one_of

SIDE = 128
"""Photos of 64 × 64 pixels are upsampled to this before they go through the backbone."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Photos users are made from, test photos, and where they came from; ``pictures`` shows photos of the pool."""

    inputs: NDArray[np.float32]  # rows of length one
    labels: NDArray[np.int64]
    test_inputs: NDArray[np.float32]
    test_labels: NDArray[np.int64]
    names: tuple[str, ...]
    pictures: Pictures
    data: dict[str, str]
    stand_in: bool
    reason: str = ""

    @property
    def label(self) -> str:
        """The data for a caption; a stand-in says so."""
        names = " and ".join(self.data)
        return f"{names} (stand-in, not real data)" if self.stand_in else names

    def elements(self, clusters: int, seed: int = 0) -> NDArray[np.int64]:
        """The element of each photo: the nearest of K centroids by k-means++ (the paper: K = 50, 500)."""
        return nearest(self.inputs, kmeans(self.inputs, clusters, seed))


def reduced(rows: NDArray[np.float32], dimension: int, seed: int = 0) -> NDArray[np.float32]:
    """Feature rows, each centred, projected at random to ``dimension`` numbers (0: not at all) and scaled to length 1.

    Nothing here depends on any other photo, so it costs no privacy; a bounded row bounds the gradient too.
    """
    rows = rows - rows.mean(axis=1, keepdims=True)
    if dimension and dimension < rows.shape[1]:
        rng = np.random.default_rng([seed, rows.shape[1], dimension])
        rows = rows @ rng.normal(size=(rows.shape[1], dimension)).astype(np.float32)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), dtype=np.float32)


def prefix(count: int, total: int) -> NDArray[np.int64]:
    """The first ``count`` of a fixed random order: a uniform subset; smaller ones share larger ones' cache."""
    return np.random.default_rng(0).permutation(total)[:count]


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
    """Photos with features; unless ``compute``, features not yet in the cache mean the stand-in, and it says so."""
    one_of("source", source, ["tiny-imagenet-101", STAND_IN])
    at_least("photos", photos, 1)
    reason = "asked for"
    if source != STAND_IN:
        try:
            return _real(source, photos, tests, dimension, backbone, compute, report)
        except DataError as error:
            reason = str(error)
    return stand_in(min(photos, 4_000), min(tests, 1_000), reason=reason)


def _real(
    source: str, photos: int, tests: int, dimension: int, backbone: str, compute: bool, report: Callable[[str], None]
) -> Pool:
    data = tiny.read(file_of(source))
    rows, test_rows = prefix(photos, len(data.train)), prefix(tests, len(data.validation))
    found = []
    for part, wanted in ((data.train, rows), (data.validation, test_rows)):
        ready = cached_features(part.images, wanted, SOURCES[backbone].sha256, SIDE)
        if ready is None:
            if not compute:
                raise DataError(
                    "the features of these photos are not in the cache; the recorded run's command makes them"
                )
            from elementdp.data import backbones

            ready, _ = features(part.images, wanted, backbones.load(backbone), SIDE, report)
        found.append(reduced(ready, dimension))
    return Pool(
        found[0],
        data.train.labels[rows],
        found[1],
        data.validation.labels[test_rows],
        data.names,
        lambda chosen: data.train.images(rows[chosen]),
        {source: SOURCES[source].sha256, f"{backbone} features": SOURCES[backbone].sha256},
        stand_in=False,
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
    sha = digest_arrays({"inputs": inputs, "labels": labels})

    def pictures(chosen: NDArray[np.int64]) -> NDArray[np.uint8]:
        tiles = np.stack([_tile(inputs[row]) for row in chosen])
        return tiles.repeat(8, axis=1).repeat(8, axis=2)

    names = (*(f"c{number}" for number in range(classes - 1)), tiny.UNKNOWN)
    return Pool(inputs, labels, test_inputs, test_labels, names, pictures, {"invented photos": sha}, True, reason)


def _tile(row: NDArray[np.float32]) -> NDArray[np.uint8]:
    """A 4 × 4 tile whose colours are the row's own numbers: photos that are near look alike."""
    values = np.resize(row, 48).reshape(4, 4, 3) * np.sqrt(len(row))
    return np.asarray(255 / (1 + np.exp(-values)), dtype=np.uint8)


def fingerprint(pool: Pool) -> str:
    """Tells two pools apart."""
    return hashlib.sha256(digest_arrays({"x": pool.inputs, "y": pool.labels}).encode()).hexdigest()
