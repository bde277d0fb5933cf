"""Algorithm 1 for a whole batch: one averaged gradient per (user, element), clipped to ρ and summed."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor, nn

from elementdp.errors import ArgumentError, one_of
from elementdp.learning._fast.beside import Beside
from elementdp.learning._fast.capture import Capture, CaptureError, count_outputs
from elementdp.learning._fast.general import (
    Found,
    Loss,
    equal_groups,
    looped,
    losses_of,
    part,
    summed,
    trainable,
    vectorized,
)
from elementdp.learning._fast.products import Layer, kept, merged
from elementdp.learning._fast.recurrent import RecurrentCell
from elementdp.learning._fast.rules import recurrent
from elementdp.learning._fast.segments import Memory, Segments
from elementdp.learning.batch import Batch
from elementdp.learning.domain import Domain, gradient_mapping
from elementdp.learning.models import ModelError, layer_rules, refuse
from elementdp.learning.precision import exact
from elementdp.learning.probing import FACTORS, Held, moved, quiet, refuse_mixing, same_draws, stirred
from elementdp.learning.rows import Pair, count, each, tensors

FEWEST_ROWS = 16
"""So many rows at least pass through the model at once, unless a size is given: fewer keep it from its full speed."""
COMPARED_GROUPS = 4
"""So many groups' norms are compared with one backward pass per group."""
TURNS = 4
"""So often methods that are nearly as fast as the fastest are timed, by turns."""


class Method(StrEnum):
    """How group gradients are found; all are exact."""

    AUTO = "auto"
    FAST = "fast"  # one forward and one backward pass: a rule for each layer, torch.func for parameters without one
    VECTORIZED = "vectorized"  # torch.func over groups of one size
    LOOP = "loop"  # one backward pass per group


@dataclass(frozen=True)
class ClippedSum:
    """Σ over groups of [Δ]_ρ, one tensor for each trainable parameter, and what was seen on the way.

    Only the sum is ever made private: norms, losses and counts are for the eyes of the data's owner.
    """

    gradients: list[Tensor]
    norms: Tensor
    losses: Tensor

    @property
    def skipped(self) -> int:
        """Groups whose gradient was not finite: they added nothing."""
        return int((~self.norms.isfinite()).sum())

    @property
    def loss(self) -> float:
        """Mean over the groups of their mean loss, those that are not finite left out."""
        finite = self.losses[self.losses.isfinite()]
        return float(finite.mean()) if len(finite) else float("nan")


