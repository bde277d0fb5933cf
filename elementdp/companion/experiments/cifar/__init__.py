"""Section 4.4: training a whole network on CIFAR-10."""

from elementdp.companion.experiments.cifar.figure import (
    LEGEND,
    Difference,
    Plan,
    differences,
    pixels,
    tutorial_network,
    whole_network,
)
from elementdp.companion.experiments.cifar.pool import Photos, load_photos, stand_in
from elementdp.companion.experiments.cifar.sentences import gap, sentences

__all__ = [
    "LEGEND",
    "Difference",
    "Photos",
    "Plan",
    "differences",
    "gap",
    "load_photos",
    "pixels",
    "sentences",
    "stand_in",
    "tutorial_network",
    "whole_network",
]
