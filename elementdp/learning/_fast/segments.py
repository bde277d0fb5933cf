"""Rows of a batch in groups: one group holds everything one user has in one element, side by side."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Memory:
    """How much is held at a time, in bytes: it decides how the work is cut, not what comes out.

    ``chunk`` bounds what passes through the model at once (0: 32 MiB on the CPU, 1 GiB elsewhere), ``keep`` the group
    gradients of a layer (beyond it norms are formed piece by piece), and ``cache`` the unfolded rows of a convolution.
    """

    chunk: int = 0
    keep: int = 1 << 24
    cache: int = 1 << 22


@dataclass(frozen=True)
class Stretch:
    """Neighbouring groups of one size: rows and groups as half-open ranges."""

    size: int
    rows: slice
    groups: slice

    @property
    def count(self) -> int:
        """How many groups."""
        return int(self.groups.stop - self.groups.start)


class Segments:
    """Consecutive groups with given sizes. Neighbours of equal size are handled together, without copies."""

    def __init__(self, sizes: Sequence[int], memory: Memory = Memory()) -> None:  # noqa: B008
        self.sizes = tuple(sizes)
        self.memory = memory
        self.rows = sum(self.sizes)
        self.stretches = tuple(_stretches(self.sizes))

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The sizes as an array."""
        return np.array(self.sizes, dtype=np.int64)

    @cached_property
    def _owner(self) -> Tensor:
        return owners(self.lengths)

    def owner(self, device: torch.device) -> Tensor:
        """The group of every row."""
        return self._owner.to(device)

    def sum(self, rows: Tensor) -> Tensor:
        """Sums over the rows of each group."""
        if len(self.stretches) == 1:
            return torch.unflatten(rows, 0, (len(self), self.sizes[0])).sum(1)
        return segment_sums(rows, self.owner(rows.device), len(self))

    def spread(self, values: Tensor) -> Tensor:
        """One value a group, repeated for each of its rows."""
        return values.index_select(0, self.owner(values.device))

    def shares(self, like: Tensor) -> Tensor:
        """Every row's weight in the mean over its group."""
        return self.spread(torch.from_numpy(1 / self.lengths).to(like.dtype).to(like.device))


def owners(lengths: NDArray[np.int64]) -> Tensor:
    """The segment of every entry, for consecutive segments of these lengths."""
    return torch.from_numpy(np.repeat(np.arange(len(lengths)), lengths))


def segment_sums(values: Tensor, owner: Tensor, count: int) -> Tensor:
    """Sums over the entries that each of ``count`` segments owns."""
    return values.new_zeros(count, *values.shape[1:]).index_add_(0, owner, values)


def accurate(values: Tensor) -> Tensor:
    """In float64, for sums of many numbers; there is none on Apple's devices."""
    return values if values.device.type == "mps" else values.double()


def _stretches(sizes: Sequence[int]) -> list[Stretch]:
    stretches: list[Stretch] = []
    row = group = 0
    for size, equal in itertools.groupby(sizes):
        count = len(list(equal))
        stretches.append(Stretch(size, slice(row, row + count * size), slice(group, group + count)))
        row, group = row + count * size, group + count
    return stretches
