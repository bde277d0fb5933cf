"""Invented photos of the same shape as the real ones, so that every page runs; they say what they are."""

import numpy as np
from numpy.typing import NDArray

from elementdp.companion.data import digest_arrays
from elementdp.companion.data.features import Pictures
from elementdp.companion.data.tiny_imagenet import UNKNOWN
from elementdp.companion.experiments.images.photo_set import PhotoSet, reduced

CIFAR_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def photos_stand_in(
    photos: int, tests: int, classes: int = 21, dimension: int = 32, *, seed: int = 0, reason: str = "asked for"
) -> PhotoSet:
    """Invented features: each class lies around a few centres, so that clusters and labels agree in part."""
    rng = np.random.default_rng([seed, 3])
    variants = 4
    centres = rng.normal(size=(classes, variants, dimension))

    def draw(count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        labels = rng.integers(classes, size=count)
        rows = centres[labels, rng.integers(variants, size=count)] + 0.7 * rng.normal(size=(count, dimension))
        return reduced(rows.astype(np.float32), 0), labels

    (inputs, labels), (test_inputs, test_labels) = draw(photos), draw(tests)
    return PhotoSet(
        inputs=inputs,
        labels=labels,
        test_inputs=test_inputs,
        test_labels=test_labels,
        looks=inputs,
        pictures=tiles(inputs),
        names=(*(f"c{number}" for number in range(classes - 1)), UNKNOWN),
        data={"invented photos": digest_arrays({"inputs": inputs, "labels": labels})},
        stand_in=True,
        reason=reason,
    )


def cifar_stand_in(photos: int, tests: int, *, seed: int = 0, reason: str = "asked for") -> PhotoSet:
    """Invented photos: each class a coarse pattern of colours with variants, plus noise."""
    rng = np.random.default_rng([seed, 4])
    variants = 3
    patterns = rng.normal(size=(len(CIFAR_NAMES), variants, 4, 4, 3))

    def draw(count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.float32]]:
        labels = rng.integers(len(CIFAR_NAMES), size=count)
        coarse = patterns[labels, rng.integers(variants, size=count)] + 0.5 * rng.normal(size=(count, 4, 4, 3))
        fine = coarse.repeat(8, axis=1).repeat(8, axis=2) + 0.3 * rng.normal(size=(count, 32, 32, 3))
        images = np.clip(128 + 60 * fine, 0, 255).astype(np.uint8)
        return images, labels, reduced(coarse.reshape(count, -1).astype(np.float32), 0)

    images, labels, looks = draw(photos)
    test_images, test_labels, _ = draw(tests)
    return PhotoSet(
        inputs=images,
        labels=labels,
        test_inputs=test_images,
        test_labels=test_labels,
        looks=looks,
        pictures=lambda chosen: images[chosen],
        names=CIFAR_NAMES,
        data={"invented photos": digest_arrays({"images": images, "labels": labels})},
        stand_in=True,
        reason=reason,
    )


def tiles(inputs: NDArray[np.float32]) -> Pictures:
    """Pictures of photos of which there are only features: 4 × 4 tiles of their own numbers, alike where these are."""

    def pictures(chosen: NDArray[np.int64]) -> NDArray[np.uint8]:
        values = np.stack([np.resize(inputs[row], 48).reshape(4, 4, 3) for row in chosen]) * np.sqrt(inputs.shape[1])
        return np.asarray(255 / (1 + np.exp(-values)), dtype=np.uint8).repeat(8, axis=1).repeat(8, axis=2)

    return pictures
