"""Reading the private histogram: which words come out right, and what the elements look like."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elementdp.companion.experiments.words.corpus import Corpus
from elementdp.companion.experiments.words.figure import WordsPoint
from elementdp.companion.experiments.words.histogram import Elements, Halves, Sensitivity, noise_scale
from elementdp.companion.experiments.words.prepare import Prepared
from elementdp.companion.theory.counting.projection import projected_means
from elementdp.elements import Clusters
from elementdp.privacy import paper_delta


@dataclass(frozen=True)
class Reading:
    """The most frequent words by the private histogram, and which of them are among the truly most frequent."""

    words: tuple[str, ...]
    right: tuple[bool, ...]

    @property
    def count(self) -> int:
        """How many are right."""
        return sum(self.right)


def read_words(
    corpus: Corpus,
    half: Halves,
    clusters: Clusters,
    rho: float,
    epsilon: float,
    words: tuple[str, ...],
    top: int,
    rng: np.random.Generator,
    sensitivity: Sensitivity = Sensitivity.RIGHT,
) -> Reading:
    """Release Ĥ once, with noise on every word of the dictionary, and take its ``top`` largest words."""
    part = Elements.of(clusters, corpus)
    shared, lone = part.scale(sensitivity)
    scale = np.where((clusters.sizes == 1)[clusters.labels], lone, shared)
    sd = float(noise_scale(rho, epsilon, paper_delta(corpus.n), half.n, half.m))
    released: NDArray[np.float64] = sd * scale * rng.normal(size=corpus.vocabulary)
    released[corpus.column] += projected_means(half.sample, part.occurring, [rho])[0] / half.m
    chosen = np.argsort(-released, kind="stable")[:top]
    truth = set(corpus.column[np.argsort(-half.truth, kind="stable")[:top]].tolist())
    return Reading(tuple(words[row] for row in chosen), tuple(int(row) in truth for row in chosen))


@dataclass(frozen=True)
class Element:
    """One cluster: how many words of the dictionary it has, its share of what users write, its most used words."""

    size: int
    mass: float
    words: tuple[str, ...]


def heaviest(corpus: Corpus, clusters: Clusters, words: tuple[str, ...], count: int, show: int) -> list[Element]:
    """The ``count`` elements users write most in."""
    total = np.asarray(corpus.counts.sum(axis=0)).ravel()
    labels = clusters.labels[corpus.column]
    mass = np.bincount(labels, total, minlength=clusters.count) / total.sum()
    sizes = clusters.sizes
    found = []
    for label in np.argsort(-mass, kind="stable")[:count]:
        rows = np.flatnonzero(labels == label)
        best = rows[np.argsort(-total[rows], kind="stable")[:show]]
        names = tuple(words[corpus.column[row]] for row in best)
        found.append(Element(int(sizes[label]), float(mass[label]), names))
    return found


def readings(
    prepared: Prepared, points: Iterable[WordsPoint], epsilon: float = 1.0, top: int = 20, seed: int = 0
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows for a table: the words read at ε with each partition's validated ρ, and the heaviest elements of each."""
    rng = np.random.default_rng([seed, 3])
    half = Halves.split(prepared.corpus, rng)
    right = [point for point in points if point.sensitivity == Sensitivity.RIGHT and point.choice == "validation"]
    rho = {point.clusters: point.rho for point in right if point.epsilon == epsilon}
    read, elements = [], []
    for count, clusters in prepared.partitions.items():
        found = read_words(prepared.corpus, half, clusters, rho[count], epsilon, prepared.words, top, rng)
        read.append({"clusters": count, "epsilon": epsilon, "rho": rho[count], "count": found.count, **asdict(found)})
        for element in heaviest(prepared.corpus, clusters, prepared.words, 5, 6):
            elements.append({"clusters": count, **asdict(element)})
    return read, elements
