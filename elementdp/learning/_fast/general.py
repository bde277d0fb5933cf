"""Group gradients of any model: vectorized over groups of one size where torch can, else one backward per group."""

import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from elementdp.errors import ArgumentError
from elementdp.learning._fast.products import KEEP_BYTES
from elementdp.learning._fast.segments import Pair, Segments

Loss = Callable[[Tensor, Tensor], Tensor]
"""Model outputs and targets of n rows to n losses."""
Found = tuple[list[Tensor], Tensor]
"""Gradients, one slice per group for each trainable parameter, and the mean loss of each group."""


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters to be trained, by name, each once."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def losses_of(model: nn.Module, loss: Loss, pair: Pair) -> Tensor:
    """The loss of every row."""
    inputs, targets = pair
    losses = loss(model(inputs), targets)
    if losses.shape != targets.shape[:1]:
        raise ArgumentError(
            "loss", tuple(losses.shape), f"one number for each of the {len(targets)} examples (use reduction='none')"
        )
    return losses


def looped(model: nn.Module, loss: Loss, pair: Pair, segments: Segments) -> Iterator[Found]:
    """One backward pass per group: slow, and right for every model."""
    parameters = list(trainable(model).values())
    start = 0
    for size in segments.sizes:
        rows = slice(start, start + size)
        mean = losses_of(model, loss, (pair[0][rows], pair[1][rows])).mean()
        found = torch.autograd.grad(mean, parameters, allow_unused=True)
        yield (
            [
                torch.zeros_like(p)[None] if g is None else g.to_dense()[None]
                for p, g in zip(parameters, found, strict=True)
            ],
            mean.detach()[None],
        )
        start += size


def vectorized(model: nn.Module, loss: Loss, pair: Pair, segments: Segments) -> Iterator[Found]:
    """`torch.func` over groups of one size, as many at a time as keep within a fixed memory."""
    parameters = trainable(model)
    rest = {name: p for name, p in model.named_parameters() if not p.requires_grad} | dict(model.named_buffers())
    free = {name: p.detach() for name, p in parameters.items()}

    def mean_loss(free: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> Tensor:
        def call(x: Tensor) -> Tensor:
            result = functional_call(model, (free, rest), (x,))
            assert isinstance(result, Tensor)
            return result

        return loss(call(inputs), targets).mean()

    many = vmap(grad_and_value(mean_loss), in_dims=(None, 0, 0), randomness="different")
    weight = sum(p.numel() * p.element_size() for p in parameters.values())
    few = max(1, 4 * KEEP_BYTES // weight)
    for stretch in segments.stretches:
        inputs, targets = (t[stretch.rows].reshape(stretch.count, stretch.size, *t.shape[1:]) for t in pair)
        for i in range(0, stretch.count, few):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*batching rule.*", category=UserWarning)
                gradients, means = many(free, inputs[i : i + few], targets[i : i + few])
            yield [gradients[name] for name in parameters], means


def summed(model: nn.Module, loss: Loss, pair: Pair, rows: int) -> Found:
    """One group too large for memory: its mean gradient, ``rows`` rows at a time."""
    parameters = list(trainable(model).values())
    total = [torch.zeros_like(p) for p in parameters]
    size = len(pair[1])
    mean = pair[0].new_zeros((), dtype=total[0].dtype)
    for i in range(0, size, rows):
        part = losses_of(model, loss, (pair[0][i : i + rows], pair[1][i : i + rows])).sum() / size
        found = torch.autograd.grad(part, parameters, allow_unused=True)
        mean += part.detach()
        for sums, gradient in zip(total, found, strict=True):
            if gradient is not None:
                sums += gradient
    return [t[None] for t in total], mean[None]
