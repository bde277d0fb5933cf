"""Sections 4.3 and 4.4: the last layer of a network on photos, and a whole network on CIFAR-10."""

from elementdp.companion.experiments.images.advantage import Advantage, advantages, rates_tried
from elementdp.companion.experiments.images.cifar_page import CifarPage
from elementdp.companion.experiments.images.drawing import called, draw
from elementdp.companion.experiments.images.exhibits import live_run
from elementdp.companion.experiments.images.long_runs import LongRuns, section_sentences
from elementdp.companion.experiments.images.network import tutorial_network
from elementdp.companion.experiments.images.paper_length import PaperLength
from elementdp.companion.experiments.images.photo_set import PhotoSet, reduced
from elementdp.companion.experiments.images.photos_page import PhotosPage
from elementdp.companion.experiments.images.pictures import album, largest_elements
from elementdp.companion.experiments.images.plans import (
    CIFAR_LEGEND,
    PHOTOS_LEGEND,
    CifarPlan,
    ImagePlan,
    PhotosPlan,
)
from elementdp.companion.experiments.images.pools import PHOTO_SOURCES, load_cifar, load_photos
from elementdp.companion.experiments.images.results import fair_results, from_row, recorded_results, results_of, to_row
from elementdp.companion.experiments.images.running import (
    Compute,
    Hyperparameters,
    ImageTask,
    RunResult,
    device_of,
    run,
)
from elementdp.companion.experiments.images.sentences import cifar_sentences, photos_sentences
from elementdp.companion.experiments.images.stand_ins import cifar_stand_in, photos_stand_in
from elementdp.companion.experiments.images.study import study
from elementdp.companion.experiments.images.tasks import holdings, last_layer, whole_network
from elementdp.companion.experiments.images.tuning import Tuned, at_rate, climb, ladders, tune
from elementdp.companion.experiments.images.variants import (
    BANDS,
    WITHOUT_COINS,
    Accounting,
    Schedule,
    Variant,
    accountings,
    event,
    noise_for,
    non_private,
    true_epsilon,
)

__all__ = [
    "BANDS",
    "CIFAR_LEGEND",
    "PHOTOS_LEGEND",
    "PHOTO_SOURCES",
    "WITHOUT_COINS",
    "Accounting",
    "Advantage",
    "CifarPage",
    "CifarPlan",
    "Compute",
    "Hyperparameters",
    "ImagePlan",
    "ImageTask",
    "LongRuns",
    "PaperLength",
    "PhotoSet",
    "PhotosPage",
    "PhotosPlan",
    "RunResult",
    "Schedule",
    "Tuned",
    "Variant",
    "accountings",
    "advantages",
    "album",
    "at_rate",
    "called",
    "cifar_sentences",
    "cifar_stand_in",
    "climb",
    "device_of",
    "draw",
    "event",
    "fair_results",
    "from_row",
    "holdings",
    "ladders",
    "largest_elements",
    "last_layer",
    "live_run",
    "load_cifar",
    "load_photos",
    "noise_for",
    "non_private",
    "photos_sentences",
    "photos_stand_in",
    "rates_tried",
    "recorded_results",
    "reduced",
    "results_of",
    "run",
    "section_sentences",
    "study",
    "to_row",
    "true_epsilon",
    "tune",
    "tutorial_network",
    "whole_network",
]
