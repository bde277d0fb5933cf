"""Features of photos by a backbone, computed once: shards named by the hash of what went in, so a run resumes."""

import hashlib
import io
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elementdp.companion.data.backbones import Backbone
from elementdp.companion.data.store import DataError, find, writable
from elementdp.errors import ArgumentError, at_least
from elementdp.files import write_atomic

SHARD = 256
"""Photos a shard: what is lost at most when extraction is interrupted."""

FOLDER = "features"
Pictures = Callable[[NDArray[np.int64]], NDArray[np.uint8]]
"""Rows → photos as RGB bytes, N × H × W × 3."""

Report = Callable[[str], None]


def _silent(line: str) -> None:
    """A report nobody reads."""


def shard_key(backbone: str, side: int, images: NDArray[np.uint8]) -> str:
    """The name of a shard: backbone's weights, size and the photos' own bytes decide it, nothing else."""
    sha = hashlib.sha256(f"{backbone} {side} {images.shape}\n".encode())
    sha.update(np.ascontiguousarray(images).data)
    return sha.hexdigest()


Shard = tuple[str, NDArray[np.uint8], NDArray[np.float32] | None]
"""Its name, its photos, and their features if they were computed before."""


def _shards(pictures: Pictures, rows: NDArray[np.int64], backbone: str, side: int) -> Iterator[Shard]:
    for start in range(0, len(rows), SHARD):
        images = pictures(rows[start : start + SHARD])
        key = shard_key(backbone, side, images)
        path = find(f"{FOLDER}/{key}.npy")
        yield key, images, _read(path, len(images)) if path is not None else None


def _read(path: Path, rows: int) -> NDArray[np.float32] | None:
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None  # damaged: it is simply made again
    return found.astype(np.float32) if found.ndim == 2 and len(found) == rows else None


@dataclass(frozen=True)
class Speed:
    """How an extraction went: photos computed now, photos found in the cache, seconds spent computing."""

    computed: int
    cached: int
    seconds: float

    def __str__(self) -> str:
        rate = f", {self.computed / self.seconds:.1f} photos/s" if self.computed else ""
        return f"{self.computed + self.cached} photos, {self.cached} from the cache{rate}"


def features(
    pictures: Pictures, rows: NDArray[np.int64], backbone: Backbone, side: int, report: Report = _silent
) -> tuple[NDArray[np.float32], Speed]:
    """Features of the photos ``rows``, in that order; whatever shard is already there is not computed again.

    Kept as half-precision numbers: their rounding (2⁻¹¹) is far below what any training here can notice.
    """
    parts: list[NDArray[np.float32]] = []
    computed = cached = 0
    seconds = 0.0
    for key, images, found in _shards(pictures, rows, backbone.sha256, side):
        if found is None:
            clock = time.perf_counter()
            whole = np.concatenate([backbone.features(images[i : i + 32], side) for i in range(0, len(images), 32)])
            seconds += time.perf_counter() - clock
            half = whole.astype(np.float16)
            _store(key, half)
            parts.append(half.astype(np.float32))
            computed += len(images)
        else:
            parts.append(found)
            cached += len(images)
        report(f"{computed + cached} of {len(rows)}: {Speed(computed, cached, seconds)}")
    if not parts:
        raise ArgumentError("rows", len(rows), "at least one photo")
    return np.concatenate(parts), Speed(computed, cached, seconds)


def cached_features(pictures: Pictures, rows: NDArray[np.int64], sha256: str, side: int) -> NDArray[np.float32] | None:
    """The features if every shard is in the cache, without loading a network; else None."""
    parts = []
    for _, _, found in _shards(pictures, rows, sha256, side):
        if found is None:
            return None
        parts.append(found)
    return np.concatenate(parts) if parts else None


def _store(key: str, values: NDArray[np.float16]) -> None:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    write_atomic(writable() / FOLDER / f"{key}.npy", buffer.getvalue())


@dataclass(frozen=True, eq=False)
class Tagged:
    """Features that come ready-made with tags, as YFCC100M's do: one row a photo, one label a row."""

    features: NDArray[np.generic]  # stays on disk: take the rows you need
    labels: NDArray[np.int64]
    names: tuple[str, ...]

    def rows(self, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """The features of these photos."""
        found = np.asarray(self.features[chosen], dtype=np.float32)
        if not np.isfinite(found).all():
            raise DataError("the features hold numbers that are not finite")
        return found


def read_tagged(array: Path, tags: Path, frequent: int = 100) -> Tagged:
    """``array`` (.npy, N × d) with ``tags`` (a line a photo, tags separated by commas), as the paper labels Flickr.

    A photo's label is the most common of its tags among the ``frequent`` most common; "unknown" if it has none.
    Tags equally common are ordered by name.
    """
    at_least("frequent", frequent, 1)
    try:
        rows = np.load(array, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{array.name} is no array of numbers in numpy's format ({error})") from error
    counts: Counter[str] = Counter()
    lines = 0
    for line in _tag_lines(tags):
        counts.update(set(line))
        lines += 1
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or len(rows) != lines or not lines:
        raise DataError(
            f"{array.name} has shape {rows.shape} of {rows.dtype}, {tags.name} has {lines} lines: "
            "one row of numbers a photo and one line a row"
        )
    number = {tag: rank for rank, tag in enumerate(sorted(counts, key=lambda tag: (-counts[tag], tag))[:frequent])}
    labels = (min((number[tag] for tag in line if tag in number), default=len(number)) for line in _tag_lines(tags))
    return Tagged(rows, np.fromiter(labels, dtype=np.int64, count=lines), (*number, "unknown"))


def _tag_lines(path: Path) -> Iterator[list[str]]:
    try:
        with path.open(encoding="utf-8") as stream:
            for line in stream:
                yield [tag for part in line.split(",") if (tag := part.strip())]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path.name} cannot be read as text with a line a photo ({error})") from error
