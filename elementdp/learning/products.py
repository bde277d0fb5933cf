"""Exact fast rules: group norms and clipped sums of a layer's gradients from one forward and one backward pass.

A rule gets what went into a layer (``inputs``) and the gradient of what came out (``grads``), row by row. It returns
squared norms of each group's gradient, and, once the clipping factors are known, their weighted sum: no second
backward pass, and never one gradient per example times parameter in memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from elementdp.learning.groups import Segments

Gradients = list[tuple[Tensor, Tensor]]
Weigh = Callable[[Tensor, bool], Gradients]
"""Given a factor per group, and whether some group is to be left out as not finite, the weighted sum of gradients."""

KEEP_BYTES = 1 << 24
"""Small gradients of all groups of a chunk are kept up to this size; beyond it norms are formed piece by piece."""


@dataclass(frozen=True)
class Call:
    """One use of a layer in the forward pass: its input and the gradient of its output, first dimension the rows."""

    inputs: Tensor
    grads: Tensor


@dataclass(frozen=True)
class Layer:
    """What a rule found for one layer."""

    squares: Tensor
    weigh: Weigh


def merged(layers: Sequence[Layer]) -> Layer:
    """Layers with parameters of their own: norms add up."""
    squares = torch.stack([layer.squares for layer in layers]).sum(0)
    return Layer(squares, lambda factors, spoilt: [pair for layer in layers for pair in layer.weigh(factors, spoilt)])


def kept(gradients: Gradients) -> Layer:
    """Group gradients small enough to be kept: (parameter, one slice per group)."""
    flat = [(parameter, values.reshape(len(values), -1)) for parameter, values in gradients]
    squares = torch.stack([torch.linalg.vector_norm(values, dim=1).square() for _, values in flat]).sum(0)

    def weigh(factors: Tensor, spoilt: bool) -> Gradients:
        return [(p, (factors @ clean(v, factors, spoilt)).view_as(p)) for p, v in flat]

    return Layer(squares, weigh)


def joined(parts: Sequence[Tensor]) -> Tensor:
    """The uses of one layer side by side; a single one is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), 1)


def clean(values: Tensor, factors: Tensor, spoilt: bool) -> Tensor:
    """Zero instead of what is not finite, in rows with factor zero: 0 · ∞ must not reach the sum."""
    return values.masked_fill((factors == 0).view(-1, *[1] * (values.dim() - 1)), 0) if spoilt else values


def trainable(parameter: Tensor | None) -> bool:
    return parameter is not None and parameter.requires_grad


def product_squares(left: Tensor, right: Tensor, segments: Segments) -> Tensor:
    """||Σ_i left_i ⊗ right_i||² over the (row, position) pairs i of each group; both are (rows, positions, width).

    Short groups by Gram matrices, ||LᵀR||² = Σ (LLᵀ)∘(RRᵀ); long ones by forming LᵀR, a few groups at a time. A Gram
    sum can lose digits to cancellation, and a norm taken too small would let more than ρ through: its rounding error
    is bounded by that of its terms, so it is rounded up by as much.
    """
    p, q = left.shape[2], right.shape[2]
    parts = []
    for run in segments.runs:
        length = run.size * left.shape[1]
        a = left[run.rows].reshape(run.count, length, p)
        b = right[run.rows].reshape(run.count, length, q)
        if length == 1:
            parts.append(a.square().sum((1, 2)) * b.square().sum((1, 2)))
        elif length * (p + q) <= p * q:
            gram_a, gram_b = a @ a.mT, b @ b.mT
            bound = (gram_a.diagonal(dim1=1, dim2=2) * gram_b.diagonal(dim1=1, dim2=2)).sqrt().sum(1).square()
            margin = 2 * torch.finfo(a.dtype).eps * bound
            parts.append((gram_a * gram_b).sum((1, 2)).clamp_min(0) + margin)
        else:
            step = max(1, KEEP_BYTES // (p * q * a.element_size()))
            for i in range(0, run.count, step):
                formed = a[i : i + step].mT @ b[i : i + step]
                parts.append(torch.linalg.vector_norm(formed, dim=(1, 2)).square())
    return parts[0] if len(parts) == 1 else torch.cat(parts)
