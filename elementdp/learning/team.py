"""Several processes training together: users are sharded, sums are added up, noise is added once."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from elementdp.errors import ElementdpError

T = TypeVar("T")


class LostProcessError(ElementdpError):
    """Another process of the run has died: the run cannot go on."""


class Team:
    """The processes of ``torchrun``, or this process alone."""

    def __init__(self, device: torch.device, timeout: float = 600.0) -> None:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
            backend = "nccl" if device.type == "cuda" else "gloo"
            dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
        together = dist.is_available() and dist.is_initialized()
        self.size = dist.get_world_size() if together else 1
        self.rank = dist.get_rank() if together else 0

    @property
    def leads(self) -> bool:
        """Whether this process adds the noise, writes checkpoints and shows progress."""
        return self.rank == 0

    def add_up(self, tensors: Sequence[Tensor], step: int, resume: str) -> None:
        """Replace every tensor by its sum over the processes."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        try:
            dist.all_reduce(flat)
        except RuntimeError as error:
            raise LostProcessError(
                f"another process of this run died or stopped answering at step {step}; {resume}"
            ) from error
        for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def shared(self, value: T) -> T:
        """The leader's value, for everyone."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]
