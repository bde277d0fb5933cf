"""Algorithm 1 for a whole batch: one averaged gradient per (user, element), clipped to ρ and summed."""

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from elementdp.errors import ArgumentError, ElementdpError, one_of
from elementdp.learning._fast.capture import CaptureError, count_outputs
from elementdp.learning._fast.general import Found, Loss, part, summed
from elementdp.learning._fast.products import Layer, kept
from elementdp.learning._fast.segments import Memory, Segments
from elementdp.learning.batch import Batch
from elementdp.learning.domain import Domain, gradient_mapping
from elementdp.learning.draws import same_draws
from elementdp.learning.held import Held
from elementdp.learning.loading import Loading, refuse_mixed_loading
from elementdp.learning.models import ModelError
from elementdp.learning.passes import BY_GROUP, Gathered, Method, Passes, Reference, wide
from elementdp.learning.precision import exact
from elementdp.learning.probing import FACTORS, exchanged, moved, quiet, refuse_mixing, stirred
from elementdp.learning.rows import Pair, count, tensors

FEWEST_ROWS = 32
"""So many rows at least pass through the model at once, unless a size is given: fewer keep it from its full speed."""
COMPARED_GROUPS = 4
"""So many groups' norms are compared with one backward pass per group."""
TURNS = 4
"""So often methods that are nearly as fast as the fastest are timed, by turns."""
MARGIN = 1.1
"""So many times faster than the rules another method has to be: clocks tell no smaller difference."""
FIRST_DRAWS, LATER_DRAWS = 16, 4
"""By so many different draws a model that draws random numbers is looked at, before the first step and later."""


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


