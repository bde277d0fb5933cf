"""Section 4.2: simulated logistic regression with elements."""

from elementdp.companion.experiments.logistic.figure import Plan, Point, Rate, Setting, figure, grid, run_settings
from elementdp.companion.experiments.logistic.iteration import Cells, Draw, Estimates, iterate
from elementdp.companion.experiments.logistic.model import Design, Groups, Sample, draw
from elementdp.companion.experiments.logistic.noise import Method, event, noise_for, true_epsilon
from elementdp.companion.experiments.logistic.sentences import line, sentences

__all__ = [
    "Cells",
    "Design",
    "Draw",
    "Estimates",
    "Groups",
    "Method",
    "Plan",
    "Point",
    "Rate",
    "Sample",
    "Setting",
    "draw",
    "event",
    "figure",
    "grid",
    "iterate",
    "line",
    "noise_for",
    "run_settings",
    "sentences",
    "true_epsilon",
]
