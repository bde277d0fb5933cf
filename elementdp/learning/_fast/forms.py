"""Faster forms of layers while they are watched: only the gradients of what goes into them are wanted."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elementdp.learning._fast.products import times, uses_onednn
from elementdp.learning._fast.recurrent import has_own_forward


def unwatched() -> AbstractContextManager[None]:
    """Without torch's hook for every function, which a step meets a thousand times and needs for a dozen."""
    return torch._C.DisableTorchFunction()


def _unviewed(found: Tensor, x: Tensor) -> Tensor:
    """Rows in the shape of x, as no view: what overwrites a view takes its place in the graph, gradient and all."""
    return torch.ops.aten._unsafe_view(found, [*x.shape[:-1], found.shape[1]])  # type: ignore[no-any-return]


def _at_every_position(x: Tensor, right: Tensor, added: Tensor | None) -> Tensor:
    """x·right + added."""
    found = times(x.reshape(-1, x.shape[-1]), right, added)
    return found if x.dim() == 2 else _unviewed(found, x)


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
    with unwatched():
        inner, outer = x.shape[-1], len(weight)
        known = x.dtype is weight.dtype is torch.float32 and x.device.type == "cpu" and x.dim() > 1
        if not known or torch.is_autocast_enabled("cpu"):
            used = weight, bias
        # Only with a gradient to pass back is the product of constants one whose use can be seen.
        elif x.requires_grad and not uses_onednn(x.numel() // max(1, inner), inner, outer, x):
            used = weight.detach(), None if bias is None else bias.detach()
        else:
            return Affine.apply(x, weight, bias)  # type: ignore[no-untyped-call, no-any-return]
        if x.dim() < 3 or inner == 0:
            return functional.linear(x, *used)
        return _unviewed(functional.linear(x.reshape(-1, inner), *used), x)


def affine_forward(layer: nn.Linear) -> Callable[[Tensor], Tensor]:
    """What the layer computes, of its parameters as they are when it runs."""

    def forward(input: Tensor) -> Tensor:  # torch's own name: a model may call by it
        return affine_of(input, layer.weight, layer.bias)

    return forward


def prelu_forward(layer: nn.PReLU) -> Callable[[Tensor], Tensor]:
    """What the layer computes. torch's own backward pass forms the slope's gradient at every place, wanted or not."""

    def forward(input: Tensor) -> Tensor:
        slope = layer.weight
        alike = input.dtype is slope.dtype and input.device.type == "cpu" and input.requires_grad
        if len(slope) > 1 or not alike:
            return functional.prelu(input, slope)
        return functional.leaky_relu(input, slope.item())

    return forward


class RootMeanSquare(torch.autograd.Function):
    """x / rms(x) · w, with a gradient for x alone. torch's own takes three times as many passes over x."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        places = tuple(range(-weight.dim(), 0))
        scale = (x.square().mean(places, keepdim=True) + eps).rsqrt()
        return x * scale * weight, scale

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*inputs[:2], output[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None]:
        if not ctx.needs_input_grad[0]:
            return None, None, None
        x, weight, scale = ctx.saved_tensors
        inner = grads[0] * weight
        along = (inner * x).mean(tuple(range(-weight.dim(), 0)), keepdim=True) * scale.pow(3)
        return inner * scale - x * along, None, None


def rms_eps(layer: nn.RMSNorm, x: Tensor) -> float:
    """What the layer adds to a mean square."""
    return torch.finfo(x.dtype).eps if layer.eps is None else layer.eps


def rms_norm_forward(layer: nn.RMSNorm) -> Callable[[Tensor], Tensor]:
    """What the layer computes."""

    def forward(x: Tensor) -> Tensor:
        if x.dtype is not layer.weight.dtype or torch.is_autocast_enabled(x.device.type):
            return functional.rms_norm(x, layer.normalized_shape, layer.weight, layer.eps)
        return RootMeanSquare.apply(x, layer.weight, rms_eps(layer, x))[0]  # type: ignore[no-untyped-call, no-any-return]

    return forward


_FORMS: dict[type[nn.Module], Callable[..., Callable[[Tensor], Tensor]]] = {
    nn.Linear: affine_forward,
    nn.PReLU: prelu_forward,
    nn.RMSNorm: rms_norm_forward,
}


def faster_form(layer: nn.Module) -> Callable[[Tensor], Tensor] | None:
    """What a layer computes, of its parameters as they are when it runs, in a form that is faster to watch.

    A subclass may compute something else, and weight normalisation makes the weight anew: they have none.
    """
    form = _FORMS.get(type(layer))
    own = {"weight", "bias"} if isinstance(layer, nn.Linear) else {"weight"}
    if form is None or not own <= layer._parameters.keys() or has_own_forward(layer):
        return None
    return form(layer)
