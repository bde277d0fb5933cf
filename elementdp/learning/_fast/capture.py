"""What passes through the layers of a model in one forward and one backward pass."""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from elementdp.learning._fast.products import Call
from elementdp.learning.rows import Rows, call


class CaptureError(Exception):
    """A layer or a parameter was used in a way that a rule does not cover."""


class Capture:
    """Layer inputs, and where the gradients of their outputs will arrive, for one forward pass.

    While a captured layer runs, its parameters are leaves of their own with the same values. So a gradient that still
    arrives at one of the model's parameters has not gone through its layer: the parameter is used somewhere else (by
    another layer, by name, in a penalty), which a rule that looks at layers alone would miss. That is an error, found
    in every pass and without any tolerance.
    """

    def __init__(self, layers: Iterable[nn.Module], parameters: Sequence[nn.Parameter]) -> None:
        self._parameters = list(parameters)
        self._leaves = {id(p): nn.Parameter(p.detach()) for p in parameters}
        self._own: dict[nn.Module, dict[str, nn.Parameter | None]] = {}
        self._seen: list[tuple[nn.Module, Tensor, int, torch.autograd.graph.GradientEdge]] = []
        self._handles = []
        for layer in layers:
            self._handles += [layer.register_forward_pre_hook(self._enter), layer.register_forward_hook(self._leave)]
        self._open = True

    def _enter(self, module: nn.Module, args: tuple[Tensor, ...]) -> None:
        self._own[module] = dict(module._parameters)
        for name, parameter in self._own[module].items():
            if parameter is not None:
                module._parameters[name] = self._leaves.get(id(parameter), parameter)

    def _leave(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        module._parameters.update(self._own.pop(module))
        if not self._open:  # a checkpointed part runs again during the backward pass
            return
        if len(args) != 1 or not isinstance(args[0], Tensor) or not isinstance(output, Tensor):
            raise CaptureError("a layer is not called with one tensor for one tensor")
        if output.requires_grad:
            # The edge, not the tensor: an in-place activation may overwrite the tensor next.
            edge = torch.autograd.graph.get_gradient_edge(output)
            self._seen.append((module, args[0].detach(), args[0]._version, edge))

    def __enter__(self) -> "Capture":
        return self

    def __exit__(self, *_: object) -> None:
        for module, own in self._own.items():  # a pass that failed within a layer
            module._parameters.update(own)
        for handle in self._handles:
            handle.remove()

    def calls(self, losses: Tensor, weights: Tensor) -> list[tuple[nn.Module, list[Call]]]:
        """The uses of every layer, with the gradients of the weighted sum of the rows' ``losses``."""
        self._open = False
        rows, edges = len(losses), [edge for *_, edge in self._seen]
        wanted: list[Any] = [*edges, *self._parameters]
        # A product and not ``grad_outputs``, which makes torch import sympy.
        found = torch.autograd.grad(losses.dot(weights), wanted, allow_unused=True) if losses.requires_grad else ()
        if any(gradient is not None for gradient in found[len(edges) :]):
            raise CaptureError("a parameter is used outside its own layer")
        result: dict[int, tuple[nn.Module, list[Call]]] = {}
        for (module, inputs, version, _), grad in zip(self._seen, found[: len(edges)], strict=False):
            if inputs._version != version:
                raise CaptureError("a layer's input is overwritten after use")
            if len(inputs) != rows:
                raise CaptureError("a layer's input does not have the examples in its first dimension")
            if grad is not None:
                kinds = [p.dtype for p in module.parameters(recurse=False) if p.requires_grad]
                dtype = reduce(torch.promote_types, kinds, torch.float32)
                moved = inputs.to(dtype) if inputs.is_floating_point() else inputs
                result.setdefault(id(module), (module, []))[1].append(Call(moved, grad.to(dtype)))
        return list(result.values())


def count_outputs(model: nn.Module, inputs: Rows) -> int:
    """Numbers that the leaf layers put out for these inputs: what a pass has to hold."""
    total = 0

    def hook(module: nn.Module, args: object, output: object) -> None:
        nonlocal total
        total += output.numel() if isinstance(output, Tensor) else 0

    leaves = [module for module in model.modules() if not list(module.children())]
    handles = [leaf.register_forward_hook(hook) for leaf in leaves if not isinstance(leaf, torch.jit.ScriptModule)]
    try:
        with torch.no_grad():
            call(model, inputs)
    finally:
        for handle in handles:
            handle.remove()
    return total
