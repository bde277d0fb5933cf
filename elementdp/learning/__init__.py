"""Private training by elements: Algorithm 1 and the private iteration for torch models."""

from elementdp.errors import missing_extra

try:
    import cryptography as _cryptography  # noqa: F401
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise missing_extra(error, "learning") from error

from elementdp.learning.batch import Batch
from elementdp.learning.checkpoint import Checkpoint, CheckpointError
from elementdp.learning.clipping import ClippedSum, GroupClipper
from elementdp.learning.data import UserData
from elementdp.learning.domain import Ball, Box, Domain
from elementdp.learning.loss import element_loss, element_risk
from elementdp.learning.mapped import mapped_data, unpack_parquet
from elementdp.learning.models import ModelError
from elementdp.learning.passes import Method
from elementdp.learning.plan import Noise, Plan, StepSize, Target
from elementdp.learning.team import LostProcessError, TeamError
from elementdp.learning.training import Step, Trained, train

__all__ = [
    "Ball",
    "Batch",
    "Box",
    "Checkpoint",
    "CheckpointError",
    "ClippedSum",
    "Domain",
    "GroupClipper",
    "LostProcessError",
    "Method",
    "ModelError",
    "Noise",
    "Plan",
    "Step",
    "StepSize",
    "Target",
    "TeamError",
    "Trained",
    "UserData",
    "element_loss",
    "element_risk",
    "mapped_data",
    "train",
    "unpack_parquet",
]
