"""Linear layers by oneDNN's products while their inputs and output gradients are watched."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elementdp.learning._fast.products import times


def _at_every_position(x: Tensor, right: Tensor, added: Tensor | None) -> Tensor:
    """x·right + added. A view of the product would not let a layer that follows work in place."""
    found = times(x.reshape(-1, x.shape[-1]), right, added)
    return found if x.dim() == 2 else torch.ops.aten._unsafe_view(found, [*x.shape[:-1], right.shape[1]])


class Product(torch.autograd.Function):
    """x·W at every position, of which no gradient is wanted."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        return _at_every_position(x, weight, None)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], x: Tensor, weight: Tensor) -> tuple[Tensor, int]:
        assert in_dims[0] is not None and in_dims[1] is None
        found: Tensor = Product.apply(x.movedim(in_dims[0], 0), weight)  # type: ignore[no-untyped-call]
        return found, 0


class Affine(torch.autograd.Function):
    """xWᵀ + b at every position, with a gradient for x alone: those of W and b are what rules are for."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return _at_every_position(x, weight.mT, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None]:
        if not ctx.needs_input_grad[0]:
            return None, None, None
        return Product.apply(grads[0], ctx.saved_tensors[0]), None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], x: Tensor, weight: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, int]:
        assert in_dims[0] is not None and in_dims[1:] == (None, None)
        found: Tensor = Affine.apply(x.movedim(in_dims[0], 0), weight, bias)  # type: ignore[no-untyped-call]
        return found, 0


def affine_of(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """xWᵀ + b, by the faster product where there is one."""
    known = x.dtype is weight.dtype is torch.float32 and x.device.type == "cpu" and x.dim() > 1
    if not known or torch.is_autocast_enabled("cpu"):
        return functional.linear(x, weight, bias)
    return Affine.apply(x, weight, bias)  # type: ignore[no-untyped-call, no-any-return]


def affine_forward(layer: nn.Linear) -> Callable[[Tensor], Tensor]:
    """What the layer computes, of its parameters as they are when it runs."""

    def forward(input: Tensor) -> Tensor:  # torch's own name: a model may call by it
        return affine_of(input, layer.weight, layer.bias)

    return forward
