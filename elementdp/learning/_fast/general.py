"""Group gradients of any model: vectorized over groups of one size where torch can, else one backward per group."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from elementdp.errors import ArgumentError
from elementdp.learning._fast.capture import CaptureError
from elementdp.learning._fast.segments import Segments
from elementdp.learning.rows import Pair, Rows, call, count, each

Loss = Callable[[Any, Any], Tensor]
"""Model outputs and targets of n rows to n losses."""
Found = tuple[list[Tensor], Tensor]
"""Gradients, one slice per group for each trainable parameter, and the mean loss of each group."""


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters to be trained, by name, each once."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def part(pair: Pair, rows: slice) -> Pair:
    """Some of the rows."""
    inputs, targets = (each(side, lambda t: t[rows]) for side in pair)
    return inputs, targets


def _alone(pair: Pair, rows: slice) -> Pair:
    """Some of the rows in memory of their own: kernels round by where numbers lie, and so by the rows before them."""
    inputs, targets = (each(side, lambda t: t[rows].clone()) for side in pair)
    return inputs, targets


def losses_of(model: nn.Module, loss: Loss, pair: Pair) -> Tensor:
    """The loss of every row."""
    inputs, targets = pair
    losses = loss(call(model, inputs), targets)
    rows = count(targets)
    if not isinstance(losses, Tensor) or losses.shape != (rows,):
        shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise ArgumentError("loss", shape, f"one number for each of the {rows} examples (use reduction='none')")
    if not losses.is_floating_point():
        raise ArgumentError("loss", str(losses.dtype), "floating-point numbers: nothing else has a gradient")
    return losses


def looped(model: nn.Module, loss: Loss, pair: Pair, segments: Segments) -> Iterator[Found]:
    """One backward pass per group: slow, and right for every model."""
    parameters = list(trainable(model).values())
    start = 0
    for size in segments.sizes:
        mean = losses_of(model, loss, _alone(pair, slice(start, start + size))).mean()
        yield [g[None] for g in _gradients(mean, parameters)], mean.detach()[None]
        start += size


def _gradients(value: Tensor, parameters: list[nn.Parameter]) -> list[Tensor]:
    if not value.requires_grad:
        return [torch.zeros_like(p) for p in parameters]
    found = torch.autograd.grad(value, parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g.to_dense() for p, g in zip(parameters, found, strict=True)]


def vectorized(model: nn.Module, loss: Loss, pair: Pair, segments: Segments) -> Iterator[Found]:
    """`torch.func` over groups of one size, as many at a time as keep within a fixed memory.

    Parameters are arguments here, free of the model's own. If a mean loss still depends on one of the model's own, the
    parameter has come in another way (a penalty in the loss, say), and its gradient would be missing.
    """
    parameters = trainable(model)
    free = {name: p.detach() for name, p in parameters.items()}

    def mean_loss(free: dict[str, Tensor], inputs: Rows, targets: Rows) -> Tensor:
        return losses_with(model, free, loss, (inputs, targets)).mean()

    many = vmap(grad_and_value(mean_loss), in_dims=(None, 0, 0), randomness="different")
    for groups in equal_groups(pair, segments, parameters.values()):
        with quiet_vmap():
            gradients, means = many(free, *groups)
        if means.requires_grad:
            raise CaptureError("the loss uses a parameter of the model in another way than by calling the model")
        yield [gradients[name] for name in parameters], means


def losses_with(model: nn.Module, free: dict[str, Tensor], loss: Loss, pair: Pair) -> Tensor:
    """The loss of every row, with these tensors for the parameters of their names."""

    by_name = _every_name(model, free)

    def forward(*args: Any, **named: Any) -> Any:
        return functional_call(model, by_name, args, named, tie_weights=False)

    return losses_of(forward, loss, pair)  # type: ignore[arg-type]


def _every_name(model: nn.Module, free: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors by every name their parameters have, each part of the model once.

    torch would find the names too, but takes a part that the model holds twice for two, and puts only one of them back.
    """
    first = {id(p): name for name, p in model.named_parameters()}
    names = {
        f"{where}.{name}" if where else name: first[id(p)]
        for where, module in model.named_modules()
        for name, p in module._parameters.items()
        if p is not None
    }
    return {name: free[known] for name, known in names.items() if known in free}


def equal_groups(pair: Pair, segments: Segments, parameters: Iterable[Tensor]) -> Iterator[Pair]:
    """Groups of one size with a dimension of their own, as many as keep these parameters' gradients in memory."""
    weight = sum(p.numel() * p.element_size() for p in parameters)
    few = max(1, 4 * segments.memory.keep // weight)
    for stretch in segments.stretches:
        shape = (stretch.count, stretch.size)
        inputs, targets = (each(side, lambda t: t.reshape(*shape, *t.shape[1:])) for side in part(pair, stretch.rows))  # noqa: B023
        for i in range(0, stretch.count, few):
            yield part((inputs, targets), slice(i, i + few))


@contextmanager
def quiet_vmap() -> Iterator[None]:
    """Without torch's advice on what it does one by one."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*batching rule.*", category=UserWarning)
        yield


def summed(model: nn.Module, loss: Loss, pair: Pair, rows: int) -> Found:
    """One group too large for memory: its mean gradient, ``rows`` rows at a time."""
    parameters = list(trainable(model).values())
    total = [torch.zeros_like(p) for p in parameters]
    size = count(pair)
    mean = torch.zeros((), dtype=total[0].dtype, device=total[0].device)
    for i in range(0, size, rows):
        share = losses_of(model, loss, _alone(pair, slice(i, i + rows))).sum() / size
        mean += share.detach()
        for sums, gradient in zip(total, _gradients(share, parameters), strict=True):
            sums += gradient
    return [t[None] for t in total], mean[None]
