"""Tiny-ImageNet in its own layout, whole or cut: photos with many labels, the frequent ones kept as the paper does."""

import hashlib
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elementdp.companion.data.packed import Packed, open_packed
from elementdp.companion.data.store import DataError
from elementdp.errors import at_least

UNKNOWN = "unknown"
"""The name of the label for every photo whose own label is not frequent enough."""


@dataclass(frozen=True, eq=False)
class LabelledPhotos:
    """Photos that are decoded when asked for: the package they lie in, their names there, and their labels' numbers."""

    package: Packed
    files: tuple[str, ...]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def images(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The photos of these rows, N × 64 × 64 × 3, RGB bytes."""
        from PIL import Image

        pictures = []
        for row, content in zip(rows, self.package.read(self.files[row] for row in rows), strict=True):
            try:
                with Image.open(io.BytesIO(content)) as picture:
                    pictures.append(np.asarray(picture.convert("RGB"), dtype=np.uint8))
            except OSError as error:
                raise DataError(f"{self.files[row]} is no photo that can be read ({error})") from error
            if pictures[-1].shape != pictures[0].shape:
                raise DataError(f"{self.files[row]} has another size than the photos before it: all need the same")
        return np.stack(pictures) if pictures else np.zeros((0, 64, 64, 3), dtype=np.uint8)

    def digest(self, rows: NDArray[np.int64]) -> str:
        """The SHA-256 of these photos as stored, with their labels: the same whichever way they are packed."""
        sha = hashlib.sha256(np.ascontiguousarray(self.labels[rows], dtype="<i8").tobytes())
        for content in self.package.read(self.files[row] for row in rows):
            sha.update(hashlib.sha256(content).digest())
        return sha.hexdigest()


@dataclass(frozen=True, eq=False)
class TinyImageNet:
    """Training and validation photos; ``names[label]`` in words, the last one being :data:`UNKNOWN`."""

    train: LabelledPhotos
    validation: LabelledPhotos
    names: tuple[str, ...]
    ids: tuple[str, ...]  # WordNet's, of all names but the last


def read(path: Path, frequent: int = 100) -> TinyImageNet:
    """The set with its ``frequent`` most common training labels kept, everything else "unknown" (the paper: 100).

    Works with the whole set and with any cut of it, in a tar file, a zip file or a directory. Labels equally common
    (all of them, in the whole set) are kept in the order of their ids. Photos come in the order of the published
    lists, never in that of the packing: labels as in ``wnids.txt``, then by name; validation photos as annotated.
    """
    at_least("frequent", frequent, 1)
    package = open_packed(path)
    texts: dict[str, list[list[str]]] = {}
    found: list[tuple[str, str]] = []
    validation: dict[str, str] = {}
    for name in package.names:
        *folders, file = name.split("/")
        if file.endswith(".JPEG") and "train" in folders[:-1]:
            found.append((folders[folders.index("train") + 1], name))
        elif file.endswith(".JPEG") and "val" in folders:
            validation[file] = name
        elif file in ("wnids.txt", "words.txt", "val_annotations.txt"):
            texts[file] = [line.split("\t") for line in package.text(name).splitlines() if line.strip()]
    if not found or not validation or not {"words.txt", "val_annotations.txt"} <= texts.keys():
        raise DataError(f"{path.name} has not Tiny-ImageNet's layout: train/, val/, words.txt, val_annotations.txt")
    annotated = {line[0]: line[1] for line in texts["val_annotations.txt"] if len(line) > 1}
    if absent := validation.keys() - annotated.keys():
        raise DataError(f"{path.name}: val_annotations.txt has no label for {len(absent)} photos ({min(absent)})")
    rank = {line[0]: position for position, line in enumerate(texts.get("wnids.txt", []))}
    train = sorted(found, key=lambda entry: (rank.get(entry[0], len(rank)), *entry))
    counts = Counter(label for label, _ in train)
    kept = sorted(counts, key=lambda label: (-counts[label], label))[:frequent]
    number = {label: index for index, label in enumerate(kept)}
    words = {line[0]: line[1] for line in texts["words.txt"] if len(line) > 1}
    held_out = [(label, validation[file]) for file, label in annotated.items() if file in validation]

    def photos(entries: list[tuple[str, str]]) -> LabelledPhotos:
        labels = np.array([number.get(label, len(kept)) for label, _ in entries], dtype=np.int64)
        return LabelledPhotos(package, tuple(name for _, name in entries), labels)

    names = tuple(words.get(label, label).split(",")[0] for label in kept)
    return TinyImageNet(photos(train), photos(held_out), (*names, UNKNOWN), tuple(kept))
