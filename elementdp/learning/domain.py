"""The parameter set Θ and the projection onto it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from elementdp.errors import ArgumentError, positive


class Domain(Protocol):
    """A closed convex Θ. Tensors carry a leading dimension: many parameter vectors are projected at once."""

    def project(self, points: Sequence[Tensor]) -> list[Tensor]:
        """proj_Θ of each point; a point is one slice of every tensor, the model's parameters in order."""


@dataclass(frozen=True)
class Ball:
    """Θ = {θ : ||θ||₂ ≤ radius}."""

    radius: float

    def __post_init__(self) -> None:
        positive("radius", self.radius)

    def project(self, points: Sequence[Tensor]) -> list[Tensor]:
        """Scale every point longer than the radius."""
        squares = sum(point.reshape(len(point), -1).square().sum(1) for point in points)
        assert isinstance(squares, Tensor)
        scale = (self.radius / squares.sqrt().clamp_min(torch.finfo(squares.dtype).tiny)).clamp_max(1)
        return [point * scale.view(-1, *[1] * (point.dim() - 1)) for point in points]


@dataclass(frozen=True)
class Box:
    """Θ = [low, high]^d."""

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ArgumentError("high", self.high, f"above low = {self.low}")

    def project(self, points: Sequence[Tensor]) -> list[Tensor]:
        """Clamp every coordinate."""
        return [point.clamp(self.low, self.high) for point in points]


def gradient_mapping(
    domain: Domain | None, theta: Sequence[Tensor], gradients: Sequence[Tensor], step: float
) -> list[Tensor]:
    """(θ - proj_Θ(θ - αg))/α for each g: Algorithm 1's Δ with the sign that the iteration needs.

    It wants g itself: clamping to a box acts on every coordinate, and what is left of a step that a ball cuts short is
    a difference of nearly equal vectors, whose norm inner products alone would give with too few digits. So a bounded Θ
    has no fast rule; one gradient per group is formed, a few at a time.
    """
    if domain is None:
        return list(gradients)
    moved = domain.project([t.unsqueeze(0) - step * g for t, g in zip(theta, gradients, strict=True)])
    return [(t.unsqueeze(0) - m) / step for t, m in zip(theta, moved, strict=True)]
