"""The layers with an exact fast rule. A rule gets what went into a layer and the gradient of what came out."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from elementdp.learning._fast.capture import CaptureError
from elementdp.learning._fast.convolution import convolution
from elementdp.learning._fast.forms import rms_eps
from elementdp.learning._fast.products import (
    Call,
    Gradients,
    Layer,
    added_up,
    clean,
    group_products,
    joined,
    kept,
    merged,
    product,
    product_squares,
    scaled_rows,
    trainable,
    worth_keeping,
)
from elementdp.learning._fast.recurrent import RecurrentCell
from elementdp.learning._fast.segments import Segments, accurate, segment_sums
from elementdp.learning.draws import host_random_state


def linear(module: nn.Linear, calls: Sequence[Call], segments: Segments) -> Layer:
    """``nn.Linear``: rows may carry further positions (a sequence); all of them belong to the row's group."""
    inputs = joined([call.inputs.reshape(segments.rows, -1, module.in_features) for call in calls])
    grads = joined([call.grads.reshape(segments.rows, -1, module.out_features) for call in calls])
    return affine(module.weight, module.bias, inputs, grads, segments)


def affine(weight: Tensor, bias: Tensor | None, inputs: Tensor, grads: Tensor, segments: Segments) -> Layer:
    """Wx + b at every position of every row, given x and the gradients of the result: (rows, positions, width)."""
    if not trainable(weight):
        if bias is not None and trainable(bias):
            return kept([(bias, segments.sum(grads.sum(1)))])
        return Layer(grads.new_zeros(len(segments)), lambda factors, spoilt: [])
    if worth_keeping(grads, inputs, segments):
        found = [(weight, group_products(grads, inputs, segments))]
        return kept([*found, (bias, segments.sum(grads.sum(1)))] if bias is not None and trainable(bias) else found)

    def weigh(factors: Tensor, spoilt: bool) -> Gradients:
        rows = segments.spread(factors)
        places = rows if grads.shape[1] == 1 else rows.repeat_interleave(grads.shape[1])
        left = scaled_rows(clean(grads, rows, spoilt).flatten(0, 1), places)
        right = clean(inputs, rows, spoilt).flatten(0, 1)
        found: Gradients = [(weight, product(left, right, segments.memory.keep))]
        return [*found, (bias, left.sum(0))] if bias is not None and trainable(bias) else found

    return Layer(product_squares(grads, inputs, segments, bias=trainable(bias)), weigh)


def recurrent(cell: RecurrentCell, calls: Sequence[Call], segments: Segments) -> Layer:
    """A cell of ``nn.LSTM`` or ``nn.GRU``: what input and state bring to its gates are two affine functions.

    Both have the gradient of the gates, but for a GRU's new state: the last one comes to it through the reset gate.
    """
    inputs, grads = (joined([getattr(call, name) for call in calls]) for name in ("inputs", "grads"))
    states = joined([call.states for call in calls if call.states is not None])
    through = grads
    if cell.kind is nn.GRU:
        resets = joined([call.resets for call in calls if call.resets is not None])
        width = resets.shape[2]
        through = torch.cat([grads[..., : 2 * width], grads[..., 2 * width :] * resets], 2)
    elif all(p.requires_grad for p in cell.parameters()) and all(
        worth_keeping(grads, right, segments) for right in (inputs, states)
    ):
        return _side_by_side(cell, torch.cat([inputs, states], 2), grads, segments)
    parts = [
        affine(cell.weight_ih, cell.bias_ih, inputs, grads, segments),
        affine(cell.weight_hh, cell.bias_hh, states, through, segments),
    ]
    return merged(parts)


def _side_by_side(cell: RecurrentCell, right: Tensor, grads: Tensor, segments: Segments) -> Layer:
    """An LSTM's cell whose input and state are one: its two weights are one too, and its biases have one gradient."""
    products, sums = group_products(grads, right, segments), segments.sum(grads.sum(1))
    biases = [bias for bias in (cell.bias_ih, cell.bias_hh) if bias is not None]
    both = kept([(products[0], products), *((bias, sums) for bias in biases)])
    width = cell.weight_ih.shape[1]

    def weigh(factors: Tensor, spoilt: bool) -> Gradients:
        (_, total), *rest = both.weigh(factors, spoilt)
        return [(cell.weight_ih, total[:, :width].contiguous()), (cell.weight_hh, total[:, width:].contiguous()), *rest]

    return Layer(both.squares, weigh)


