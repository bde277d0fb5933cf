"""What both image experiments start from: photos with labels, features that make elements, and where they came from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elementdp.companion.data import SOURCES, DataError, digest_arrays
from elementdp.companion.data.backbones import WIDTHS, load
from elementdp.companion.data.features import Pictures, Report, cached_features, features
from elementdp.elements.clusters import kmeans, nearest
from elementdp.errors import at_least, one_of


@dataclass(frozen=True, eq=False, kw_only=True)
class PhotoSet:
    """Photos users are made from and test photos: what the model sees of them, labels, and the data (name → SHA-256).

    ``looks`` has a row of features for each photo users are made from: photos near each other look alike.
    """

    inputs: NDArray[Any]  # rows of features (Section 4.3) or pixels as bytes (Section 4.4)
    labels: NDArray[np.int64]
    test_inputs: NDArray[Any]
    test_labels: NDArray[np.int64]
    looks: NDArray[np.float32]
    pictures: Pictures
    names: tuple[str, ...]
    data: dict[str, str]
    stand_in: bool = False
    reason: str = ""

    @property
    def label(self) -> str:
        """The data for a caption; a stand-in says so."""
        names = " and ".join(self.data)
        return f"{names} (stand-in, not real data)" if self.stand_in else names

    @cached_property
    def fingerprint(self) -> str:
        """Tells two sets apart."""
        return digest_arrays({"inputs": self.inputs, "labels": self.labels, "looks": self.looks})

    def elements(self, clusters: int, seed: int = 0) -> NDArray[np.int64]:
        """The element of each photo: the nearest of K centroids by k-means++ (paper: K = 50, 500; CIFAR-10: 100)."""
        return nearest(self.looks, kmeans(self.looks, clusters, seed))


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


@dataclass(frozen=True)
class Extraction:
    """How many photos are read, and how they become features: by which backbone, whether computed if not cached."""

    photos: int
    tests: int
    dimension: int  # numbers the features are projected to; 0: not at all
    backbone: str
    compute: bool = False
    report: Report = lambda line: None

    def __post_init__(self) -> None:
        at_least("photos", self.photos, 1)
        at_least("tests", self.tests, 1)
        at_least("dimension", self.dimension, 0)
        one_of("backbone", self.backbone, WIDTHS)

    @property
    def data(self) -> dict[str, str]:
        """The weights used, as an entry of :attr:`PhotoSet.data`."""
        return {f"{self.backbone} features": SOURCES[self.backbone].sha256}

    def __call__(self, pictures: Pictures, rows: NDArray[np.int64], side: int) -> NDArray[np.float32]:
        """Features of these photos, upsampled to ``side`` pixels.

        :class:`DataError` where they are not in the cache and must not be computed.
        """
        ready = cached_features(pictures, rows, SOURCES[self.backbone].sha256, side)
        if ready is None and not self.compute:
            raise DataError(
                f"the {self.backbone} features of these photos are not in the cache; "
                "recording a run makes them, and so does compute=True"
            )
        found = features(pictures, rows, load(self.backbone), side, self.report)[0] if ready is None else ready
        return reduced(found, self.dimension)


def real_or(real: Callable[[], PhotoSet], invented: Callable[[str], PhotoSet]) -> PhotoSet:
    """The real data; where they cannot be had, the stand-in, which is told why."""
    try:
        return real()
    except DataError as error:
        return invented(str(error))
