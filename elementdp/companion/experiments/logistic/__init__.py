"""Section 4.2: simulated logistic regression with elements."""

from elementdp.companion.experiments.logistic.figure import (
    GridCell,
    LogisticPlan,
    LogisticPoint,
    Rate,
    figure,
    grid,
    run_settings,
)
from elementdp.companion.experiments.logistic.iteration import CellBatch, Estimates, iterate
from elementdp.companion.experiments.logistic.model import ClipGroups, Design, SimulatedUsers, draw
from elementdp.companion.experiments.logistic.noise import (
    PAPER,
    WITHOUT_COINS,
    LogisticMethod,
    event,
    noise_for,
    true_epsilon,
)
from elementdp.companion.experiments.logistic.page import LogisticPage, live_figure
from elementdp.companion.experiments.logistic.sentences import line, sentences

__all__ = [
    "PAPER",
    "WITHOUT_COINS",
    "CellBatch",
    "ClipGroups",
    "Design",
    "Estimates",
    "GridCell",
    "LogisticMethod",
    "LogisticPage",
    "LogisticPlan",
    "LogisticPoint",
    "Rate",
    "SimulatedUsers",
    "draw",
    "event",
    "figure",
    "grid",
    "iterate",
    "line",
    "live_figure",
    "noise_for",
    "run_settings",
    "sentences",
    "true_epsilon",
]
