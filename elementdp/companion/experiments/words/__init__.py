"""Section 4.1: histograms of users' words."""

from elementdp.companion.experiments.words.corpus import Corpus, Stop, corpus, tokens
from elementdp.companion.experiments.words.figure import (
    PAPER_CLUSTERS,
    PartitionSummary,
    Slope,
    WordsPlan,
    WordsPoint,
    figure,
    slope,
)
from elementdp.companion.experiments.words.histogram import (
    Elements,
    Halves,
    Sensitivity,
    drawn_error,
    expected_error,
    largest_mass,
    noise_scale,
    true_epsilon,
)
from elementdp.companion.experiments.words.page import WordsPage, live_run
from elementdp.companion.experiments.words.partitions import word_clusters
from elementdp.companion.experiments.words.prepare import Prepared, prepare
from elementdp.companion.experiments.words.reading import Element, Reading, heaviest, read_words, readings
from elementdp.companion.experiments.words.sentences import curve, scaling, sentences

__all__ = [
    "PAPER_CLUSTERS",
    "Corpus",
    "Element",
    "Elements",
    "Halves",
    "PartitionSummary",
    "Prepared",
    "Reading",
    "Sensitivity",
    "Slope",
    "Stop",
    "WordsPage",
    "WordsPlan",
    "WordsPoint",
    "corpus",
    "curve",
    "drawn_error",
    "expected_error",
    "figure",
    "heaviest",
    "largest_mass",
    "live_run",
    "noise_scale",
    "prepare",
    "read_words",
    "readings",
    "scaling",
    "sentences",
    "slope",
    "tokens",
    "true_epsilon",
    "word_clusters",
]
