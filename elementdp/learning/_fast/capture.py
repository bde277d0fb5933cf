"""What passes through the layers of a model in one forward and one backward pass."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import torch
from torch import Tensor, nn

from elementdp.learning._fast.by_name import Added, AffineByName, ByName
from elementdp.learning._fast.forms import faster_form, unwatched
from elementdp.learning._fast.products import Call
from elementdp.learning._fast.recurrent import RecurrentCell, Watch, can_unroll, unrolled
from elementdp.learning.rows import Rows, call

Used = nn.Module | RecurrentCell | AffineByName | Added
"""Whatever has parameters and a rule."""


class CaptureError(Exception):
    """A layer or a parameter was used in a way that a rule does not cover; ``parameters`` are those without a rule."""

    def __init__(self, message: str, parameters: Iterable[Tensor] = ()) -> None:
        super().__init__(message)
        self.parameters = list(parameters)


class Hooked(Watch):
    """Hooks on layers for one pass: what goes in and out is seen, and parameters are leaves of their own meanwhile.

    Recurrent layers are unrolled into their cells, and some others take faster forms.
    """

    vectorizes = False

    def __init__(self, layers: Iterable[nn.Module]) -> None:
        self._own: dict[nn.Module, dict[str, nn.Parameter | None]] = {}
        self._handles = []
        self._replaced: list[nn.Module] = []
        for layer in layers:
            if can_unroll(layer):
                assert isinstance(layer, nn.RNNBase)
                layer.__dict__["forward"] = unrolled(layer, self)
                self._replaced.append(layer)
                continue
            if (faster := faster_form(layer)) is not None:
                layer.__dict__["forward"] = faster
                self._replaced.append(layer)
            self._handles += [layer.register_forward_pre_hook(self._enter), layer.register_forward_hook(self._exit)]

    @abstractmethod
    def _leave(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        """Take down what went into a layer and came out; what is returned replaces its output."""

    def _enter(self, module: nn.Module, args: tuple[Tensor, ...]) -> None:
        self._own[module] = dict(module._parameters)
        for name, parameter in self._own[module].items():
            if parameter is not None:
                module._parameters[name] = self.leaf(parameter)  # type: ignore[assignment]

    def _exit(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        module._parameters.update(self._own.pop(module))
        return self._leave(module, args, output)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for module, own in self._own.items():  # a pass that failed within a layer
            module._parameters.update(own)
        for layer in self._replaced:
            del layer.__dict__["forward"]
        for handle in self._handles:
            handle.remove()


class Capture(Hooked):
    """Layer inputs, and where the gradients of their outputs will arrive, for one forward pass.

    While a captured layer runs, its parameters are leaves of their own with the same values. So a gradient that still
    arrives at one of the model's parameters has not gone through its layer: the parameter is used somewhere else (by
    another layer, by name, in a penalty), which a rule that looks at layers alone would miss. That is an error, found
    in every pass and without any tolerance.
    """

    def __init__(
        self, layers: Iterable[nn.Module], parameters: Sequence[nn.Parameter], by_name: Sequence[nn.Parameter] = ()
    ) -> None:
        self._parameters = list(parameters)
        self._leaves = {id(p): nn.Parameter(p.detach()) for p in parameters}
        self._seen: list[_Use] = []
        super().__init__(layers)
        self._open, self._differentiated = True, False
        self._by_name: AbstractContextManager[object] = ByName(by_name, self._take_down) if by_name else nullcontext()

    def __enter__(self) -> Self:
        self._by_name.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        self._by_name.__exit__(*raised)
        self._seen.clear()  # a node holds its hook, and so this: a circle that Python cannot see, and would never free

    def leaf(self, parameter: nn.Parameter | None) -> Tensor | None:
        """The leaf that stands for a parameter."""
        return None if parameter is None else self._leaves.get(id(parameter), parameter)

    def tap(self, gates: Tensor) -> Tensor:
        """The output of a layer as it is."""
        return gates

    def record(self, cell: RecurrentCell, x: Tensor, gates: Tensor, states: Tensor, resets: Tensor | None) -> None:
        """What went into a recurrent cell, and where the gradient of its gates will arrive."""
        self._take_down(cell, x, gates, states, resets)

    def _take_down(
        self, layer: Used, x: Tensor, output: Tensor, states: Tensor | None = None, resets: Tensor | None = None
    ) -> None:
        """What went into a use of parameters, and where the gradient of what came out will arrive."""
        with unwatched():
            if self._open and output.requires_grad:
                # The edge, not the tensor: an in-place activation may overwrite the tensor next.
                edge = torch.autograd.graph.get_gradient_edge(output)
                edge.node.register_prehook(self._passed_back)
                view = output.detach() if output._is_view() else None
                self._seen.append(_Use(layer, x.detach(), x._version, edge, states, resets, view, output._version))

    def _passed_back(self, gradients: tuple[Tensor, ...]) -> None:
        """Notice a derivative within the forward pass that is differentiated again: it takes the leaves another way."""
        self._differentiated |= self._open and torch.is_grad_enabled()

    def _leave(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        if not self._open:  # a checkpointed part runs again during the backward pass
            return
        if len(args) != 1 or not isinstance(args[0], Tensor) or not isinstance(output, Tensor):
            raise CaptureError("a layer is not called with one tensor for one tensor", module.parameters())
        self._take_down(module, args[0], output)

    def calls(self, losses: Tensor, weights: Tensor) -> list[tuple[Used, list[Call]]]:
        """The uses of every layer, with the gradients of the weighted sum of the rows' ``losses``."""
        self._open = False
        if self._differentiated:
            raise CaptureError("the model or the loss differentiates by its inputs", self._parameters)
        rows, edges = len(losses), [use.edge for use in self._seen]
        wanted: list[Any] = [*edges, *self._parameters]
        # A product and not ``grad_outputs``, which makes torch import sympy.
        found = torch.autograd.grad(losses.dot(weights), wanted, allow_unused=True) if losses.requires_grad else ()
        arrived = zip(self._parameters, found[len(edges) :], strict=False)
        if outside := [parameter for parameter, gradient in arrived if gradient is not None]:
            raise CaptureError("a parameter is used outside its own layer", outside)
        with unwatched():
            return self._calls(rows, found[: len(edges)])

    def _calls(self, rows: int, grads: Sequence[Tensor | None]) -> list[tuple[Used, list[Call]]]:
        dtype = reduce(torch.promote_types, {p.dtype for p in self._parameters}, torch.float32)
        result: dict[int, tuple[Used, list[Call]]] = {}
        for use, grad in zip(self._seen, grads, strict=False):
            if use.inputs._version != use.version:
                raise CaptureError("a layer's input is overwritten after use", use.layer.parameters())
            if use.view is not None and use.view._version != use.written:  # its gradient arrives elsewhere
                raise CaptureError("a layer's output is a view and overwritten after use", use.layer.parameters())
            if len(use.inputs) != rows:
                raise CaptureError(
                    "a layer's input does not have the examples in its first dimension", use.layer.parameters()
                )
            if grad is not None:
                moved, states, resets = (_floating(t, dtype) for t in (use.inputs, use.states, use.resets))
                assert moved is not None
                call = Call(moved, grad.to(dtype), states, resets)
                owner = id(use.layer.weight_ih) if isinstance(use.layer, RecurrentCell) else id(use.layer)
                result.setdefault(owner, (use.layer, []))[1].append(call)
        return list(result.values())


@dataclass(frozen=True)
class _Use:
    layer: Used
    inputs: Tensor
    version: int
    edge: torch.autograd.graph.GradientEdge
    states: Tensor | None = None
    resets: Tensor | None = None
    view: Tensor | None = None
    written: int = 0


def _floating(values: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return values.to(dtype) if values is not None and values.is_floating_point() else values


def count_outputs(model: nn.Module, inputs: Rows) -> int:
    """Numbers that the leaf layers put out for these inputs: what a pass has to hold."""
    total = 0

    def hook(module: nn.Module, args: object, output: object) -> None:
        nonlocal total
        total += output.numel() if isinstance(output, Tensor) else 0

    leaves = [module for module in model.modules() if not list(module.children())]
    handles = [leaf.register_forward_hook(hook) for leaf in leaves if not isinstance(leaf, torch.jit.ScriptModule)]
    try:
        call(model, inputs)  # with its graph: a model may differentiate by its own inputs
    finally:
        for handle in handles:
            handle.remove()
    return total
