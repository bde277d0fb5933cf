"""The private iteration (Equation (15)), with its sign put right: θ ← θ - α_k M(θ)/(qn).

Algorithm 1 prints Δ = (θ⁺ - θ₀)/α, which already points downhill, and the iteration then subtracts it: as printed it
climbs. Here Δ = (θ₀ - θ⁺)/α (the gradient itself where Θ does not bind), and subtracting it descends.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elementdp.learning.domain import Domain


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
