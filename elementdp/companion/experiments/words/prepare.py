"""Everything Section 4.1 starts from: a corpus and its partitions, real or, where data are missing, a stand-in."""

from dataclasses import dataclass

import numpy as np

from elementdp.companion.data import STAND_IN, load_users, load_vectors
from elementdp.companion.experiments.words.corpus import Corpus, Stop, corpus
from elementdp.companion.experiments.words.partitions import word_clusters
from elementdp.elements import Clusters
from elementdp.errors import at_least


@dataclass(frozen=True)
class Prepared:
    """A corpus, the dictionary's words, its partitions by K, and where texts and vectors came from."""

    corpus: Corpus
    words: tuple[str, ...]
    partitions: dict[int, Clusters]
    data: dict[str, str]  # source → SHA-256
    stand_in: bool
    reason: str

    @property
    def label(self) -> str:
        """The data for a caption; a stand-in says so."""
        names = " and ".join(self.data)
        return f"{names} (stand-in, not real data)" if self.stand_in else names


def prepare(
    source: str,
    vectors: str,
    n: int,
    m: int,
    clusters: tuple[int, ...],
    seed: int = 0,
    *,
    vocabulary: int = 0,
    unit_length: bool = False,
    stop: Stop | str = Stop.LISTED,
) -> Prepared:
    """Load texts and word vectors, count words and cluster the dictionary.

    ``vocabulary`` cuts the dictionary to its most frequent words (0: all of it). ``unit_length`` clusters directions
    instead of vectors. Every word its own element (K = d) is always there. If either source is missing both are
    stand-ins: invented texts have no words of a real dictionary.
    """
    at_least("vocabulary", vocabulary, 0)
    known = vocabulary or 400_000
    shape = (n, 3 * m)  # stop words and words outside the dictionary cost an invented user less than two thirds
    found = load_vectors(vectors, stand_in_words=vocabulary)
    texts = load_users(source, stand_in_shape=shape, stand_in_words=known)
    if found.stand_in != texts.stand_in:
        found = load_vectors(STAND_IN, stand_in_words=vocabulary)
        texts = load_users(STAND_IN, stand_in_shape=shape, stand_in_words=known)
    size = min(vocabulary or len(found.value.words), len(found.value.words))
    words, points = found.value.words[:size], found.value.vectors[:size]
    if unit_length:
        points = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    counted = corpus(texts.value, words, n, m, seed, stop)
    key = f"{found.sha256} unit" if unit_length else found.sha256
    partitions = {count: word_clusters(points, key, count, seed) for count in (*clusters, size)}
    data = {f"{texts.name} texts": texts.sha256, f"{found.name} vectors": found.sha256}
    return Prepared(counted, words, partitions, data, found.stand_in, found.reason or texts.reason)
