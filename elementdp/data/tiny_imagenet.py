"""Tiny-ImageNet in its own layout, inside a tar file: photos with many labels, cut as the paper cuts tags."""

import io
import tarfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elementdp.data.store import DataError
from elementdp.errors import at_least

UNKNOWN = "unknown"
"""The name of the label for every photo whose own label is not frequent enough."""


@dataclass(frozen=True, eq=False)
class Photos:
    """Photos that are decoded when asked for: where each lies in the tar file, and its label's number."""

    path: Path
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def images(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The photos of these rows, N × 64 × 64 × 3, RGB bytes."""
        from PIL import Image

        pictures = []
        with self.path.open("rb") as stream:
            for row in rows:
                stream.seek(int(self.offsets[row]))
                with Image.open(io.BytesIO(stream.read(int(self.lengths[row])))) as picture:
                    pictures.append(np.asarray(picture.convert("RGB"), dtype=np.uint8))
        return np.stack(pictures) if pictures else np.zeros((0, 64, 64, 3), dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class TinyImageNet:
    """Training and validation photos; ``names[label]`` in words, the last one being :data:`UNKNOWN`."""

    train: Photos
    validation: Photos
    names: tuple[str, ...]


def read(path: Path, frequent: int = 100) -> TinyImageNet:
    """The set with its ``frequent`` most common training labels kept, everything else "unknown" (the paper: 100).

    Works with the whole set and with any cut of it. Labels equally common are kept in the order of their ids.
    """
    at_least("frequent", frequent, 1)
    train: list[tuple[str, int, int]] = []
    validation: list[tuple[str, int, int]] = []
    texts: dict[str, str] = {}
    with tarfile.open(path) as package:
        for member in package:
            parts = member.name.split("/")[1:]
            if parts[0] == "train" and member.name.endswith(".JPEG"):
                train.append((parts[1], member.offset_data, member.size))
            elif parts[0] == "val" and member.name.endswith(".JPEG"):
                validation.append((parts[-1], member.offset_data, member.size))
            elif parts[-1] in ("words.txt", "val_annotations.txt"):
                stream = package.extractfile(member)
                texts[parts[-1]] = stream.read().decode() if stream else ""
    if not train or not validation or len(texts) < 2:
        raise DataError(f"{path.name} has not Tiny-ImageNet's layout: train/, val/, words.txt, val_annotations.txt")
    counts = Counter(label for label, _, _ in train)
    kept = sorted(counts, key=lambda label: (-counts[label], label))[:frequent]
    number = {label: index for index, label in enumerate(kept)}
    words = dict(line.split("\t", 1) for line in texts["words.txt"].splitlines() if "\t" in line)
    of_file = {line.split("\t")[0]: line.split("\t")[1] for line in texts["val_annotations.txt"].splitlines() if line}
    names = tuple(words.get(label, label).split(",")[0] for label in kept)
    return TinyImageNet(
        _photos(path, train, [number.get(label, len(kept)) for label, _, _ in train]),
        _photos(path, validation, [number.get(of_file[file], len(kept)) for file, _, _ in validation]),
        (*names, UNKNOWN),
    )


def _photos(path: Path, entries: list[tuple[str, int, int]], labels: list[int]) -> Photos:
    places = np.array([(offset, size) for _, offset, size in entries], dtype=np.int64)
    return Photos(path, places[:, 0], places[:, 1], np.array(labels, dtype=np.int64))
