"""Private training by elements: Algorithm 1 and the private iteration for torch models."""

from elementdp.learning.budget import Budget, Target
from elementdp.learning.checkpoint import CheckpointError
from elementdp.learning.clipping import ClippedSum, GroupClipper, Method
from elementdp.learning.data import UserData
from elementdp.learning.domain import Ball, Box, Domain
from elementdp.learning.groups import Batch
from elementdp.learning.iteration import StepSize
from elementdp.learning.loss import element_loss, element_risk
from elementdp.learning.support import ModelError
from elementdp.learning.team import LostProcessError
from elementdp.learning.training import Trained, train

__all__ = [
    "Ball",
    "Batch",
    "Box",
    "Budget",
    "CheckpointError",
    "ClippedSum",
    "Domain",
    "GroupClipper",
    "LostProcessError",
    "Method",
    "ModelError",
    "StepSize",
    "Target",
    "Trained",
    "UserData",
    "element_loss",
    "element_risk",
    "train",
]
