"""Exact fast rules: group norms and clipped sums of a layer's gradients from one forward and one backward pass.

A rule gets what went into a layer (``inputs``) and the gradient of what came out (``grads``), row by row. It returns
squared norms of each group's gradient, and, once the clipping factors are known, their weighted sum: no second
backward pass, and never one gradient per example times parameter in memory.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from elementdp.learning.groups import Segments, owners, segment_sums

Gradients = list[tuple[Tensor, Tensor]]
Weigh = Callable[[Tensor, bool], Gradients]
"""Given a factor per group, and whether some group is to be left out as not finite, the weighted sum of gradients."""

PIECES = 4
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


def product(left: Tensor, right: Tensor) -> Tensor:
    """LᵀR = Σ_i left_i ⊗ right_i over many rows i.

    Threads share a product by its result, of which a thin one has too little. So the rows are cut into a few pieces and
    their products added; as many pieces for any number of threads, so that a run does not depend on that number.
    """
    rows, small = len(left), min(left.shape[1], right.shape[1])
    partial = PIECES * left.shape[1] * right.shape[1] * left.element_size()
    if left.device.type != "cpu" or rows < max(4 * small, PIECES) or partial > KEEP_BYTES:
        return left.mT @ right
    each = rows // PIECES
    whole = each * PIECES
    left_pieces, right_pieces = (t[:whole].reshape(PIECES, each, -1) for t in (left, right))
    total = torch.bmm(left_pieces.mT, right_pieces).sum(0)
    return total if whole == rows else total.addmm_(left[whole:].mT, right[whole:])


def product_squares(left: Tensor, right: Tensor, segments: Segments, *, bias: bool = False) -> Tensor:
    """||Σ_i left_i ⊗ right_i||² over the (row, position) pairs i of each group; both are (rows, positions, width).

    With ``bias`` every right_i has a further coordinate 1, whose gradient is Σ_i left_i.

    Short groups by Gram matrices, ||LᵀR||² = Σ (LLᵀ)∘(RRᵀ); long ones by forming LᵀR, a few groups at a time. A Gram
    sum can lose digits to cancellation, and a norm taken too small would let more than ρ through: its rounding error
    is that of its terms, so it is rounded up by as much.
    """
    p, q = left.shape[2], right.shape[2]
    parts = []
    for short, runs in itertools.groupby(segments.runs, lambda run: run.size * left.shape[1] * (p + q) <= p * q):
        pairs = [(left[r.rows].reshape(r.count, -1, p), right[r.rows].reshape(r.count, -1, q)) for r in runs]
        parts += [_by_gram(pairs, bias)] if short else [_formed(a, b, bias) for a, b in pairs]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _by_gram(pairs: Sequence[tuple[Tensor, Tensor]], bias: bool) -> Tensor:
    terms, right = (torch.cat([torch.bmm(t, t.mT).flatten() for t in side]) for side in zip(*pairs, strict=True))
    terms.mul_(right.add_(1) if bias else right)
    widths = np.repeat([a.shape[1] for a, _ in pairs], [len(a) for a, _ in pairs])
    squares = segment_sums(terms, owners(widths**2).to(terms.device), len(widths))
    # The diagonal: in a matrix of width w, one entry in w + 1.
    within = np.arange(widths.sum()) - np.repeat(np.cumsum(widths) - widths, widths)
    places = np.repeat(np.cumsum(widths**2) - widths**2, widths) + within * (np.repeat(widths, widths) + 1)
    roots = terms.index_select(0, torch.from_numpy(places).to(terms.device)).sqrt_()
    bound = segment_sums(roots, owners(widths).to(terms.device), len(widths)).square_()
    digits = 2 + max(t.shape[2] for t in pairs[0]) ** 0.5 / 32  # errors of a long sum add up like a random walk
    return squares.clamp_min_(0).add_(bound, alpha=digits * torch.finfo(bound.dtype).eps)


def _formed(a: Tensor, b: Tensor, bias: bool) -> Tensor:
    step = max(1, KEEP_BYTES // (a.shape[2] * b.shape[2] * a.element_size()))
    parts = []
    for i in range(0, len(a), step):
        part = a[i : i + step]
        found = torch.linalg.vector_norm(part.mT @ b[i : i + step], dim=(1, 2)).square()
        parts.append(found + part.sum(1).square().sum(1) if bias else found)
    return torch.cat(parts)
