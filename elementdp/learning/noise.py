"""How a step's sum is formed and made noisy: in floating point here, without its traces in :mod:`.exact`."""

from collections.abc import Sequence
from functools import reduce
from typing import Protocol

import torch
from torch import Tensor

from elementdp.learning.batch import Batch
from elementdp.learning.clipping import ClippedSum, GroupClipper
from elementdp.learning.randomness import Purpose, Randomness, Room


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

    def __init__(self, rho: float, weights: Sequence[float] = (1.0,)) -> None:
        self.rho, self.weights = rho, weights
        self.recent: dict[int, list[Tensor]] = {}  # the normal vectors of the last steps, as many as have weights
        self._room = Room()
        self._vector = torch.empty(0)  # where the noise of a step is drawn; the system is slow to hand out memory

    def sum(self, clipper: GroupClipper, batch: Batch, step: float) -> ClippedSum:
        """The clipped sum as it is."""
        return clipper(batch, step)

    def add_noise(self, total: Sequence[Tensor], sigma: float, random: Randomness, k: int) -> None:
        """Add Σ_j weight_j·Z_{k−j}, with Z ~ N(0, ρ²σ²) drawn in double precision and rounded to the sum's own.

        After a stop the vectors of the steps before are drawn again.
        """
        for back, weight in enumerate(self.weights[:k]):
            drawn = self.recent.get(k - back) or self._drawn(total, sigma, random, k - back)
            for tensor, noise in zip(total, drawn, strict=True):
                tensor.add_(noise, alpha=weight)
            if len(self.weights) > 1:
                self.recent[k - back] = drawn
        self.recent.pop(k + 1 - len(self.weights), None)

    def _drawn(self, total: Sequence[Tensor], sigma: float, random: Randomness, k: int) -> list[Tensor]:
        sizes = [tensor.numel() for tensor in total]
        dtype = reduce(torch.promote_types, [tensor.dtype for tensor in total])
        vector = self._vector
        if len(vector) != sum(sizes) or vector.dtype != dtype or len(self.weights) > 1:  # several are kept apart
            vector = self._vector = torch.empty(sum(sizes), dtype=dtype)
        random.stream(Purpose.NOISE, k).fill_normal(vector, self.rho * sigma, self._room)
        return [
            part.view(tensor.shape).to(tensor) for part, tensor in zip(torch.split(vector, sizes), total, strict=True)
        ]

    def released(self, total: Sequence[Tensor]) -> list[Tensor]:
        """The sum itself."""
        return list(total)
