"""Rows of a batch in groups: one group holds everything one user has in one element, side by side."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elementdp.errors import ArgumentError

Pair = tuple[Tensor, Tensor]
"""Model inputs and targets of some rows."""


@dataclass(frozen=True)
class Run:
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

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.rows = sum(self.sizes)
        self.runs = tuple(_runs(self.sizes))

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
        return segment_sums(rows, self.owner(rows.device), len(self))

    def spread(self, values: Tensor) -> Tensor:
        """One value a group, repeated for each of its rows."""
        return values.index_select(0, self.owner(values.device))


def owners(lengths: NDArray[np.int64]) -> Tensor:
    """The segment of every entry, for consecutive segments of these lengths."""
    return torch.from_numpy(np.repeat(np.arange(len(lengths)), lengths))


def segment_sums(values: Tensor, owner: Tensor, count: int) -> Tensor:
    """Sums over the entries that each of ``count`` segments owns."""
    return values.new_zeros(count, *values.shape[1:]).index_add_(0, owner, values)


def _runs(sizes: Sequence[int]) -> list[Run]:
    runs: list[Run] = []
    row = group = 0
    for size, equal in itertools.groupby(sizes):
        count = len(list(equal))
        runs.append(Run(size, slice(row, row + count * size), slice(group, group + count)))
        row, group = row + count * size, group + count
    return runs


@dataclass(frozen=True)
class Batch:
    """The groups one step sees. ``fetch`` loads a range of rows; groups follow one another with these sizes.

    Groups of equal size should be neighbours: that is what makes a step fast.
    """

    sizes: tuple[int, ...]
    fetch: Callable[[slice], Pair]

    @classmethod
    def of(cls, inputs: Tensor, targets: Tensor, sizes: Sequence[int]) -> "Batch":
        """A batch in memory whose rows are already in groups."""
        if min(sizes, default=1) < 1 or sum(sizes) != len(inputs) or len(targets) != len(inputs):
            raise ArgumentError("sizes", list(sizes), f"positive group sizes that add up to the {len(inputs)} rows")
        return cls(tuple(int(size) for size in sizes), lambda rows: (inputs[rows], targets[rows]))

    def chunks(self, rows: int) -> list[tuple[slice, Segments]]:
        """Whole groups in even chunks of at most ``rows`` rows; a larger group is a chunk of its own."""
        total = sum(self.sizes)
        if 0 < total <= rows:
            return [(slice(0, total), Segments(self.sizes))]
        rows = min(rows, -(-total // -(-total // rows)) + max(self.sizes)) if total else rows
        result: list[tuple[slice, Segments]] = []
        start = stop = first = 0
        for index, size in enumerate(self.sizes):
            if index > first and stop + size - start > rows:
                result.append((slice(start, stop), Segments(self.sizes[first:index])))
                start, first = stop, index
            stop += size
        if self.sizes:
            result.append((slice(start, stop), Segments(self.sizes[first:])))
        return result