class GroupClipper:
    """Clipped sums of group gradients of ``model``, by the fastest exact method it allows.

    ``by_group`` wants the gradient of every group (:meth:`each_group`), which the fast rules never form.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        rho: float,
        *,
        domain: Domain | None = None,
        method: Method | str = Method.AUTO,
        precision: torch.dtype | None = None,
        by_group: bool = False,
        memory: Memory = Memory(),  # noqa: B008
    ) -> None:
        if not rho > 0:
            raise ArgumentError("rho", rho, "> 0 (infinity for no clipping)")
        if precision not in (None, torch.bfloat16):
            raise ArgumentError("precision", precision, "None or torch.bfloat16: float16 loses small gradients")
        self.wanted = Method(one_of("method", method, Method))
        refuse(model)
        self.model, self.loss, self.rho, self.domain, self.precision = model, loss, rho, domain, precision
        self.parameters = list(trainable(model).values())
        self.device = self.parameters[0].device
        self.rules = {} if by_group or domain is not None else layer_rules(model)
        self.rest = self._without_rule()
        self.memory = memory
        self.method: Method | None = None
        self.measures = True  # a run with a seed does not: it has to repeat whatever the clock says
        self._right = {Method.LOOP}
        self.rows = 0
        if self.wanted is Method.FAST and not self.rules:
            raise ArgumentError(
                "method", "fast", "another one: no layer has a fast rule, Θ is bounded, or the noise is exact"
            )

    def _without_rule(self) -> dict[str, nn.Parameter]:
        ruled = {id(p) for layer in self.rules for p in layer.parameters(recurse=False)}
        return {name: p for name, p in trainable(self.model).items() if id(p) not in ruled}

    # ------------------------------------------------------------------------------------------- choice of method

    def prepare(self, batch: Batch) -> None:
        """Refuse a model that mixes or remembers, and choose the method by comparing it with plain passes; done once.

        The rows should be as many as a step has, and come from all over the data. Parameters at or near zero are moved
        away from it for the comparison; only if no loss is finite there is the model compared as it is.
        """
        if self.method is not None or not batch.sizes:
            return
        with self._full(), exact(), torch.enable_grad():
            few = self._load(batch, slice(0, min(8, sum(batch.sizes))))
            with same_draws():
                numbers = sum(t.numel() * t.element_size() for side in few for t in tensors(side))
                numbers += 4 * count_outputs(self.model, few[0])
            chunk = self.memory.chunk or (1 << 25 if self.device.type == "cpu" else 1 << 30)
            self.rows = max(1 if self.memory.chunk else FEWEST_ROWS, chunk * count(few[0]) // max(1, numbers))
            rows, segments = batch.chunks(self.rows, self.memory)[0]
            pair = self._load(batch, rows)
            for place in (stirred(self.parameters), nullcontext()):
                with place:
                    if refuse_mixing(self._watched, pair, segments.rows):
                        self.method = self._choose(pair, segments)
                        return
        raise ModelError("no loss among the first examples is finite: nothing shows that examples are not mixed")

    def go_on_with(self, method: object) -> None:
        """Take the method a run began with, if the choice was open and it is right here too: clocks differ."""
        if self.wanted is Method.AUTO and self.method is not None and method in self._right:
            self.method = Method(str(method))

    def check(self, batch: Batch) -> None:
        """The same questions again, for these rows and the parameters as they are now."""
        if not batch.sizes or self.method is None:
            return
        with self._full(), exact(), torch.enable_grad():
            rows, segments = batch.chunks(self.rows, self.memory)[0]
            pair = self._load(batch, rows)
            refuse_mixing(self._watched, pair, segments.rows)
            if self.method is Method.LOOP or segments.rows > self.rows:
                return
            with quiet(self.model, lambda: self._losses(pair)):
                reference = self._plain(pair, segments)
                if not self._tried(self.method, pair, segments).sums(reference):
                    raise ModelError(
                        f"method={self.method.value!r} no longer reproduces this model's gradients: use method='loop'"
                    )
                self._refuse_meeting(self.method, pair, segments)

    def _losses(self, pair: Pair) -> Tensor:
        return losses_of(self.model, self.loss, pair)

    def losses(self, batch: Batch, rows: int) -> Tensor:
        """The losses of the first rows."""
        with self._full():
            return self._losses(self._load(batch, slice(0, rows)))

    def _watched(self, pair: Pair) -> Tensor:
        held = Held(self.model, values=True)
        losses = self._losses(pair)
        held.refuse_changes()
        return losses

    def _choose(self, pair: Pair, segments: Segments) -> Method:
        """The method for the parameters as they are now."""
        if self.wanted is Method.AUTO:
            options = [Method.FAST, Method.VECTORIZED, Method.LOOP][not self.rules :]
        else:
            options = [self.wanted]
        first = Segments(segments.sizes[:COMPARED_GROUPS], self.memory)
        few = part(pair, slice(0, first.rows))
        with quiet(self.model, lambda: self._losses(pair)):
            slow = self._tried(Method.LOOP, few, first)
            if self.wanted is Method.AUTO and not (slow.norms.isfinite() & (slow.norms > 0)).any():
                return Method.LOOP  # nothing to compare with: take what is right for every model
            reference = self._plain(pair, segments)
            right: list[Method] = []
            for option in options:
                try:
                    if option is Method.FAST:
                        self._settle(few, first)
                    agrees = self._tried(option, few, first).agrees(slow)
                    agrees = agrees and self._tried(option, pair, segments).sums(reference)
                except ArgumentError:
                    raise
                except Exception as error:
                    if option is self.wanted:
                        raise ModelError(f"this model cannot use method={option.value!r}: {error}") from error
                    continue
                if agrees:
                    right.append(option)
                    if option is Method.FAST and not self.rest:
                        break
                elif option is self.wanted:
                    raise ModelError(f"method={option.value!r} does not reproduce this model's gradients: use 'auto'")
            if not right:
                raise ModelError(
                    "the gradient of a group is another one within a larger batch: the loss, a hook or an autograd "
                    "function looks at the whole batch, or the model draws random numbers even in evaluation mode"
                )
            self._right |= set(right)
            taken = right[0]
            if len(right) > 1 and self.measures:
                taken = self._fastest(right, pair, segments)
            self._refuse_meeting(taken, pair, segments)
            return taken

    def _refuse_meeting(self, option: Method, pair: Pair, segments: Segments) -> None:
        """Raise if a group's gradient changes with another group: examples may meet on the way back only."""
        if option is Method.LOOP or len(segments) == 1:
            return
        last = segments.sizes[-1]
        others = Segments(segments.sizes[:-1], self.memory)
        with same_draws():
            before = self._tried(option, pair, segments, len(others))
        for factor in FACTORS:
            with same_draws():
                far = moved(pair, segments.rows - last, 0, factor)
                after = self._tried(option, far, segments, len(others))
            if not after.agrees(before):
                raise ModelError(
                    "the gradient of an example depends on the other examples of its batch: a hook or an autograd "
                    "function mixes them on the way back, which no clipping by groups can make private"
                )

    def _fastest(self, right: list[Method], pair: Pair, segments: Segments) -> Method:
        """The method with the shortest of a few turns: a single one may meet a busy moment. All ran once before."""
        best = {option: self._seconds(option, pair, segments) for option in right}
        close = [option for option in right if best[option] < 3 * min(best.values())]
        for option in (TURNS - 1) * close if len(close) > 1 else []:
            best[option] = min(best[option], self._seconds(option, pair, segments))
        return min(right, key=best.__getitem__)

    def _seconds(self, option: Method, pair: Pair, segments: Segments) -> float:
        start = time.perf_counter()
        self._tried(option, pair, segments)
        return time.perf_counter() - start

    def _settle(self, pair: Pair, segments: Segments) -> None:
        """Leave out the rules of layers that this model uses as no rule covers."""
        while True:
            try:
                self._tried(Method.FAST, pair, segments)
                return
            except CaptureError as error:
                missed = {id(p) for p in error.parameters}
                left = {k: v for k, v in self.rules.items() if not missed & {id(p) for p in k.parameters()}}
                if not 0 < len(left) < len(self.rules):
                    raise
                self.rules = left
                self.rest = self._without_rule()

    def _tried(self, option: Method, pair: Pair, segments: Segments, first: int | None = None) -> "_Gathered":
        """Norms and unclipped sum by one method, of the first groups if not of all."""
        if option is Method.FAST:
            return self._gathered((layer for layer, _ in self._layers(pair, segments, nullcontext())), first)
        found = _BY_GROUP[option](self.model, self.loss, pair, segments)
        return self._gathered((kept(list(zip(self.parameters, each, strict=True))) for each, _ in found), first)

    def _plain(self, pair: Pair, segments: Segments) -> Tensor:
        """The sum of all groups' mean gradients by one plain backward pass, which no rule takes part in."""
        losses = self._losses(pair)
        finite = segments.sum(losses.detach()).isfinite()
        weights = segments.shares(losses) * segments.spread(finite.to(losses.dtype))
        value = torch.where(weights > 0, losses, 0).dot(weights)
        if not value.requires_grad:
            return torch.cat([torch.zeros_like(p).flatten() for p in self.parameters])
        found = torch.autograd.grad(value, self.parameters, allow_unused=True)
        pieces = [
            torch.zeros_like(p) if g is None else g.to_dense() for p, g in zip(self.parameters, found, strict=True)
        ]
        return torch.cat([piece.flatten() for piece in pieces])

    def _gathered(self, layers: Iterator[Layer], first: int | None = None) -> "_Gathered":
        norms: list[Tensor] = []
        total = {id(p): torch.zeros_like(p) for p in self.parameters}
        for layer in layers:
            left = len(layer.squares) if first is None else first - sum(map(len, norms))
            norms.append(layer.squares.sqrt()[:left])
            finite = layer.squares.isfinite()
            finite[max(left, 0) :] = False
            for parameter, gradient in layer.weigh(finite.to(layer.squares.dtype), not bool(finite.all())):
                if id(parameter) in total:
                    total[id(parameter)] += gradient
        return _Gathered(torch.cat(norms), torch.cat([t.flatten() for t in total.values()]))

    # --------------------------------------------------------------------------------------------------- one batch

    def __call__(self, batch: Batch, step: float = 1.0) -> ClippedSum:
        """Σ [Δ]_ρ over the groups of the batch; ``step`` is Algorithm 1's α, which matters only for a bounded Θ."""
        with self._full(), torch.enable_grad():
            self.prepare(batch)
            held = Held(self.model)
            found = self._sum(batch, step)
            held.refuse_changes()
        return found

    def _sum(self, batch: Batch, step: float) -> ClippedSum:
        total: dict[int, Tensor] = {}
        norms, losses = [], []
        for rows, segments in batch.chunks(self.rows, self.memory) if self.method else []:
            pair = self._load(batch, rows)
            for layer, means in self._chunk(pair, segments, step):
                found = layer.squares.sqrt()
                finite = found.isfinite() & means.isfinite()
                # A few units in the last place, so that rounding never lets more than ρ through.
                bound = found * (1 + 16 * torch.finfo(found.dtype).eps)
                factors = torch.where(finite, (self.rho / bound).clamp_max(1), 0)
                with exact():
                    weighted = layer.weigh(factors, not bool(finite.all()))
                for parameter, gradient in weighted:
                    so_far = total.get(id(parameter))
                    total[id(parameter)] = gradient if so_far is None else so_far.add_(gradient)
                norms.append(torch.where(finite, found, torch.inf))
                losses.append(means)
        empty = torch.zeros(0, device=self.device)
        sums = [total[id(p)] if id(p) in total else torch.zeros_like(p) for p in self.parameters]
        return ClippedSum(sums, torch.cat(norms) if norms else empty, torch.cat(losses) if losses else empty)

    def each_group(self, batch: Batch, step: float = 1.0) -> Iterator[Found]:
        """Algorithm 1's Δ of every group of the batch before clipping, some groups at a time, and their mean losses."""
        with self._full(), torch.enable_grad():
            self.prepare(batch)
            held = Held(self.model)
            for rows, segments in batch.chunks(self.rows, self.memory) if self.method else []:
                with exact():
                    yield from self.group_gradients(self._load(batch, rows), segments, step)
            held.refuse_changes()

    def _chunk(self, pair: Pair, segments: Segments, step: float) -> Iterator[tuple[Layer, Tensor]]:
        if self.method is Method.FAST and (len(segments) > 1 or segments.rows <= self.rows):
            try:
                yield from self._layers(pair, segments, self._autocast())
                return
            except (
                CaptureError
            ) as error:  # these rows use a layer as no rule covers: one backward pass per group is right
                if self.wanted is Method.FAST:
                    raise ModelError(f"this model cannot use method='fast' for all of its data: {error}") from error
        for gradients, means in self.group_gradients(pair, segments, step):
            yield kept(list(zip(self.parameters, gradients, strict=True))), means

    def group_gradients(self, pair: Pair, segments: Segments, step: float) -> Iterator[Found]:
        """Algorithm 1's Δ of every group, some groups at a time, and the groups' mean losses."""
        if len(segments) == 1 and segments.rows > self.rows:
            with self._autocast():
                found: Iterator[Found] = iter([summed(self.model, self.loss, pair, self.rows)])
        else:
            method = Method.VECTORIZED if self.method is Method.VECTORIZED else Method.LOOP
            found = _BY_GROUP[method](self.model, self.loss, pair, segments)
        while True:
            # Half precision ends with the passes: rounding a clipped sum to it would move the sum by far more than 2ρ.
            try:
                with self._autocast():
                    here = next(found, None)
            except CaptureError as error:
                raise ModelError(f"{error}, for some of its data: use method='loop'") from error
            if here is None:
                return
            gradients, means = [_wide(g) for g in here[0]], _wide(here[1].detach())
            theta = [p.detach() for p in self.parameters]
            yield gradient_mapping(self.domain, theta, gradients, step), means

    def _layers(
        self, pair: Pair, segments: Segments, autocast: AbstractContextManager[object]
    ) -> Iterator[tuple[Layer, Tensor]]:
        """All layers of one chunk by their rules, and parameters without one beside them."""
        if not self.rest:
            yield self._layer(pair, segments, autocast)
            return
        beside = Beside(self.model, self.loss, self.rules, self.rest, self.memory)
        found = []  # all of them or none: a pass that fails is taken over by another method
        for groups in equal_groups(pair, segments, self.rest.values()):
            with autocast:
                layer, means = beside(groups)
            with exact():
                found.append((layer(), _wide(means)))
        yield from found

    def _layer(self, pair: Pair, segments: Segments, autocast: AbstractContextManager[object]) -> tuple[Layer, Tensor]:
        """All layers of one chunk by their rules."""
        with torch.enable_grad(), autocast, Capture(self.rules, self.parameters) as capture:
            losses = _wide(self._losses(pair))
            weights = segments.shares(losses)
            calls = capture.calls(losses, weights)
        with exact():
            found = [
                recurrent(layer, used, segments)
                if isinstance(layer, RecurrentCell)
                else self.rules[layer](layer, used, segments)
                for layer, used in calls
            ]
        means = segments.sum(losses.detach() * weights)
        if not found:
            return Layer(torch.zeros_like(means), lambda factors, spoilt: []), means
        return merged(found), means

    def _autocast(self) -> AbstractContextManager[object]:
        """For the passes through the model only. No cache: it would outlive a step within a caller's own autocast."""
        if self.precision is None:
            return nullcontext()
        return torch.autocast(self.device.type, self.precision, cache_enabled=False)

    def _full(self) -> AbstractContextManager[object]:
        """Norms, factors and sums in the parameters' own precision, whatever the caller has switched on."""
        return torch.autocast(self.device.type, enabled=False)

    def _load(self, batch: Batch, rows: slice) -> Pair:
        inputs, targets = (each(side, lambda t: t.to(self.device, non_blocking=True)) for side in batch.fetch(rows))
        return inputs, targets


