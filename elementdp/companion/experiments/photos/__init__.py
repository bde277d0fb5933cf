"""Section 4.3: tuning the last layer of a network on photos."""

from elementdp.companion.experiments.photo_set import reduced
from elementdp.companion.experiments.photos.advantage import Advantage, advantages, rates_tried
from elementdp.companion.experiments.photos.curves import Setting, Task, Told, device_of, from_row, run
from elementdp.companion.experiments.photos.drawing import called, draw, draw_legend
from elementdp.companion.experiments.photos.figure import LEGEND, Plan, figure, holdings, last_layer
from elementdp.companion.experiments.photos.lines import (
    Line,
    Schedule,
    Way,
    event,
    noise_for,
    non_private,
    three_ways,
    true_epsilon,
)
from elementdp.companion.experiments.photos.pool import PHOTO_SOURCES, Pool, load_pool, stand_in
from elementdp.companion.experiments.photos.sentences import Open, fair_lines, recorded_lines, sentences
from elementdp.companion.experiments.photos.tuning import Tuned, at_rate, climb, ladders, tuned

__all__ = [
    "LEGEND",
    "PHOTO_SOURCES",
    "Advantage",
    "Line",
    "Open",
    "Plan",
    "Pool",
    "Schedule",
    "Setting",
    "Task",
    "Told",
    "Tuned",
    "Way",
    "advantages",
    "at_rate",
    "called",
    "climb",
    "device_of",
    "draw",
    "draw_legend",
    "event",
    "fair_lines",
    "figure",
    "from_row",
    "holdings",
    "ladders",
    "last_layer",
    "load_pool",
    "noise_for",
    "non_private",
    "rates_tried",
    "recorded_lines",
    "reduced",
    "run",
    "sentences",
    "stand_in",
    "three_ways",
    "true_epsilon",
    "tuned",
]