class GroupClipper(Passes):
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
        self.wanted = Method(one_of("method", method, Method))
        by_rules = not by_group and domain is None
        super().__init__(model, loss, by_rules=by_rules, precision=precision, memory=memory)
        self.rho, self.domain = rho, domain
        self.method: Method | None = None
        self.measures = True  # a run with a seed does not: it has to repeat whatever the clock says
        self._right = {Method.LOOP}
        self.loading = Loading.FIXED
        self._looks = FIRST_DRAWS
        self.rows = 0
        if self.wanted is Method.FAST and not (self.rules or self.tied):
            raise ArgumentError(
                "method", "fast", "another one: no layer has a fast rule, Θ is bounded, or the noise is exact"
            )

    # ----------------------------------------------------------------------------------------------- choice of a method

    def prepare(self, batch: Batch) -> None:
        """Refuse a model that mixes or remembers, and choose the method by comparing it with plain passes; done once.

        The rows should be as many as a step has, and come from all over the data. Parameters at or near zero are moved
        away from it for the comparison; only if no loss is finite there is the model compared as it is.
        """
        if self.method is not None or not batch.sizes:
            return
        with self.full(), exact(), torch.enable_grad():
            with same_draws():  # rows may draw random numbers too
                few = self.load(batch, slice(0, min(8, sum(batch.sizes))))
                numbers = sum(t.numel() * t.element_size() for side in few for t in tensors(side))
                numbers += 4 * count_outputs(self.model, few[0])
            chunk = self.memory.chunk or (1 << 25 if self.device.type == "cpu" else 1 << 30)
            self.rows = max(1 if self.memory.chunk else FEWEST_ROWS, chunk * count(few[0]) // max(1, numbers))
            rows, segments = batch.chunks(self.rows, self.memory)[0]
            with same_draws():
                pair = self.load(batch, rows)
            for place in (stirred(self.parameters), nullcontext()):
                with place:
                    if refuse_mixing(self._watched, pair, segments.rows, range(1, 1 + FIRST_DRAWS)):
                        with quiet(self.model, lambda: self.row_losses(pair)):
                            self.loading = refuse_mixed_loading(batch, lambda found: self.row_losses(self.moved(found)))
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
        with self.full(), exact(), torch.enable_grad():
            rows, segments = batch.chunks(self.rows, self.memory)[0]
            with same_draws(self._looks):
                pair = self.load(batch, rows)
            self._looks += LATER_DRAWS  # other random numbers each time
            refuse_mixing(self._watched, pair, segments.rows, range(self._looks - LATER_DRAWS, self._looks))
            if self.method is Method.LOOP or segments.rows > self.rows:
                return
            with quiet(self.model, lambda: self.row_losses(pair)):
                reference = self.plain(pair, segments)
                try:
                    found = self.tried(self.method, pair, segments)
                except CaptureError:  # these rows take another way, in the step too
                    return
                if not found.sums(reference):
                    raise ModelError(
                        f"method={self.method.value!r} no longer reproduces this model's gradients: use method='loop'"
                    )
                self._refuse_meeting(self.method, pair, segments)

    def losses(self, batch: Batch, rows: Tensor) -> Tensor:
        """The losses of these rows."""
        with self.full():
            return self.row_losses(self.load(batch, rows))

    def _watched(self, pair: Pair) -> Tensor:
        held = Held(self.watched, values=True)
        losses = self.row_losses(pair)
        held.refuse_changes()
        return losses

    def _choose(self, pair: Pair, segments: Segments) -> Method:
        """The method for the parameters as they are now."""
        if not self.row_losses(pair).requires_grad:
            raise ModelError(
                "no loss has a gradient by the model's parameters, so that nothing but noise would be learnt: the loss "
                "takes whole numbers (argmax) or what is detached"
            )
        if self.wanted is Method.AUTO:
            options = [Method.FAST, Method.VECTORIZED, Method.LOOP][not (self.rules or self.tied) :]
        else:
            options = [self.wanted]
        first = Segments(segments.sizes[:COMPARED_GROUPS], self.memory)
        few = part(pair, slice(0, first.rows))
        with same_draws():
            self.refuse_hidden(few)
        calm = partial(quiet, self.model, lambda: self.row_losses(pair))
        with calm():
            slow = self.tried(Method.LOOP, few, first)
            if self.wanted is Method.AUTO and not (slow.norms.isfinite() & (slow.norms > 0)).any():
                return Method.LOOP  # nothing to compare with: take what is right for every model
            reference = self.plain(pair, segments)
        right: list[Method] = []
        for option in options:
            with same_draws():  # in the mode that trains: a layer may draw random numbers only there
                if not self._attempt(option, partial(self._ran, option, few, first)):
                    continue
            with calm():
                found = self._attempt(
                    option, partial(self._finds, option, (few, first, slow), (pair, segments, reference))
                )
            if found:
                right.append(option)
                if option is Method.FAST and (self.by_name or not self.rest):
                    break  # the others need not be tried, and torch.func is slow to load
            elif option is self.wanted:
                raise ModelError(f"method={option.value!r} does not reproduce this model's gradients: use 'auto'")
        if not right:
            raise ModelError(
                "the gradient of a group is another one within a larger batch: the loss, a hook or an autograd "
                "function looks at the whole batch, or the model draws random numbers even in evaluation mode"
            )
        self._right |= set(right)
        with calm():
            taken = right[0]
            if len(right) > 1 and self.measures:
                taken = self._fastest(right, pair, segments)
            self._refuse_meeting(taken, pair, segments)
        return taken

    def _attempt(self, option: Method, attempt: Callable[[], object]) -> bool:
        """What came of it: a method that cannot follow a model is passed over, unless it was asked for by name."""
        try:
            return bool(attempt())
        except ElementdpError:
            raise
        except Exception as error:
            if option is self.wanted:
                raise ModelError(f"this model cannot use method={option.value!r}: {error}") from error
            return False

    def _finds(
        self, option: Method, few: tuple[Pair, Segments, "Gathered"], whole: tuple[Pair, Segments, Reference]
    ) -> bool:
        """Whether a method finds these norms and sum of a few groups, and this sum of all."""
        if self._ran(option, *few[:2]).agrees(few[2]) and self.tried(option, *whole[:2]).sums(whole[2]):
            return True
        if option is not Method.FAST or not self.by_name or not self.rest:
            return False
        self.by_name = False
        return self._finds(option, few, whole)

    def _ran(self, option: Method, pair: Pair, segments: Segments) -> "Gathered":
        """What a method finds, without the rules of layers that this model uses as no rule covers."""
        if option is Method.FAST:
            self.settle(pair, segments)
        return self.tried(option, pair, segments)

    def _refuse_meeting(self, option: Method, pair: Pair, segments: Segments) -> None:
        """Raise if a group's gradient changes with another group: examples may meet on the way back only."""
        if option is Method.LOOP or len(segments) == 1:
            return
        last = segments.sizes[-1]
        others = Segments(segments.sizes[:-1], self.memory)
        place = segments.rows - last
        with same_draws():
            before = self.tried(option, pair, segments, len(others))
        for factor in FACTORS:
            after = self._beside(option, moved(pair, place, factor), segments, len(others))
            if after is None:  # the model does not take such numbers
                after = self._beside(option, exchanged(pair, place), segments, len(others))
            if after is not None and not after.agrees(before):
                raise ModelError(
                    "the gradient of an example depends on the other examples of its batch: a hook or an autograd "
                    "function mixes them on the way back, which no clipping by groups can make private"
                )

    def _beside(self, option: Method, pair: Pair, segments: Segments, first: int) -> "Gathered | None":
        """The first groups' norms and sum beside a row that is far away; None if the method cannot follow it."""
        with same_draws():
            try:
                return self.tried(option, pair, segments, first)
            except ElementdpError:
                raise
            except Exception:
                return None

    def _fastest(self, right: list[Method], pair: Pair, segments: Segments) -> Method:
        """The method with the shortest of a few turns: a single one may meet a busy moment. All ran once before."""
        best = {option: self._seconds(option, pair, segments) for option in right}
        close = [option for option in right if best[option] < 3 * min(best.values())]
        for option in (TURNS - 1) * close if len(close) > 1 else []:
            best[option] = min(best[option], self._seconds(option, pair, segments))
        return min(right, key=lambda option: best[option] * (1 if option is Method.FAST else MARGIN))

    def _seconds(self, option: Method, pair: Pair, segments: Segments) -> float:
        start = time.perf_counter()
        self.tried(option, pair, segments)
        return time.perf_counter() - start

    # --------------------------------------------------------------------------------------------------- one batch

    def __call__(self, batch: Batch, step: float = 1.0) -> ClippedSum:
        """Σ [Δ]_ρ over the groups of the batch; ``step`` is Algorithm 1's α, which matters only for a bounded Θ."""
        with self.full(), torch.enable_grad():
            self.prepare(batch)
            held = Held(self.watched)
            found = self._sum(batch, step)
            held.refuse_changes()
        return found

    def _sum(self, batch: Batch, step: float) -> ClippedSum:
        total: dict[int, Tensor] = {}
        norms, losses = [], []
        for rows, segments in batch.chunks(self.rows, self.memory) if self.method else []:
            pair = self.load(batch, rows)
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
                del layer, weighted  # the next chunk can have their memory
        empty = torch.zeros(0, device=self.device)
        sums = [total[id(p)] if id(p) in total else torch.zeros_like(p) for p in self.parameters]
        return ClippedSum(sums, torch.cat(norms) if norms else empty, torch.cat(losses) if losses else empty)

    def each_group(self, batch: Batch, step: float = 1.0) -> Iterator[Found]:
        """Algorithm 1's Δ of every group of the batch before clipping, some groups at a time, and their mean losses."""
        with self.full(), torch.enable_grad():
            self.prepare(batch)
            held = Held(self.watched)
            # Groups that are passed one by one are loaded so too: rows may be padded to the length of the others.
            together = 1 if self.method is Method.LOOP else self.rows
            for rows, segments in batch.chunks(together, self.memory) if self.method else []:
                with exact():
                    yield from self.group_gradients(self.load(batch, rows), segments, step)
            held.refuse_changes()

    def _chunk(self, pair: Pair, segments: Segments, step: float) -> Iterator[tuple[Layer, Tensor]]:
        if self.method is Method.FAST and (len(segments) > 1 or segments.rows <= self.rows):
            try:
                yield from self.layers(pair, segments, self.autocast())
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
            with self.autocast():
                found: Iterator[Found] = iter([summed(self.model, self.loss, pair, self.rows)])
        else:
            method = Method.VECTORIZED if self.method is Method.VECTORIZED else Method.LOOP
            found = BY_GROUP[method](self.model, self.loss, pair, segments)
        while True:
            # Half precision ends with the passes: rounding a clipped sum to it would move the sum by far more than 2ρ.
            try:
                with self.autocast():
                    here = next(found, None)
            except CaptureError as error:
                raise ModelError(f"{error}, for some of its data: use method='loop'") from error
            if here is None:
                return
            gradients, means = [wide(g) for g in here[0]], wide(here[1].detach())
            theta = [p.detach() for p in self.parameters]
            yield gradient_mapping(self.domain, theta, gradients, step), means