_BY_GROUP: dict[Method, Callable[[nn.Module, Loss, Pair, Segments], Iterator[Found]]] = {
    Method.VECTORIZED: vectorized,
    Method.LOOP: looped,
}


@dataclass(frozen=True)
class _Gathered:
    """Norms of some groups' gradients, and the sum of the finite ones over all trainable parameters.

    The sum is compared too: a hook that turns a layer's output, or parameters behind a layer's weight (weight
    normalisation at its start), leave every norm as it is and yet another gradient.
    """

    norms: Tensor
    total: Tensor

    def sums(self, total: Tensor) -> bool:
        """Whether the sum is this one, up to rounding, on the scale of what was added: losses may be small.

        A gradient that is not finite though its loss is leaves nothing to compare.
        """
        finite = self.norms[self.norms.isfinite()]
        size = finite.sum() + total.norm()
        return not total.isfinite().all() or bool(
            (self.total - total).norm() <= 100 * torch.finfo(total.dtype).eps * size
        )

    def agrees(self, reference: "_Gathered") -> bool:
        """The same norms and sum, up to rounding; Gram matrices round norms up by more than sums."""
        finite = reference.norms.isfinite()
        if not torch.equal(self.norms.isfinite(), finite) or not self.sums(reference.total):
            return False
        apart = (self.norms - reference.norms)[finite].abs()
        return not finite.any() or bool(
            (apart <= 1e4 * torch.finfo(apart.dtype).eps * reference.norms[finite].max()).all()
        )


def _wide(values: Tensor) -> Tensor:
    """At least float32."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
