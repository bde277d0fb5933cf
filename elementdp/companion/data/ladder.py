"""The ladder real → stand-in: load what is asked for, and say honestly which of the two it was."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from elementdp.companion.data import standin
from elementdp.companion.data.sources import SOURCES, get, offline, verified
from elementdp.companion.data.store import DataError, digest, digest_arrays, find, read_arrays
from elementdp.companion.data.texts import UserTexts, read_texts
from elementdp.companion.data.vectors import WordVectors
from elementdp.errors import ArgumentError, one_of

T = TypeVar("T")
STAND_IN = "stand-in"
"""The name that asks for invented data on purpose."""

TEXT_SOURCES = ("chitchat", "reddit", "blogs")
VECTOR_SOURCES = ("glove-50d", "glove-100d")


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """A value with where it came from: a figure made from it has to say so when it is a stand-in."""

    value: T
    name: str
    sha256: str
    stand_in: bool = False
    reason: str = ""

    @property
    def label(self) -> str:
        """The name for a caption."""
        return f"{self.name} (stand-in, not real data)" if self.stand_in else self.name


def file_of(name: str) -> Path:
    """The verified file of a source, fetched if needed and allowed."""
    source = SOURCES[one_of("source", name, SOURCES)]
    present = find(source.file)
    if present is not None:
        return verified(present, source)
    if offline():
        raise DataError(f"{name} is in no data directory and fetching is switched off")
    return get(name)


def load_vectors(name: str = "glove-50d", *, stand_in_words: int = 0) -> Loaded[WordVectors]:
    """Word vectors by source name; a stand-in where they cannot be had, of the same shape unless told otherwise."""
    one_of("vectors", name, [*VECTOR_SOURCES, STAND_IN])
    words, dimensions = {"glove-100d": (341_479, 100)}.get(name, (400_000, 50))
    return _ladder(
        name,
        lambda: WordVectors.from_arrays(read_arrays(file_of(name))),
        lambda: standin.word_vectors(0, stand_in_words or words, dimensions),
        lambda vectors: digest_arrays(vectors.arrays()),
    )


def load_users(
    name: str = "chitchat", *, stand_in_shape: tuple[int, int] | None = None, stand_in_words: int = 400_000
) -> Loaded[list[UserTexts]]:
    """Users' texts by source name, or from a ``.jsonl``/``.jsonl.zst`` file of your own; else a stand-in.

    The stand-in has as many users and words a user as the source, unless ``stand_in_shape`` says otherwise.
    """
    if name.endswith((".jsonl", ".jsonl.zst")):
        path = Path(name).expanduser()
        if not path.is_file():
            raise ArgumentError("source", name, "a file that exists")
        return Loaded(list(read_texts(path)), path.name, digest(path))
    one_of("source", name, [*TEXT_SOURCES, STAND_IN])
    count, words_each = {"reddit": (2_854, 2_500), "blogs": (2_100, 9_000)}.get(name, (1_315, 2_000))
    return _ladder(
        name,
        lambda: list(read_texts(file_of(name))),
        lambda: standin.users(0, *(stand_in_shape or (count, words_each)), vocabulary=stand_in_words),
        _digest_texts,
    )


def _digest_texts(users: list[UserTexts]) -> str:
    sha = hashlib.sha256()
    for user in users:
        sha.update(user.user.encode() + b"\n" + "\n".join(user.texts).encode() + b"\n")
    return sha.hexdigest()


def _ladder(name: str, real: Callable[[], T], invented: Callable[[], T], sha: Callable[[T], str]) -> Loaded[T]:
    reason = "asked for"
    if name != STAND_IN:
        try:
            return Loaded(real(), name, SOURCES[name].sha256)
        except DataError as error:
            reason = str(error)
    value = invented()
    return Loaded(value, name, sha(value), stand_in=True, reason=reason)
