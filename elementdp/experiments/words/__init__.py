"""Section 4.1: histograms of users' words."""

from elementdp.experiments.words.corpus import Corpus, Stop, corpus, tokens
from elementdp.experiments.words.figure import PAPER_CLUSTERS, Line, Plan, Point, Slope, figure, slope
from elementdp.experiments.words.histogram import Elements, Halves, Sensitivity, largest_mass, true_epsilon
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
    "figure",
    "heaviest",
    "largest_mass",
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
