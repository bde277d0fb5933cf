"""Group gradients of a model by each of the methods. Whether a method is right for the model is not asked here."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor, nn

from elementdp.errors import ArgumentError, ElementdpError
from elementdp.learning._fast.beside import Beside
from elementdp.learning._fast.by_name import Added, AffineByName
from elementdp.learning._fast.capture import Capture, CaptureError, Used
from elementdp.learning._fast.general import Found, Loss, equal_groups, looped, losses_of, trainable, vectorized
from elementdp.learning._fast.products import Call, Layer, kept, merged
from elementdp.learning._fast.recurrent import RecurrentCell
from elementdp.learning._fast.rules import recurrent
from elementdp.learning._fast.segments import Memory, Segments
from elementdp.learning._fast.shared import added, affine_by_name, tied
from elementdp.learning.batch import Batch
from elementdp.learning.models import ModelError, layer_rules, refuse, tied_layers
from elementdp.learning.precision import exact
from elementdp.learning.rows import Pair, each


class Method(StrEnum):
    """How group gradients are found; all are exact."""

    AUTO = "auto"
    FAST = "fast"  # one forward and one backward pass: a rule for each layer, torch.func for parameters without one
    VECTORIZED = "vectorized"  # torch.func over groups of one size
    LOOP = "loop"  # one backward pass per group


class Passes:
    """A model and its loss, and what one method or another finds for some rows."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        *,
        by_rules: bool,
        precision: torch.dtype | None,
        memory: Memory,
    ) -> None:
        if precision not in (None, torch.bfloat16):
            raise ArgumentError("precision", precision, "None or torch.bfloat16: float16 loses small gradients")
        refuse(model)
        self.model, self.loss, self.precision, self.memory = model, loss, precision, memory
        self.watched: nn.Module = (
            nn.ModuleDict({"model": model, "loss": loss}) if isinstance(loss, nn.Module) else model
        )
        self.parameters = list(trainable(model).values())
        self._refuse_parameters_of_the_loss()
        self.device = self.parameters[0].device
        self.rules = layer_rules(model) if by_rules else {}
        self.rest = self._without_rule()
        self.tied = tied_layers(model) if by_rules else []
        self.by_name = by_rules  # whether all that has no rule is first looked for among the uses by name

    def _refuse_parameters_of_the_loss(self) -> None:
        own = {id(p) for p in self.parameters}
        for name, p in self.loss.named_parameters() if isinstance(self.loss, nn.Module) else []:
            if p.requires_grad and id(p) not in own:
                raise ArgumentError(
                    "loss",
                    f"a module with a parameter of its own, {name}",
                    "without any: only the model's are trained. Give it to the model, or freeze it with "
                    "requires_grad_(False)",
                )

    def _without_rule(self) -> dict[str, nn.Parameter]:
        ruled = {id(p) for layer in self.rules for p in layer.parameters(recurse=False)}
        return {name: p for name, p in trainable(self.model).items() if id(p) not in ruled}

    def row_losses(self, pair: Pair) -> Tensor:
        """The loss of every row."""
        return losses_of(self.model, self.loss, pair)

    def settle(self, pair: Pair, segments: Segments) -> None:
        """Leave out the rules of layers that this model uses as no rule covers."""
        while True:
            try:
                self.tried(Method.FAST, pair, segments)
                return
            except ElementdpError:
                raise
            except Exception as error:
                if self.rest and self.by_name:
                    self.by_name = False
                    continue
                if not isinstance(error, CaptureError):
                    raise
                missed = {id(p) for p in error.parameters}
                left = {k: v for k, v in self.rules.items() if not missed & {id(p) for p in k.parameters()}}
                if not 0 < len(left) < len(self.rules):
                    raise
                self.rules = left
                self.rest = self._without_rule()

    def tried(self, option: Method, pair: Pair, segments: Segments, first: int | None = None) -> "Gathered":
        """Norms and unclipped, uneven sum by one method, of the first groups if not of all."""
        if option is Method.FAST:
            return self._gathered((layer for layer, _ in self.layers(pair, segments, nullcontext())), first)
        found = BY_GROUP[option](self.model, self.loss, pair, segments)
        return self._gathered((kept(list(zip(self.parameters, each, strict=True))) for each, _ in found), first)

    def plain(self, pair: Pair, segments: Segments) -> "Reference":
        """The uneven sum of all groups' mean gradients by plain backward passes, which no rule takes part in.

        Two more, whose numbers are all larger, show by how much this model's own gradients round. Twice the numbers
        round alike: if not, the pass back is no linear one, and what is seen is no rounding.
        """
        total, twice, larger = (self._backward(pair, segments, scale) for scale in (1.0, 2.0, SCALE))
        linear = torch.equal(2 * total, twice)
        return Reference(total, float((total - larger / SCALE).norm()) if linear else 0.0)

    def _backward(self, pair: Pair, segments: Segments, scale: float) -> Tensor:
        losses = self.row_losses(pair)
        finite = segments.sum(losses.detach()).isfinite()
        weights = segments.shares(losses) * segments.spread(scale * finite * uneven(0, len(segments), losses))
        value = torch.where(weights > 0, losses, 0).dot(weights)
        if not value.requires_grad:
            return torch.cat([torch.zeros_like(p).flatten() for p in self.parameters])
        found = torch.autograd.grad(value, self.parameters, allow_unused=True)
        pieces = [
            torch.zeros_like(p) if g is None else g.to_dense() for p, g in zip(self.parameters, found, strict=True)
        ]
        return torch.cat([piece.flatten() for piece in pieces])

    def refuse_hidden(self, pair: Pair) -> None:
        """Raise if a whole backward pass reaches parameters that asking for their gradients does not."""
        losses = self.row_losses(pair)
        if not losses.requires_grad:
            return
        hidden = ModelError(
            "a part of the model runs a backward pass of its own, in which its gradients cannot be clipped. "
            "Checkpointed parts do so with use_reentrant=True: set it to False"
        )
        try:
            found = torch.autograd.grad(losses.sum(), self.parameters, allow_unused=True)
        except RuntimeError as error:
            if "use_reentrant" in str(error):
                raise hidden from error
            raise
        unused = [p for p, gradient in zip(self.parameters, found, strict=True) if gradient is None]
        if not unused:
            return
        before = [p.grad for p in self.parameters]
        for p in self.parameters:
            p.grad = None
        try:
            self.row_losses(pair).sum().backward()  # type: ignore[no-untyped-call]
            if any(p.grad is not None for p in unused):
                raise hidden
        finally:
            for p, gradient in zip(self.parameters, before, strict=True):
                p.grad = gradient

    def _gathered(self, layers: Iterator[Layer], first: int | None = None) -> "Gathered":
        norms: list[Tensor] = []
        total = {id(p): torch.zeros_like(p) for p in self.parameters}
        for layer in layers:
            start = sum(map(len, norms))
            left = len(layer.squares) if first is None else first - start
            norms.append(layer.squares.sqrt()[:left])
            finite = layer.squares.isfinite()
            finite[max(left, 0) :] = False
            factors = finite * uneven(start, len(finite), layer.squares)
            for parameter, gradient in layer.weigh(factors, not bool(finite.all())):
                if id(parameter) in total:
                    total[id(parameter)] += gradient
        return Gathered(torch.cat(norms), torch.cat([t.flatten() for t in total.values()]))

    def layers(
        self, pair: Pair, segments: Segments, autocast: AbstractContextManager[object]
    ) -> Iterator[tuple[Layer, Tensor]]:
        """All layers of one chunk by their rules, and parameters without one beside them."""
        if not self.rest or self.by_name:
            yield self._layer(pair, segments, autocast)
            return
        beside = Beside(self.model, self.loss, self.rules, self.rest, self.memory)
        found = []  # all of them or none: a pass that fails is taken over by another method
        for groups in equal_groups(pair, segments, self.rest.values()):
            with autocast:
                layer, means = beside(groups)
            with exact():
                found.append((layer(), wide(means)))
        yield from found

    def _layer(self, pair: Pair, segments: Segments, autocast: AbstractContextManager[object]) -> tuple[Layer, Tensor]:
        """All layers of one chunk by their rules."""
        layers = [*self.rules, *(self.tied if self.rest else [])]
        with torch.enable_grad(), autocast, Capture(layers, self.parameters, list(self.rest.values())) as capture:
            losses = wide(self.row_losses(pair))
            weights = segments.shares(losses)
            calls = capture.calls(losses, weights)
        with exact():
            found = self._found(calls, segments)
        means = segments.sum(losses.detach() * weights)
        if not found:
            return Layer(torch.zeros_like(means), lambda factors, spoilt: []), means
        return merged(found), means

    def _found(self, calls: list[tuple[Used, list[Call]]], segments: Segments) -> list[Layer]:
        """What the rules find; layers that share a weight go together."""
        self._refuse_overlap([layer for layer, _ in calls])
        shared: dict[int, list[tuple[nn.Linear | nn.Embedding, list[Call]]]] = {}
        found = []
        for layer, used in calls:
            if isinstance(layer, RecurrentCell):
                found.append(recurrent(layer, used, segments))
            elif isinstance(layer, AffineByName):
                found.append(affine_by_name(layer, used, segments))
            elif isinstance(layer, Added):
                found.append(added(layer, used, segments))
            elif layer in self.rules:
                found.append(self.rules[layer](layer, used, segments))
            else:
                assert isinstance(layer, nn.Linear | nn.Embedding)
                shared.setdefault(id(layer.weight), []).append((layer, used))
        return found + [tied(uses, segments) for uses in shared.values()]

    def _refuse_overlap(self, used: list[Used]) -> None:
        """Raise if two rules have found parts of one parameter's gradient.

        Their squares would be added up as if they were different coordinates, and more than ρ could pass. The sum is
        right all the same, so that no comparison of sums shows it.
        """
        owners: dict[int, int] = {}
        for layer in used:
            together = isinstance(layer, nn.Linear | nn.Embedding) and layer not in self.rules
            weight = getattr(layer, "weight", None) if together else None  # its uses in all such layers go together
            for parameter in layer.parameters():
                owner = id(parameter) if parameter is weight else id(layer)
                if parameter.requires_grad and owners.setdefault(id(parameter), owner) != owner:
                    raise CaptureError("a parameter is used by name and by a layer, or in two ways", [parameter])

    def autocast(self) -> AbstractContextManager[object]:
        """For the passes through the model only. No cache: it would outlive a step within a caller's own autocast."""
        if self.precision is None:
            return nullcontext()
        return torch.autocast(self.device.type, self.precision, cache_enabled=False)

    def full(self) -> AbstractContextManager[object]:
        """Norms, factors and sums in the parameters' own precision, whatever the caller has switched on."""
        return torch.autocast(self.device.type, enabled=False)

    def load(self, batch: Batch, rows: slice | Tensor) -> Pair:
        """These rows of a batch, where the model is."""
        return self.moved(batch.fetch(rows))

    def moved(self, pair: Pair) -> Pair:
        """The rows where the model is."""
        inputs, targets = (each(side, lambda t: t.to(self.device, non_blocking=True)) for side in pair)
        return inputs, targets


