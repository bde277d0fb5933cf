"""The groups that one step sees: everything one user has in one element, side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from elementdp.errors import ArgumentError
from elementdp.learning._fast.segments import Memory, Segments
from elementdp.learning.rows import Pair, Rows, count, each


@dataclass(frozen=True)
class Batch:
    """The groups one step sees. ``fetch`` loads some of their rows; groups follow one another with these sizes.

    Groups of equal size should be neighbours: that is what makes a step fast.
    """

    sizes: tuple[int, ...]
    fetch: Callable[[slice | Tensor], Pair]

    @classmethod
    def of(cls, inputs: Rows, targets: Rows, sizes: Sequence[int]) -> "Batch":
        """A batch in memory whose rows are already in groups."""
        rows = count((inputs, targets))
        if min(sizes, default=1) < 1 or sum(sizes) != rows:
            raise ArgumentError("sizes", list(sizes), f"positive group sizes that add up to the {rows} rows")
        return cls(
            tuple(int(size) for size in sizes),
            lambda part: (each(inputs, lambda t: t[part]), each(targets, lambda t: t[part])),
        )

    def chunks(self, rows: int, memory: Memory) -> list[tuple[slice, Segments]]:
        """Whole groups in even chunks of at most ``rows`` rows; a larger group is a chunk of its own."""
        total = sum(self.sizes)
        if 0 < total <= rows:
            return [(slice(0, total), Segments(self.sizes, memory))]
        rows = min(rows, -(-total // -(-total // rows)) + max(self.sizes)) if total else rows
        result: list[tuple[slice, Segments]] = []
        start = stop = first = 0
        for index, size in enumerate(self.sizes):
            if index > first and stop + size - start > rows:
                result.append((slice(start, stop), Segments(self.sizes[first:index], memory)))
                start, first = stop, index
            stop += size
        if self.sizes:
            result.append((slice(start, stop), Segments(self.sizes[first:], memory)))
        return result
