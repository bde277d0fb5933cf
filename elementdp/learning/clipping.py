"""Algorithm 1 for a whole batch: one averaged gradient per (user, element), clipped to ρ and summed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from elementdp.errors import ArgumentError, one_of
from elementdp.learning._fast.capture import Capture, CaptureError, count_outputs
from elementdp.learning._fast.general import Found, Loss, looped, losses_of, summed, trainable, vectorized
from elementdp.learning._fast.precision import exact
from elementdp.learning._fast.products import Layer, kept, merged
from elementdp.learning._fast.rules import RULES
from elementdp.learning._fast.segments import Pair, Segments
from elementdp.learning.batch import Batch
from elementdp.learning.domain import Domain, gradient_mapping
from elementdp.learning.models import ModelError, fast_layers, refuse

CHUNK_BYTES = {"cpu": 1 << 25}
"""Rows pass through the model in chunks whose layer inputs and outputs take this much (elsewhere 1 GiB)."""


class Method(StrEnum):
    """How group gradients are found; all are exact."""

    AUTO = "auto"
    FAST = "fast"  # the rules of `elementdp.learning._fast.rules`: one forward and one backward pass
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
    """Clipped sums of group gradients of ``model``, by the fastest exact method it allows."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        rho: float,
        *,
        domain: Domain | None = None,
        method: Method | str = Method.AUTO,
        precision: torch.dtype | None = None,
    ) -> None:
        if not rho > 0:
            raise ArgumentError("rho", rho, "> 0 (infinity for no clipping)")
        if precision not in (None, torch.bfloat16, torch.float16):
            raise ArgumentError("precision", precision, "None, torch.bfloat16 or torch.float16")
        self.wanted = Method(one_of("method", method, Method))
        refuse(model)
        self.model, self.loss, self.rho, self.domain, self.precision = model, loss, rho, domain, precision
        self.parameters = list(trainable(model).values())
        self.device = self.parameters[0].device
        self.layers = fast_layers(model)
        self.method: Method | None = None
        self.rows = 0
        if self.wanted is Method.FAST and (self.layers is None or domain is not None):
            raise ArgumentError("method", "fast", "another one: some layer has no fast rule, or Θ is bounded")

    # ------------------------------------------------------------------------------------------- choice of method

    def prepare(self, batch: Batch) -> None:
        """Choose the method on a few rows, by comparing it with one backward pass per group; done once.

        Parameters at or near zero are moved away from it for the comparison: a gate that starts closed would hide a
        branch that mixes examples. Only if no loss is finite there is the model compared as it is.
        """
        if self.method is not None or not batch.sizes:
            return
        count = min(8, sum(batch.sizes))
        pair = self._load(batch, slice(0, count))
        segments = Segments([1] if count == 1 else [1, count - 1])
        for place in (_stirred(self.parameters), nullcontext()):
            with self._full(), exact(), place:
                self.method = self._compared(pair, segments)
            if self.method is not None:
                break
        else:
            raise ModelError("no loss among the first examples is finite: nothing shows that examples are not mixed")
        per_row = max(1, self._bytes // count)
        self.rows = max(1, CHUNK_BYTES.get(self.device.type, 1 << 30) // per_row)

    def _compared(self, pair: Pair, segments: Segments) -> Method | None:
        """The method for the parameters as they are now; None if no loss is finite."""
        count = segments.rows
        self._refuse_memory(pair)
        with _quiet(self.model, lambda: losses_of(self.model, self.loss, pair)):
            alone = torch.cat([losses_of(self.model, self.loss, _slice(pair, i, i + 1)) for i in range(count)])
            if not alone.isfinite().any():
                return None
            together = losses_of(self.model, self.loss, pair)
            if not _close(alone.detach(), together.detach()):
                raise ModelError(
                    "the loss of an example depends on the other examples of its batch: "
                    "a layer or the loss mixes examples, which no clipping by groups can make private"
                )
            reference = self._gathered(self._by_group(Method.LOOP, pair, segments))
            return self._choose(pair, segments, reference)

    def _choose(self, pair: Pair, segments: Segments, reference: "_Gathered") -> Method:
        inside = sum(t.numel() * t.element_size() for t in pair)
        self._bytes = inside + 4 * count_outputs(self.model, pair[0])
        options: list[Method] = (
            [Method.FAST, Method.VECTORIZED, Method.LOOP] if self.wanted is Method.AUTO else [self.wanted]
        )
        if self.domain is not None or self.layers is None:
            options = [option for option in options if option is not Method.FAST]
        if self.wanted is Method.AUTO and not (reference.norms.isfinite() & (reference.norms > 0)).any():
            options = [Method.LOOP]  # nothing to compare with: take what is right for every model
        for option in options:
            try:
                if option is Method.FAST:
                    found = self._gathered(iter([self._layer(pair, segments, nullcontext())[0]]))
                else:
                    found = self._gathered(self._by_group(option, pair, segments))
            except (RuntimeError, NotImplementedError, CaptureError) as error:
                if option is self.wanted:
                    raise ModelError(f"this model cannot use method={option.value!r}: {error}") from error
                continue
            if found.agrees(reference):
                return option
            if option is self.wanted:
                raise ModelError(f"method={option.value!r} does not reproduce this model's gradients: use 'auto'")
        raise ModelError("the model's gradients differ from one pass to the next with dropout off")

    def _by_group(self, option: Method, pair: Pair, segments: Segments) -> Iterator[Layer]:
        for gradients, _ in _BY_GROUP[option](self.model, self.loss, pair, segments):
            yield kept(list(zip(self.parameters, gradients, strict=True)))

    def _gathered(self, layers: Iterator[Layer]) -> "_Gathered":
        norms = []
        total = {id(p): torch.zeros_like(p) for p in self.parameters}
        for layer in layers:
            norms.append(layer.squares.sqrt())
            for parameter, gradient in layer.weigh(norms[-1].isfinite().to(norms[-1].dtype), True):
                if id(parameter) in total:
                    total[id(parameter)] += gradient
        return _Gathered(torch.cat(norms), torch.cat([t.flatten() for t in total.values()]))

    def _refuse_memory(self, pair: Pair) -> None:
        """A layer that stores what it sees would release it without noise."""
        before = {name: buffer.clone() for name, buffer in self.model.named_buffers()}
        with torch.random.fork_rng(), torch.no_grad():
            self.model(pair[0])
        for name, buffer in self.model.named_buffers():
            if not torch.equal(buffer, before[name]):
                buffer.copy_(before[name])
                raise ModelError(f"buffer {name} changes with the data and would be released without noise")

    # --------------------------------------------------------------------------------------------------- one batch

    def __call__(self, batch: Batch, step: float = 1.0) -> ClippedSum:
        """Σ [Δ]_ρ over the groups of the batch; ``step`` is Algorithm 1's α, which matters only for a bounded Θ."""
        with self._full():
            self.prepare(batch)
            return self._sum(batch, step)

    def _sum(self, batch: Batch, step: float) -> ClippedSum:
        total: dict[int, Tensor] = {}
        norms, losses = [], []
        for rows, segments in batch.chunks(self.rows) if self.method else []:
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

    def _chunk(self, pair: Pair, segments: Segments, step: float) -> Iterator[tuple[Layer, Tensor]]:
        if len(segments) == 1 and segments.rows > self.rows:
            with self._autocast():
                found: Iterator[Found] = iter([summed(self.model, self.loss, pair, self.rows)])
        elif self.method is Method.FAST:
            yield self._layer(pair, segments, self._autocast())
            return
        else:
            found = _BY_GROUP[self.method or Method.LOOP](self.model, self.loss, pair, segments)
        while True:
            # Half precision ends with the passes: rounding a clipped sum to it would move the sum by far more than 2ρ.
            with self._autocast():
                here = next(found, None)
            if here is None:
                return
            gradients, means = [_wide(g) for g in here[0]], _wide(here[1].detach())
            theta = [p.detach() for p in self.parameters]
            moved = gradient_mapping(self.domain, theta, gradients, step)
            yield kept(list(zip(self.parameters, moved, strict=True))), means

    def _layer(self, pair: Pair, segments: Segments, autocast: AbstractContextManager[object]) -> tuple[Layer, Tensor]:
        """All layers of one chunk by the fast rules."""
        assert self.layers is not None
        with torch.enable_grad(), autocast, Capture(self.layers) as capture:
            losses = _wide(losses_of(self.model, self.loss, pair))
            weights = segments.spread(torch.from_numpy(1 / segments.lengths).to(losses.dtype).to(losses.device))
            calls = capture.calls(losses, weights)
        with exact():
            found = [RULES[type(layer)](layer, used, segments) for layer, used in calls]
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
        inputs, targets = batch.fetch(rows)
        return inputs.to(self.device, non_blocking=True), targets.to(self.device, non_blocking=True)


_BY_GROUP: dict[Method, Callable[[nn.Module, Loss, Pair, Segments], Iterator[Found]]] = {
    Method.VECTORIZED: vectorized,
    Method.LOOP: looped,
}


@contextmanager
def _quiet(model: nn.Module, losses: Callable[[], Tensor]) -> Iterator[None]:
    """Dropout off and an untouched random state, so that two passes can be compared.

    Layers keep their training mode, in which they may mix examples; only if the model then still draws random numbers
    is all of it put into evaluation mode.
    """
    modes = {module: module.training for module in model.modules()}
    with torch.random.fork_rng(), torch.enable_grad():
        try:
            for module in modes:
                module.training = module.training and not isinstance(module, _DropoutNd)
            torch.manual_seed(1)
            first = losses().detach()
            torch.manual_seed(2)
            if not torch.equal(first.nan_to_num(), losses().detach().nan_to_num()):
                model.eval()
            yield
        finally:
            for module, mode in modes.items():
                module.training = mode


@contextmanager
def _stirred(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Parameters near zero, for their fan-in, are moved by seeded noise of the usual size, and put back at the end."""
    generator = torch.Generator().manual_seed(0)
    before = [p.detach().clone() for p in parameters]
    try:
        with torch.no_grad():
            for p in parameters:
                size = 0.5 / max(1, p[0].numel() if p.dim() > 1 else 1) ** 0.5
                noise = torch.randn(p.shape, generator=generator, dtype=p.dtype).to(p.device)
                p.add_(torch.where(p.abs() < size / 25, size * noise, 0))
        yield
    finally:
        with torch.no_grad():
            for p, value in zip(parameters, before, strict=True):
                p.copy_(value)


@dataclass(frozen=True)
class _Gathered:
    """Norms of some groups' gradients, and the sum of the finite ones over all trainable parameters.

    The sum is compared too: a hook that turns a layer's output, or parameters behind a layer's weight (weight
    normalisation at its start), leave every norm as it is and yet another gradient.
    """

    norms: Tensor
    total: Tensor

    def agrees(self, reference: "_Gathered") -> bool:
        """Equal up to rounding, on the scale of the largest norm: losses may be small."""
        finite = reference.norms.isfinite()
        if not torch.equal(self.norms.isfinite(), finite):
            return False
        apart = torch.cat([(self.norms - reference.norms)[finite], (self.total - reference.total)[None].norm(dim=1)])
        tolerance = 1e4 * torch.finfo(self.norms.dtype).eps * reference.norms[finite].max() if finite.any() else 0
        return bool((apart.abs() <= tolerance).all())


def _close(left: Tensor, right: Tensor) -> bool:
    """Finite in the same places, and equal there up to rounding."""
    both = left.isfinite() & right.isfinite()
    if not torch.equal(left.isfinite(), right.isfinite()):
        return False
    tolerance = 1e4 * torch.finfo(left.dtype).eps
    a, b = left[both].cpu().double(), right[both].cpu().double()
    return bool(((a - b).abs() <= tolerance * (1 + torch.maximum(a.abs(), b.abs()))).all())


def _wide(values: Tensor) -> Tensor:
    """At least float32."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _slice(pair: Pair, start: int, stop: int) -> Pair:
    return pair[0][start:stop], pair[1][start:stop]
