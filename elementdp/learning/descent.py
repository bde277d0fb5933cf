"""The private iteration (Equation (15)), with its sign put right: θ ← θ - α_k M(θ)/(qn).

Algorithm 1 prints Δ = (θ⁺ - θ₀)/α, which already points downhill, and the iteration then subtracts it: as printed it
climbs. Here Δ = (θ₀ - θ⁺)/α (the gradient itself where Θ does not bind), and subtracting it descends.
"""

import warnings
from collections.abc import Sequence
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from elementdp.errors import ArgumentError
from elementdp.files import sha256_bytes
from elementdp.learning.domain import Domain
from elementdp.learning.plan import Plan

FORETOLD = 1000
"""So many learning rates of a scheduler are compared when a run goes on: its functions have no state to compare."""


def optimizer_of(plan: Plan, parameters: Sequence[nn.Parameter]) -> torch.optim.Optimizer | None:
    """The optimizer, if it moves every parameter: one left out would spend privacy and stay where it is."""
    if plan.optimizer is None:
        return None
    optimizer = plan.optimizer(list(parameters))
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ArgumentError("optimizer", optimizer, "a function that returns a torch optimizer")
    closure = signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is closure.empty:
        raise ArgumentError(
            "optimizer", type(optimizer).__name__, "one that looks once a step: each look at the data needs noise"
        )
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise ArgumentError(
            "optimizer", "SparseAdam", "one of dense gradients, as Adam is: noise falls on every number"
        )
    moved = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if missing := sum(id(p) not in moved for p in parameters):
        raise ArgumentError(
            "optimizer",
            optimizer,
            f"one of all parameters that are trained: {missing} of {len(parameters)} are missing (freeze them with "
            "requires_grad_(False) instead)",
        )
    return optimizer


def scheduler_of(plan: Plan, optimizer: torch.optim.Optimizer | None) -> torch.optim.lr_scheduler.LRScheduler | None:
    """The scheduler, if it is one and moves this optimizer's learning rates."""
    if plan.scheduler is None or optimizer is None:
        return None
    scheduler = plan.scheduler(optimizer)
    if not isinstance(scheduler, torch.optim.lr_scheduler.LRScheduler):
        raise ArgumentError("scheduler", scheduler, "a function that returns a scheduler of torch.optim.lr_scheduler")
    if scheduler.optimizer is not optimizer:
        raise ArgumentError("scheduler", scheduler, "one of the optimizer that it is given, not of another one")
    return scheduler


def described(plan: Plan, parameters: Sequence[nn.Parameter]) -> dict[str, Any]:
    """What can be compared of the plan's optimizer and scheduler, made once more for it: settings and learning rates.

    Raises:
        ArgumentError: for a scheduler that wants more than to be told of a step.
    """
    optimizer = optimizer_of(plan, parameters)
    if optimizer is None:
        return {"optimizer": None, "scheduler": None}
    groups = [{k: str(v) for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    found = {"optimizer": f"{type(optimizer).__name__} {groups}", "scheduler": None}
    before = [dict(group) for group in optimizer.param_groups]  # a maker may return the same optimizer each time
    scheduler = scheduler_of(plan, optimizer)
    if scheduler is None:
        return found
    rates: list[list[float]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the optimizer does not move
        try:
            while len(rates) < FORETOLD:
                rates.append([float(group["lr"]) for group in optimizer.param_groups])
                scheduler.step()
        except TypeError as error:
            raise ArgumentError(
                "scheduler", scheduler, f"one that goes by the number of steps alone; this one wants more ({error})"
            ) from error
        except ValueError:  # some end with the run
            pass
    for group, values in zip(optimizer.param_groups, before, strict=True):
        group.clear()
        group.update(values)
    told = sha256_bytes(repr(rates).encode())[:16]
    return found | {"scheduler": f"{type(scheduler).__name__}, rates {rates[0]} to {rates[-1]}, hash {told}"}


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
