"""The oracle of these tests: Algorithm 1 written down once more, group by group, in float64, with plain autograd."""

import copy
import math

import torch
from torch import Tensor, nn


def clipped_sum(model, loss, inputs, targets, sizes, rho) -> tuple[list[Tensor], list[float]]:
    """Σ_g clip(mean gradient of group g) and the norms, one group at a time."""
    model = copy.deepcopy(model).double()
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    targets = targets.double() if targets.is_floating_point() else targets
    parameters = [p for p in model.parameters() if p.requires_grad]
    total = [torch.zeros_like(p) for p in parameters]
    norms = []
    start = 0
    for size in sizes:
        model.zero_grad(set_to_none=True)
        rows = slice(start, start + size)
        loss(model(inputs[rows]), targets[rows]).mean().backward()
        grads = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]
        norm = math.sqrt(sum(float((g * g).sum()) for g in grads))
        norms.append(norm)
        start += size
        if not math.isfinite(norm):
            continue
        for t, g in zip(total, grads, strict=True):
            t += g * min(1.0, rho / norm if norm else 1.0)
    return total, norms


def assert_clipped(found, model, batch, rho, *, rtol=1e-4, atol=1e-6) -> None:
    """The norms of the groups and the sum of their clipped gradients under cross entropy are the oracle's."""
    inputs, targets, sizes = batch
    expected, norms = clipped_sum(model, cross_entropy, inputs, targets, sizes, rho)
    assert torch.allclose(found.norms.double(), torch.tensor(norms).double(), rtol=rtol)
    for one, other in zip(found.gradients, expected, strict=True):
        assert torch.allclose(one.double(), other, atol=atol)


cross_entropy = nn.CrossEntropyLoss(reduction="none")
