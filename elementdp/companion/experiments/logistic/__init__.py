"""Section 4.2: simulated logistic regression with elements."""

from elementdp.companion.experiments.logistic.figure import (
    GridCell,
    LogisticPlan,
    LogisticPoint,
    Rate,
    figure,
    run_settings,
)
from elementdp.companion.experiments.logistic.iteration import CellBatch, iterate
from elementdp.companion.experiments.logistic.model import Design, draw
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
