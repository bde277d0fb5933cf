"""Several processes training together: users are sharded, sums are added up, noise is added once."""

import atexit
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from elementdp.errors import ElementdpError

T = TypeVar("T")


class LostProcessError(ElementdpError):
    """Another process of the run has died or stopped answering: the run cannot go on."""


class TeamError(ElementdpError):
    """The processes of a run were not given the same things."""


class Team:
    """The processes of ``torchrun``, or this process alone. One that is silent for ``timeout`` seconds is lost."""

    def __init__(self, device: torch.device, timeout: float) -> None:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
            backend = "nccl" if device.type == "cuda" else "gloo"
            with _answers("before all of them had started"):
                dist.init_process_group(backend, timeout=timedelta(seconds=max(timeout, 60.0)))
            atexit.register(_part)
        together = dist.is_available() and dist.is_initialized()
        self.size = dist.get_world_size() if together else 1
        self.rank = dist.get_rank() if together else 0
        self.group = dist.new_group(timeout=timedelta(seconds=timeout)) if self.size > 1 else None

    @property
    def leads(self) -> bool:
        """Whether this process adds the noise, writes checkpoints and shows progress."""
        return self.rank == 0

    def add_up(self, tensors: Sequence[Tensor], step: int, resume: str) -> None:
        """Replace every tensor, all of one type, by its sum over the processes."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        with _answers(f"at step {step}; {resume}"):
            dist.all_reduce(flat, group=self.group)
        for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def shared(self, value: T, when: str = "before the first step") -> T:
        """The leader's value, for everyone."""
        if self.size == 1:
            return value
        box = [value]
        with _answers(when):
            dist.broadcast_object_list(box, src=0, group=self.group)
        return box[0]

    def agree(self, settings: Mapping[str, Any]) -> None:
        """Raise, in every process, if they do not all have the same settings, and say which differ."""
        if self.size == 1:
            return
        all_of_them: list[Any] = [None] * self.size
        with _answers("before the first step"):
            dist.all_gather_object(all_of_them, dict(settings), group=self.group)
        other = sorted({name for name in settings for one in all_of_them if one[name] != all_of_them[0][name]})
        if other:
            raise TeamError(
                f"the processes of this run differ in {', '.join(other)}: give every process all users' data, in the "
                "same order, and the same arguments. Each takes its share of the users by itself"
            )


def _part() -> None:
    """Leave the other processes before Python ends: torch's own threads may otherwise end the process by an abort."""
    if dist.is_initialized():
        dist.destroy_process_group()


@contextmanager
def _answers(when: str) -> Iterator[None]:
    """What torch raises when a process is gone, in words that say what to do."""
    try:
        yield
    except RuntimeError as error:
        raise LostProcessError(f"another process of this run died or stopped answering {when}") from error
