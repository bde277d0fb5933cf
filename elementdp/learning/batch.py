"""The groups that one step sees: everything one user has in one element, side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from elementdp.errors import ArgumentError
from elementdp.learning._fast.segments import Pair, Segments


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
