"""From users' texts to a table of counts: tokens, vocabulary, stop words, m words a user (Section 4.1)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elementdp.companion.data import UserTexts
from elementdp.errors import ArgumentError, at_least, one_of

STOP_WORDS = 100
"""The paper removes "the 100 most frequent stopwords"."""

# GloVe's vocabulary splits contractions as the Penn Treebank does: don't = do + n't, it's = it + 's.
_TOKEN = re.compile(r"n't|'(?:s|m|re|ve|ll|d)\b|[a-z0-9]+?(?=n't)|[a-z0-9]+")


@dataclass(frozen=True)
class Corpus:
    """Counts of n users with m words each, over the words that occur; ``column`` numbers them in the vocabulary."""

    counts: csr_array  # users × words that occur
    column: NDArray[np.int64]  # the vocabulary row of each word that occurs
    stop_words: tuple[str, ...]
    m: int
    vocabulary: int  # d, the words of the dictionary whether they occur or not

    @property
    def n(self) -> int:
        """How many users."""
        return int(self.counts.shape[0])


def tokens(text: str) -> list[str]:
    """The words of a text, in lower case, contractions split as in GloVe's vocabulary."""
    return _TOKEN.findall(text.lower().replace("\u2019", "'"))


def numbered(users: Iterable[UserTexts], index: dict[str, int]) -> Iterator[NDArray[np.int32]]:
    """Each user's words as rows of the vocabulary; words it does not have are dropped."""
    for user in users:
        rows = [index.get(word, -1) for text in user.texts for word in tokens(text)]
        found = np.array(rows, dtype=np.int32)
        yield found[found >= 0]


class Stop(StrEnum):
    """Which 100 words "the 100 most frequent stopwords" are."""

    LISTED = "listed"  # the most frequent of a list of English stop words (scikit-learn's, and contractions)
    FREQUENT = "frequent"  # the most frequent of all words


def stop_words(total: NDArray[np.int64], words: tuple[str, ...], stop: Stop) -> NDArray[np.int64]:
    """The rows of the 100 stop words, given how often each word occurs."""
    order = np.argsort(-total, kind="stable")
    if stop is Stop.LISTED:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # slow to import

        order = np.array([row for row in order if words[row] in ENGLISH_STOP_WORDS or "'" in words[row]], dtype=int)
    return order[:STOP_WORDS]


def corpus(
    users: Iterable[UserTexts],
    words: tuple[str, ...],
    n: int,
    m: int,
    seed: int = 0,
    stop: Stop | str = Stop.LISTED,
) -> Corpus:
    """The n users with the most words once stop words are gone, m words drawn from each without replacement.

    Too few users with m words is an error that says how many there are.
    """
    return counted(list(numbered(users, {word: row for row, word in enumerate(words)})), words, n, m, seed, stop)


def counted(
    written: list[NDArray[np.int32]],
    words: tuple[str, ...],
    n: int,
    m: int,
    seed: int = 0,
    stop: Stop | str = Stop.LISTED,
) -> Corpus:
    """As :func:`corpus`, from users' words already numbered."""
    at_least("n", n, 2)
    at_least("m", m, 1)
    one_of("stop", stop, list(Stop))
    d = len(words)
    total = np.bincount(np.concatenate(written), minlength=d)
    stopped = np.zeros(d, dtype=bool)
    stopped[stop_words(total, words, Stop(stop))] = True
    kept = [rows[~stopped[rows]] for rows in written]
    lengths = np.array([len(rows) for rows in kept])
    order = np.argsort(-lengths, kind="stable")
    able = int((lengths >= m).sum())
    if able < n:
        raise ArgumentError("n", n, f"at most {able}, the users with {m} words once stop words are gone")
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(kept[user], size=m, replace=False) for user in order[:n]]
    column, where = np.unique(np.concatenate(chosen), return_inverse=True)
    pairs, count = np.unique(np.repeat(np.arange(n), m) * len(column) + where, return_counts=True)
    table = csr_array((count, (pairs // len(column), pairs % len(column))), shape=(n, len(column)))
    return Corpus(table, column.astype(np.int64), tuple(words[row] for row in np.flatnonzero(stopped)), m, d)
