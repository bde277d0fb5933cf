"""How a step's sum is formed and made noisy: in floating point here, without its traces in :mod:`.exact`."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from elementdp.learning.batch import Batch
from elementdp.learning.clipping import ClippedSum, GroupClipper
from elementdp.learning.randomness import Purpose, Randomness


class Arithmetic(Protocol):
    """The numbers that a sum and its noise are made of."""

    def sum(self, clipper: GroupClipper, batch: Batch, step: float) -> ClippedSum:
        """This process's part of Σ [Δ]_ρ."""

    def add_noise(self, total: Sequence[Tensor], sigma: float, random: Randomness, k: int) -> None:
        """Add the noise of step k, of deviation σ in units of ρ, to the sum; one process does."""

    def released(self, total: Sequence[Tensor]) -> list[Tensor]:
        """The noisy sum over all processes as the iteration uses it."""


class FloatArithmetic:
    """Floating point: fast, and of research grade.

    Adding rounds, and the low bits of what is released tell something about the sum: see
    :class:`elementdp.learning.exact.ExactArithmetic`.
    """

    def __init__(self, rho: float) -> None:
        self.rho = rho

    def sum(self, clipper: GroupClipper, batch: Batch, step: float) -> ClippedSum:
        """The clipped sum as it is."""
        return clipper(batch, step)

    def add_noise(self, total: Sequence[Tensor], sigma: float, random: Randomness, k: int) -> None:
        """Add N(0, ρ²σ²) to every coordinate, drawn in double precision and rounded to the sum's own."""
        stream = random.stream(Purpose.NOISE, k)
        for tensor in total:
            noise = stream.normal(tensor.numel()).mul_(self.rho * sigma)
            tensor.add_(noise.view(tensor.shape).to(tensor))

    def released(self, total: Sequence[Tensor]) -> list[Tensor]:
        """The sum itself."""
        return list(total)
