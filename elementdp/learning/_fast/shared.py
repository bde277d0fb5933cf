"""Rules for parameters that several layers share, and for those that are added to every row alike."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elementdp.learning._fast.by_name import Added, AffineByName
from elementdp.learning._fast.products import (
    Call,
    Gradients,
    Layer,
    clean,
    group_products,
    joined,
    kept,
    merged,
    product,
    product_squares,
    smallest_square,
    trainable,
    worth_keeping,
)
from elementdp.learning._fast.rules import Lookups, affine
from elementdp.learning._fast.segments import Segments


def affine_by_name(layer: AffineByName, calls: Sequence[Call], segments: Segments) -> Layer:
    """Wx + b, the examples first."""
    inputs, grads = (joined([getattr(call, name) for call in calls]) for name in ("inputs", "grads"))
    return affine(layer.weight, layer.bias, inputs, grads, segments)


def added(layer: Added, calls: Sequence[Call], segments: Segments) -> Layer:
    """x + p for every row x: the gradient of the sum, added up over the dimensions that p does not have."""
    part = layer.parameter.detach()[layer.index]  # type: ignore[index]
    total: Tensor | None = None
    for call in calls:
        shape = (1,) * (call.grads.dim() - part.dim()) + part.shape
        repeated = [i for i, size in enumerate(shape) if i and size != call.grads.shape[i]]
        rows = call.grads.sum(repeated) if repeated else call.grads
        found = segments.sum(rows).reshape(len(segments), *part.shape)
        total = found if total is None else total + found
    assert total is not None
    small = kept([(part, total)])

    def weigh(factors: Tensor, spoilt: bool) -> Gradients:
        whole = torch.zeros_like(layer.parameter)
        whole[layer.index] = small.weigh(factors, spoilt)[0][1]  # type: ignore[index]
        return [(layer.parameter, whole)]

    return Layer(small.squares, weigh)


def tied(uses: Sequence[tuple[nn.Linear | nn.Embedding, Sequence[Call]]], segments: Segments) -> Layer:
    """Linear layers and embeddings that share one weight W, of which A and B are the gradients by the two kinds.

    ||A + B||² = ||A||² + 2⟨A, B⟩ + ||B||², where B has few rows that are not zero, and the same rows of A are quickly
    found: A = Σ_i left_i ⊗ right_i. The three terms may cancel, so their rounding error is added as in
    :func:`.products.product_squares`.
    """
    weight = uses[0][0].weight
    linear = [(layer, call) for layer, calls in uses if isinstance(layer, nn.Linear) for call in calls]
    biases = [
        kept(
            [(layer.bias, segments.sum(torch.cat([_positions(c.grads, layer.out_features) for c in calls], 1).sum(1)))]
        )
        for layer, calls in uses
        if isinstance(layer, nn.Linear) and trainable(layer.bias)
    ]
    looked_up = [(layer, call) for layer, calls in uses if isinstance(layer, nn.Embedding) for call in calls]
    if not linear:
        return Lookups.of(looked_up, segments).layer(weight)
    left = joined([_positions(call.grads, weight.shape[0]) for _, call in linear])
    right = joined([_positions(call.inputs, weight.shape[1]) for _, call in linear])
    if not looked_up:
        return merged([affine(weight, None, right, left, segments), *biases])
    lookups = Lookups.of(looked_up, segments)
    if worth_keeping(left, right, segments):
        found = group_products(left, right, segments)
        found[lookups.group, lookups.token] += lookups.sums
        return merged([kept([(weight, found)]), *biases])

    def weigh(factors: Tensor, spoilt: bool) -> Gradients:
        rows = segments.spread(factors)
        weighed = (clean(left, rows, spoilt) * rows[:, None, None]).flatten(0, 1)
        total = product(weighed, clean(right, rows, spoilt).flatten(0, 1), segments.memory.keep)
        return [(weight, total), *lookups.layer(weight).weigh(factors, spoilt)]

    squares = _tied_squares(left, right, lookups, segments)
    return merged([Layer(squares, weigh), *biases])


def _positions(values: Tensor, width: int) -> Tensor:
    return values.reshape(len(values), -1, width)


def _tied_squares(left: Tensor, right: Tensor, lookups: Lookups, segments: Segments) -> Tensor:
    """||A + B||² of every group, rounded up."""
    squares = product_squares(left, right, segments) + lookups.in_groups(lookups.sums.square().sum(1))
    crossed = torch.zeros_like(squares)
    ends = torch.searchsorted(lookups.group, torch.arange(len(segments) + 1, device=left.device)).tolist()
    row = 0
    for group, rows in enumerate(segments.sizes):
        mine = slice(ends[group], ends[group + 1])
        a, b = (t[row : row + rows].flatten(0, 1) for t in (left, right))
        crossed[group] = ((b @ lookups.sums[mine].mT) * a[:, lookups.token[mine]]).sum()
        row += rows
    size = segments.sum((torch.linalg.vector_norm(left, dim=2) * torch.linalg.vector_norm(right, dim=2)).sum(1))
    size = size + lookups.in_groups(torch.linalg.vector_norm(lookups.sums, dim=1))
    numbers = torch.finfo(size.dtype)
    digits = 2 + right.shape[2] / 16  # what sums within the product were seen to lose, as in product_squares
    rounding = size.square() * (digits * numbers.eps)
    return torch.maximum((squares + 2 * crossed).clamp_min(0) + rounding, smallest_square(size))
