"""What passes through the layers of a model in one forward and one backward pass."""

from functools import reduce

import torch
from torch import Tensor, nn

from elementdp.learning._fast.products import Call


class CaptureError(Exception):
    """A layer was used in a way its rule does not cover."""


class Capture:
    """Layer inputs, and where the gradients of their outputs will arrive, for one forward pass."""

    def __init__(self, layers: dict[str, nn.Module]) -> None:
        self._seen: list[tuple[nn.Module, Tensor, int, torch.autograd.graph.GradientEdge]] = []
        self._handles = [layer.register_forward_hook(self._hook) for layer in layers.values()]

    def _hook(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        if not args:
            raise CaptureError("a layer is called with keywords only")
        if output.requires_grad:
            # The edge, not the tensor: an in-place activation may overwrite the tensor next.
            edge = torch.autograd.graph.get_gradient_edge(output)
            self._seen.append((module, args[0].detach(), args[0]._version, edge))

    def __enter__(self) -> "Capture":
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def calls(self, losses: Tensor, weights: Tensor) -> list[tuple[nn.Module, list[Call]]]:
        """The uses of every layer, with the gradients of the weighted sum of the rows' ``losses``."""
        rows, edges = len(losses), [edge for *_, edge in self._seen]
        # A product and not ``grad_outputs``, which makes torch import sympy.
        grads = torch.autograd.grad(losses.dot(weights), edges, allow_unused=True) if edges else ()
        result: dict[int, tuple[nn.Module, list[Call]]] = {}
        for (module, inputs, version, _), grad in zip(self._seen, grads, strict=True):
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


def count_outputs(model: nn.Module, inputs: Tensor) -> int:
    """Numbers that the leaf layers put out for these inputs: what a pass has to hold."""
    total = 0

    def hook(module: nn.Module, args: object, output: object) -> None:
        nonlocal total
        total += output.numel() if isinstance(output, Tensor) else 0

    leaves = [module for module in model.modules() if not list(module.children())]
    handles = [leaf.register_forward_hook(hook) for leaf in leaves]
    try:
        with torch.no_grad():
            model(inputs)
    finally:
        for handle in handles:
            handle.remove()
    return total
