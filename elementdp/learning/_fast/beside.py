"""One pass over groups of one size: rules for the layers that have one, and torch.func beside them for all else."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import grad_and_value, vmap

from elementdp.learning._fast.capture import CaptureError, Hooked
from elementdp.learning._fast.general import Loss, losses_with, quiet_vmap
from elementdp.learning._fast.products import Call, Layer, kept, merged
from elementdp.learning._fast.recurrent import RecurrentCell
from elementdp.learning._fast.rules import Rule, recurrent
from elementdp.learning._fast.segments import Memory, Segments
from elementdp.learning.rows import Pair, Rows, each


class Taps(Hooked):
    """Adds a tensor to whatever a layer puts out, and keeps what went in.

    The tensor is zero, and its gradient is that of the output. While a layer runs, its parameters are constants: if a
    loss still depends on one of them, it is used outside its layer.
    """

    vectorizes = True

    def __init__(self, layers: Iterable[nn.Module], added: Sequence[Tensor] | None) -> None:
        self.added = None if added is None else iter(added)
        self.outputs: list[Tensor] = []
        self.layers: list[nn.Module | RecurrentCell] = []
        self.seen: list[dict[str, Tensor]] = []
        super().__init__(layers)

    def leaf(self, parameter: nn.Parameter | None) -> Tensor | None:
        """The parameter as a constant."""
        return None if parameter is None else parameter.detach()

    def tap(self, gates: Tensor) -> Tensor:
        """The output of a layer with the next tensor added, or its shape taken down."""
        if self.added is None:
            self.outputs.append(gates)
            return gates
        added = next(self.added, None)
        if added is None or added.shape != gates.shape:
            raise CaptureError("a layer is not used alike by groups of one size")
        return gates + added

    def record(self, cell: RecurrentCell, x: Tensor, gates: Tensor, states: Tensor, resets: Tensor | None) -> None:
        """What went into a recurrent cell."""
        self.layers.append(cell)
        self.seen.append({"inputs": x, "states": states} | ({} if resets is None else {"resets": resets}))

    def _leave(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        if len(args) != 1 or not isinstance(args[0], Tensor) or not isinstance(output, Tensor) or not args[0].dim():
            raise CaptureError("a layer is not called with one tensor for one tensor", module.parameters())
        self.layers.append(module)
        self.seen.append({"inputs": args[0]})
        return self.tap(output)


@dataclass(frozen=True)
class Beside:
    """A model some of whose parameters, ``free``, belong to no layer with a rule."""

    model: nn.Module
    loss: Loss
    rules: Mapping[nn.Module, Rule]
    free: Mapping[str, nn.Parameter]
    memory: Memory

    def __call__(self, groups: Pair) -> tuple[Callable[[], Layer], Tensor]:
        """The layers of groups of one size, formed when asked for, and the groups' mean losses."""
        one: Pair = (each(groups[0], lambda t: t[0]), each(groups[1], lambda t: t[0]))
        with torch.no_grad(), Taps(self.rules, None) as shapes:
            losses_with(self.model, {}, self.loss, one)
        zeros = [output.new_zeros(()).expand_as(output) for output in shapes.outputs]

        def mean_loss(
            free: dict[str, Tensor], zeros: list[Tensor], inputs: Rows, targets: Rows
        ) -> tuple[Tensor, list[dict[str, Tensor]]]:
            with Taps(self.rules, zeros) as taps:
                mean = losses_with(self.model, free, self.loss, (inputs, targets)).mean()
            return mean, taps.seen

        free = {name: p.detach() for name, p in self.free.items()}
        many = vmap(
            grad_and_value(mean_loss, argnums=(0, 1), has_aux=True), in_dims=(None, None, 0, 0), randomness="different"
        )
        with quiet_vmap():
            (own, outputs), (means, seen) = many(free, zeros, *groups)
        if means.requires_grad:
            found = torch.autograd.grad(means.sum(), parameters := list(self.model.parameters()), allow_unused=True)
            outside = [p for p, gradient in zip(parameters, found, strict=True) if gradient is not None]
            raise CaptureError("a parameter is used outside its own layer", outside)
        return lambda: self._layer(shapes.layers, seen, outputs, own), means

    def _layer(
        self,
        layers: list[nn.Module | RecurrentCell],
        seen: list[dict[str, Tensor]],
        outputs: list[Tensor],
        own: dict[str, Tensor],
    ) -> Layer:
        """Whatever a layer saw in a group belongs to the group: no dimension has to be the examples'."""
        calls: dict[int, tuple[nn.Module | RecurrentCell, list[Call]]] = {}
        sizes: dict[int, torch.Size] = {}
        for layer, went_in, grads in zip(layers, seen, outputs, strict=True):
            key = id(layer.weight_ih) if isinstance(layer, RecurrentCell) else id(layer)
            if sizes.setdefault(key, grads.shape[:2]) != went_in["inputs"].shape[:2]:
                raise CaptureError("a layer is used for different numbers of rows", layer.parameters())
            call = Call(**{name: _rows(values) for name, values in (went_in | {"grads": grads}).items()})
            calls.setdefault(key, (layer, []))[1].append(call)
        found = [kept([(self.free[name], _wide(values)) for name, values in own.items()])] if own else []
        for key, (layer, uses) in calls.items():
            count, size = sizes[key]
            rule: Rule = recurrent if isinstance(layer, RecurrentCell) else self.rules[layer]
            found.append(rule(layer, uses, Segments((size,) * count, self.memory)))
        return merged(found)


def _rows(values: Tensor) -> Tensor:
    """The rows of all groups, one after another."""
    return _wide(values).flatten(0, 1)


def _wide(values: Tensor) -> Tensor:
    """At least float32, if it is a floating number."""
    return values.to(torch.promote_types(values.dtype, torch.float32)) if values.is_floating_point() else values
