"""Section 4.1: histograms of users' words."""

from elementdp.experiments.words.corpus import Corpus, Stop, corpus, tokens
from elementdp.experiments.words.figure import PAPER_CLUSTERS, Line, Plan, Point, Slope, figure, slope
from elementdp.experiments.words.histogram import (
    Elements,
    Halves,
    Sensitivity,
    drawn_error,
    expected_error,
    largest_mass,
    noise_scale,
    true_epsilon,
)
from elementdp.experiments.words.partitions import word_clusters
from elementdp.experiments.words.prepare import Prepared, prepare
from elementdp.experiments.words.reading import Element, Reading, heaviest, read_words, readings
from elementdp.experiments.words.sentences import curve, scaling, sentences

__all__ = [
    "PAPER_CLUSTERS",
    "Corpus",
    "Element",
    "Elements",
    "Halves",
    "Line",
    "Plan",
    "Point",
    "Prepared",
    "Reading",
    "Sensitivity",
    "Slope",
    "Stop",
    "corpus",
    "curve",
    "drawn_error",
    "expected_error",
    "figure",
    "heaviest",
    "largest_mass",
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
