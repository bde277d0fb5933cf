"""The noise of one step."""

from collections.abc import Sequence

from torch import Tensor

from elementdp.learning.randomness import Stream


def add_noise(total: Sequence[Tensor], scale: float, stream: Stream) -> None:
    """Add N(0, scale²) to every coordinate, drawn in double precision and rounded to the sum's own.

    Rounding leaves traces of the sum in the low bits of what is released: :mod:`elementdp.learning.exact` has none.
    """
    for tensor in total:
        noise = stream.normal(tensor.numel()).mul_(scale)
        tensor.add_(noise.view(tensor.shape).to(tensor))
