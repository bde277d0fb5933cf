"""The private iteration (eqn:private-element-sgd), with its sign put right: θ ← θ - α_k M(θ)/(qn).

Algorithm 1 prints Δ = (θ⁺ - θ₀)/α, which already points downhill, and the iteration then subtracts it: as printed it
climbs. Here Δ = (θ₀ - θ⁺)/α (the gradient itself where Θ does not bind), and subtracting it descends.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elementdp.errors import nonnegative, positive
from elementdp.learning.domain import Domain


@dataclass(frozen=True)
class StepSize:
    """α_k = α₀ k^(-β); β = 0 is a constant step."""

    alpha0: float
    beta: float = 0.0

    def __post_init__(self) -> None:
        positive("alpha0", self.alpha0)
        nonnegative("beta", self.beta)

    def __call__(self, k: int) -> float:
        return float(self.alpha0 * k**-self.beta)


def add_noise(total: Sequence[Tensor], scale: float, generator: torch.Generator) -> None:
    """Add N(0, scale²) to every coordinate: one draw per step, floating point and so of research grade."""
    for tensor in total:
        noise = torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype, device=generator.device)
        tensor.add_(noise.to(tensor.device), alpha=scale)


def descend(
    parameters: Sequence[nn.Parameter],
    direction: Sequence[Tensor],
    step: float,
    domain: Domain | None,
    optimizer: torch.optim.Optimizer | None,
) -> None:
    """θ ← proj_Θ(θ - α direction), or an optimizer's step along it. Both only see the private sum.

    The printed iteration does not project after the noise is added, so its θ leaves Θ; projecting costs no privacy.
    """
    with torch.no_grad():
        if optimizer is not None:
            for parameter, gradient in zip(parameters, direction, strict=True):
                parameter.grad = gradient
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        else:
            for parameter, gradient in zip(parameters, direction, strict=True):
                parameter.sub_(gradient, alpha=step)
        if domain is not None:
            inside = domain.project([p.detach()[None] for p in parameters])
            for parameter, value in zip(parameters, inside, strict=True):
                parameter.copy_(value[0])


class Polyak:
    """The running average θ̄_k = (θ_1 + … + θ_k)/k of the iterates."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.values = [torch.zeros_like(p) for p in parameters]
        self.count = 0

    def update(self, parameters: Sequence[nn.Parameter]) -> None:
        """Take in one more iterate."""
        self.count += 1
        for mean, parameter in zip(self.values, parameters, strict=True):
            mean.add_(parameter.detach() - mean, alpha=1 / self.count)