@dataclass(frozen=True)
class Lookups:
    """The rows of a table that groups look up: for each, its ``group``, its place ``token``, and its gradient."""

    group: Tensor
    token: Tensor
    sums: Tensor
    groups: int

    @classmethod
    def of(cls, uses: Sequence[tuple[nn.Embedding, Call]], segments: Segments) -> "Lookups":
        """Gradients summed where a group looks a row up twice."""
        numbers, width = uses[0][0].weight.shape
        tokens = joined([call.inputs.reshape(segments.rows, -1) for _, call in uses])
        found = []
        for module, call in uses:
            grads = call.grads.reshape(segments.rows, -1, width)
            if module.padding_idx is not None:
                padding = call.inputs.reshape(segments.rows, -1) == module.padding_idx
                grads = grads.masked_fill(padding[..., None], 0)
            found.append(grads)
        grads = joined(found)
        keys = segments.owner(grads.device)[:, None] * numbers + tokens
        unique, place = torch.unique(keys.flatten(), return_inverse=True)
        sums = grads.new_zeros(len(unique), width).index_add_(0, place, grads.flatten(0, 1))
        return cls(unique // numbers, unique % numbers, sums, len(segments))

    def in_groups(self, values: Tensor) -> Tensor:
        """The sum over each group of one value for each row that it looks up; there may be many."""
        return segment_sums(accurate(values), self.group, self.groups).to(values.dtype)

    def layer(self, weight: Tensor) -> Layer:
        """What a rule finds for the table."""

        def weigh(factors: Tensor, spoilt: bool) -> Gradients:
            share = factors[self.group]
            rows = clean(self.sums, share, spoilt) * share[:, None]
            return [(weight, torch.zeros_like(weight).index_add_(0, self.token, rows))]

        return Layer(self.in_groups(self.sums.square().sum(1)), weigh)


def embedding(module: nn.Embedding, calls: Sequence[Call], segments: Segments) -> Layer:
    """``nn.Embedding``: only the rows of the table that a group looks up."""
    return Lookups.of([(module, call) for call in calls], segments).layer(module.weight)


def _affine(
    module: nn.LayerNorm | nn.GroupNorm | nn.RMSNorm,
    calls: Sequence[Call],
    segments: Segments,
    plain: Callable[[Tensor], Tensor],
) -> Layer:
    """scale · normalized + shift: both gradients are as small as the layer's parameters."""
    found = [(module.weight, added_up([_over_places(plain(call.inputs).mul_(call.grads), module) for call in calls]))]
    if not isinstance(module, nn.RMSNorm):
        found.append((module.bias, added_up([_over_places(call.grads, module) for call in calls])))
    return kept([(p, segments.sum(v)) for p, v in found if trainable(p)])


def _over_places(values: Tensor, module: nn.LayerNorm | nn.GroupNorm | nn.RMSNorm) -> Tensor:
    if isinstance(module, nn.GroupNorm):
        return values.flatten(2).sum(2) if values.dim() > 2 else values
    if values.dim() == 1 + len(module.normalized_shape):
        return values
    return values.reshape(len(values), -1, *module.normalized_shape).sum(1)


def layer_norm(module: nn.LayerNorm, calls: Sequence[Call], segments: Segments) -> Layer:
    """``nn.LayerNorm``."""
    return _affine(
        module, calls, segments, lambda x: functional.layer_norm(x, list(module.normalized_shape), eps=module.eps)
    )


def group_norm(module: nn.GroupNorm, calls: Sequence[Call], segments: Segments) -> Layer:
    """``nn.GroupNorm``."""
    return _affine(module, calls, segments, lambda x: functional.group_norm(x, module.num_groups, eps=module.eps))


def rms_norm(module: nn.RMSNorm, calls: Sequence[Call], segments: Segments) -> Layer:
    """``nn.RMSNorm``."""
    places = tuple(range(-len(module.normalized_shape), 0))

    def plain(x: Tensor) -> Tensor:
        mean = torch.linalg.vector_norm(x, dim=places, keepdim=True).square() / math.prod(module.normalized_shape)
        scale: Tensor = mean.add_(rms_eps(module, x)).rsqrt_()
        return x * scale

    return _affine(module, calls, segments, plain)


def prelu(module: nn.PReLU, calls: Sequence[Call], segments: Segments) -> Layer:
    """``nn.PReLU``: one slope for all, or one for each channel, the second dimension."""
    found = []
    for call in calls:
        below = call.grads * call.inputs.clamp_max(0)
        one = module.num_parameters == 1 or below.dim() == 1
        found.append(
            below.flatten(1).sum(1, keepdim=True) if one else below.flatten(2).sum(2) if below.dim() > 2 else below
        )
    return kept([(module.weight, segments.sum(added_up(found)))])


def by_itself(module: nn.Module, calls: Sequence[Call], segments: Segments) -> Layer:
    """Any other layer: `torch.func` over groups of one size, for this layer alone and not for the whole model."""
    own = {name: p for name, p in module.named_parameters(recurse=False) if p.requires_grad}
    rest = {name: p.detach() for name, p in module.named_parameters(recurse=False) if name not in own}
    rest |= dict(module.named_buffers(recurse=False))

    def weighted(free: dict[str, Tensor], inputs: Tensor, grads: Tensor) -> Tensor:
        outputs: Tensor = functional_call(module, (free, rest), (inputs,))
        return (outputs * grads).sum()

    many = vmap(grad(weighted), in_dims=(None, 0, 0))
    free = {name: p.detach() for name, p in own.items()}
    found: dict[str, list[Tensor]] = {name: [] for name in own}
    before = host_random_state()  # torch's own vmap refuses to draw
    for stretch in segments.stretches:
        shape = (stretch.count, stretch.size)
        try:
            groups = [
                many(free, *(t[stretch.rows].reshape(*shape, *t.shape[1:]) for t in (call.inputs, call.grads)))
                for call in calls
            ]
        except RuntimeError as error:
            raise CaptureError(f"a layer cannot be run again by itself ({error})", module.parameters()) from error
        for name, parts in found.items():
            parts.append(torch.stack([group[name] for group in groups]).sum(0))
    if host_random_state() != before:
        raise CaptureError("a layer draws random numbers, and would draw others when run again", module.parameters())
    return kept([(own[name], torch.cat(parts)) for name, parts in found.items()])


Rule = Callable[..., Layer]
RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: linear,
    nn.Conv1d: convolution,
    nn.Conv2d: convolution,
    nn.Embedding: embedding,
    nn.LayerNorm: layer_norm,
    nn.GroupNorm: group_norm,
    nn.RMSNorm: rms_norm,
    nn.PReLU: prelu,
}
"""Layers with a rule of their own; others that hold their parameters themselves go :func:`by_itself`."""
