"""CIFAR-10 as the network sees it, with an element for each photo from its features; or a stand-in that says so."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elementdp.companion.data import SOURCES, STAND_IN, digest_arrays, file_of, read_arrays
from elementdp.companion.experiments.photo_set import Extraction, PhotoSet, prefix, real_or, reduced
from elementdp.errors import at_least, one_of

SIDE = 96
"""Photos of 32 × 32 pixels are upsampled to this before they go through the backbone."""

NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True, eq=False, kw_only=True)
class Photos(PhotoSet):
    """Photos users are made from (bytes), the features that make elements, and test photos."""

    images: NDArray[np.uint8]
    features: NDArray[np.float32]
    test_images: NDArray[np.uint8]

    @property
    def looks(self) -> NDArray[np.float32]:
        """The features."""
        return self.features


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
    at_least("tests", tests, 1)
    at_least("dimension", dimension, 0)
    extraction = Extraction(backbone, SIDE, compute, report)

    def invented(reason: str) -> Photos:
        return stand_in(min(photos, 2_000), min(tests, 500), reason=reason)

    if source == STAND_IN:
        return invented("asked for")
    return real_or(lambda: _real(photos, tests, dimension, extraction), invented)


def _real(photos: int, tests: int, dimension: int, extraction: Extraction) -> Photos:
    arrays = read_arrays(file_of("cifar10"))
    everything = np.asarray(arrays["train_images"], dtype=np.uint8)
    rows = prefix(photos, len(everything))
    return Photos(
        images=everything[rows],
        labels=np.asarray(arrays["train_labels"], dtype=np.int64)[rows],
        features=reduced(extraction(lambda chosen: everything[chosen], rows), dimension),
        test_images=np.asarray(arrays["test_images"], dtype=np.uint8)[:tests],
        test_labels=np.asarray(arrays["test_labels"], dtype=np.int64)[:tests],
        names=NAMES,
        data={"cifar10": SOURCES["cifar10"].sha256, **extraction.data},
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
    return Photos(
        images=images,
        labels=labels,
        features=rows,
        test_images=test_images,
        test_labels=test_labels,
        names=NAMES,
        data={"invented photos": digest_arrays({"images": images, "labels": labels})},
        stand_in=True,
        reason=reason,
    )