SCALE = 1.37
"""Any number would do that changes the rounding of a product."""

BY_GROUP: dict[Method, Callable[[nn.Module, Loss, Pair, Segments], Iterator[Found]]] = {
    Method.VECTORIZED: vectorized,
    Method.LOOP: looped,
}


@dataclass(frozen=True, eq=False)
class Reference:
    """An :func:`uneven` sum to compare with, and by how much it rounds: in some models large terms cancel."""

    total: Tensor
    rounding: float = 0.0


@dataclass(frozen=True)
class Gathered:
    """Norms of some groups' gradients, and the :func:`uneven` sum of the finite ones over all trainable parameters.

    The sum is compared too: a hook that turns a layer's output, or parameters behind a layer's weight (weight
    normalisation at its start), leave every norm as it is and yet another gradient.
    """

    norms: Tensor
    total: Tensor

    def sums(self, reference: "Reference") -> bool:
        """Whether the sum is this one, up to rounding, on the scale of what was added: losses may be small.

        A gradient that is not finite though its loss is leaves nothing to compare.
        """
        total = reference.total
        finite = self.norms[self.norms.isfinite()]
        size = finite.sum() + total.norm()
        return not total.isfinite().all() or bool(
            (self.total - total).norm() <= 100 * torch.finfo(total.dtype).eps * size + 10 * reference.rounding
        )

    def agrees(self, reference: "Gathered") -> bool:
        """The same norms and sum, up to rounding; Gram matrices round norms up by more than sums."""
        finite = reference.norms.isfinite()
        if not torch.equal(self.norms.isfinite(), finite) or not self.sums(Reference(reference.total)):
            return False
        apart = (self.norms - reference.norms)[finite].abs()
        return not finite.any() or bool(
            (apart <= 1e4 * torch.finfo(apart.dtype).eps * reference.norms[finite].max()).all()
        )


def uneven(start: int, count: int, like: Tensor) -> Tensor:
    """Weights between a half and one for the groups from number ``start`` on, no two of neighbours alike.

    A layer that sees the rows in another order, by length say, brings a row's gradient to another group: all groups
    weighed alike, their sum is right, and yet norms and clipping are not.
    """
    numbers = torch.arange(start + 1, start + count + 1, dtype=torch.float64)
    return (0.5 + 0.5 * torch.frac(numbers * 0.6180339887498949)).to(like.dtype).to(like.device)


def wide(values: Tensor) -> Tensor:
    """At least float32."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
