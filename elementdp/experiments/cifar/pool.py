"""CIFAR-10 as the network sees it, with an element for each photo from its features; or a stand-in that says so."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elementdp.data import SOURCES, STAND_IN, DataError, digest_arrays, file_of, read_arrays
from elementdp.data.features import cached_features, features
from elementdp.elements.clusters import kmeans, nearest
from elementdp.errors import at_least, one_of
from elementdp.experiments.photos.pool import prefix, reduced

SIDE = 96
"""Photos of 32 × 32 pixels are upsampled to this before they go through the backbone."""

NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True, eq=False)
class Photos:
    """Photos users are made from (bytes), the features that make elements, and test photos."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    features: NDArray[np.float32]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    names: tuple[str, ...]
    data: dict[str, str]
    stand_in: bool
    reason: str = ""

    @property
    def label(self) -> str:
        """The data for a caption; a stand-in says so."""
        names = " and ".join(self.data)
        return f"{names} (stand-in, not real data)" if self.stand_in else names

    def elements(self, clusters: int, seed: int = 0) -> NDArray[np.int64]:
        """The element of each photo: the nearest of K centroids by k-means++ (the paper: K = 100)."""
        return nearest(self.features, kmeans(self.features, clusters, seed))


def load_photos(
    source: str = "cifar10",
    photos: int = 20_480,
    tests: int = 10_000,
    backbone: str = "mobilenet-v2",
    *,
    dimension: int = 256,
    compute: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> Photos:
    """CIFAR-10 with features; unless ``compute``, features not yet in the cache mean the stand-in, and it says so."""
    one_of("source", source, ["cifar10", STAND_IN])
    at_least("photos", photos, 1)
    reason = "asked for"
    if source != STAND_IN:
        try:
            return _real(photos, tests, backbone, dimension, compute, report)
        except DataError as error:
            reason = str(error)
    return stand_in(min(photos, 2_000), min(tests, 500), reason=reason)


def _real(
    photos: int, tests: int, backbone: str, dimension: int, compute: bool, report: Callable[[str], None]
) -> Photos:
    arrays = read_arrays(file_of("cifar10"))
    everything = np.asarray(arrays["train_images"], dtype=np.uint8)
    rows = prefix(photos, len(everything))
    found = cached_features(lambda chosen: everything[chosen], rows, SOURCES[backbone].sha256, SIDE)
    if found is None:
        if not compute:
            raise DataError("the features of these photos are not in the cache; the recorded run's command makes them")
        from elementdp.data import backbones

        found, _ = features(lambda chosen: everything[chosen], rows, backbones.load(backbone), SIDE, report)
    return Photos(
        everything[rows],
        np.asarray(arrays["train_labels"], dtype=np.int64)[rows],
        reduced(found, dimension),
        np.asarray(arrays["test_images"], dtype=np.uint8)[:tests],
        np.asarray(arrays["test_labels"], dtype=np.int64)[:tests],
        NAMES,
        {"cifar10": SOURCES["cifar10"].sha256, f"{backbone} features": SOURCES[backbone].sha256},
        stand_in=False,
    )


def stand_in(photos: int, tests: int, *, seed: int = 0, reason: str = "asked for") -> Photos:
    """Invented photos: each class a coarse pattern of colours with variants, plus noise."""
    rng = np.random.default_rng([seed, 4])
    variants = 3
    patterns = rng.normal(size=(len(NAMES), variants, 4, 4, 3))

    def draw(count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.float32]]:
        labels = rng.integers(len(NAMES), size=count)
        coarse = patterns[labels, rng.integers(variants, size=count)] + 0.5 * rng.normal(size=(count, 4, 4, 3))
        fine = coarse.repeat(8, axis=1).repeat(8, axis=2) + 0.3 * rng.normal(size=(count, 32, 32, 3))
        images = np.clip(128 + 60 * fine, 0, 255).astype(np.uint8)
        return images, labels, reduced(coarse.reshape(count, -1).astype(np.float32), 0)

    images, labels, rows = draw(photos)
    test_images, test_labels, _ = draw(tests)
    sha = digest_arrays({"images": images, "labels": labels})
    return Photos(images, labels, rows, test_images, test_labels, NAMES, {"invented photos": sha}, True, reason)
