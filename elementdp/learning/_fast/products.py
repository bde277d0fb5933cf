"""Exact fast rules: group norms and clipped sums of a layer's gradients from one forward and one backward pass.

A rule gets what went into a layer (``inputs``) and the gradient of what came out (``grads``), row by row. It returns
squared norms of each group's gradient, and, once the clipping factors are known, their weighted sum: no second
backward pass, and never one gradient per example times parameter in memory.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elementdp.learning._fast.segments import Segments, accurate, owners, segment_sums

Gradients = list[tuple[Tensor, Tensor]]
Weigh = Callable[[Tensor, bool], Gradients]
"""Given a factor per group, and whether some group is to be left out as not finite, the weighted sum of gradients."""

PIECES = 4
PIECE = 128
"""So many numbers of a row are squared and added up in their own precision."""
GRAM_PIECE = 512
"""So many products of two rows are. A sum of K equal ones was seen to lose up to K/18 units in the last place."""
WORTH_ONEDNN = 1 << 20
"""From so many operations on, oneDNN's product is faster than torch's own, call and all."""
WORTH_ONEDNN_EACH = 20_000_000
"""From so many on, many of them are faster than torch's own product of many, which needs no copies."""


def half_speed(processor: Path) -> bool:
    """Whether torch's own products, which are MKL's, take half of what this processor does.

    On processors of AMD MKL works on 256 bits at a time; from family 26 on (Zen 5) they work on 512. The clock is not
    asked: a seeded run has to repeat.
    """
    try:
        lines = processor.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:  # not Linux
        return False
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return wide and fields.get("vendor_id") == "AuthenticAMD" and int(fields.get("cpu family", 0)) >= 26


_onednn = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if half_speed(Path("/proc/cpuinfo")) else None
"""oneDNN's product where it is the faster one; not every build of torch has it."""


@dataclass(frozen=True)
class Call:
    """One use of a layer in the forward pass: its input and the gradient of its output, first dimension the rows.

    For a recurrent cell the output is what the input brings to its gates; ``states`` are the states before each step,
    ``resets`` the reset gates of a GRU.
    """

    inputs: Tensor
    grads: Tensor
    states: Tensor | None = None
    resets: Tensor | None = None


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
    turned = [values.dim() == 3 and values.mT.is_contiguous() for _, values in gradients]  # kept as they lie in memory
    flat = [(v.mT if t else v).reshape(len(v), -1) for t, (_, v) in zip(turned, gradients, strict=True)]
    squares = torch.stack([lengths(values).square() for values in flat]).sum(0)

    def weigh(factors: Tensor, spoilt: bool) -> Gradients:
        sums = [factors @ clean(values, factors, spoilt) for values in flat]
        return [
            (p, total.view(p.shape[::-1]).mT.contiguous() if t else total.view_as(p))
            for t, total, (p, _) in zip(turned, sums, gradients, strict=True)
        ]

    return Layer(squares, weigh)


def lengths(values: Tensor) -> Tensor:
    """The norm of every row.

    torch adds up the squares of a long row in its own precision, and loses so many digits that a norm can come out a
    percent too small, which would let more than ρ through. So norms of short pieces are found first.
    """
    if values.shape[1] <= PIECE:
        short: Tensor = torch.linalg.vector_norm(values, dim=1)
        return short
    whole = values.shape[1] // PIECE * PIECE
    pieces = torch.linalg.vector_norm(torch.unflatten(values[:, :whole], 1, (-1, PIECE)), dim=2)
    if whole < values.shape[1]:
        pieces = torch.cat([pieces, torch.linalg.vector_norm(values[:, whole:], dim=1, keepdim=True)], 1)
    size: Tensor = torch.linalg.vector_norm(accurate(pieces), dim=1)
    return size.to(values.dtype)


def joined(parts: Sequence[Tensor]) -> Tensor:
    """The uses of one layer side by side; a single one is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), 1)


def added_up(parts: Sequence[Tensor]) -> Tensor:
    """The uses of one layer added up; a single one is not copied."""
    return reduce(torch.add, parts)


def clean(values: Tensor, factors: Tensor, spoilt: bool) -> Tensor:
    """Zero instead of what is not finite, in rows with factor zero: 0 · ∞ must not reach the sum."""
    return values.masked_fill((factors == 0).view(-1, *[1] * (values.dim() - 1)), 0) if spoilt else values


def trainable(parameter: Tensor | None) -> bool:
    return parameter is not None and parameter.requires_grad


def uses_onednn(rows: int, inner: int, columns: int, like: Tensor, worth: int = WORTH_ONEDNN) -> bool:
    """Whether :func:`times` takes oneDNN's product."""
    enough = 2 * rows * inner * columns >= worth
    return enough and _onednn is not None and like.dtype is torch.float32 and like.device.type == "cpu"


def times(left: Tensor, right: Tensor, added: Tensor | None = None) -> Tensor:
    """left @ right + added, of constants.

    Where MKL's product has half the speed, oneDNN's is taken, to which torch compiles its own models. It is as exact.
    """
    if not uses_onednn(len(left), left.shape[1], right.shape[1], left) or _onednn is None:
        return left @ right if added is None else torch.addmm(added, left, right)
    bias = None if added is None else added.contiguous()  # it takes any other for one
    if not right.is_contiguous() and not right.mT.is_contiguous():  # it would take a product a hundred times slower
        right = right.contiguous()
    return _onednn(left, right.mT, bias, "none", [], "")  # type: ignore[no-any-return]


def activated(x: Tensor, weight: Tensor | None, bias: Tensor | None, function: str) -> Tensor:
    """The ``sigmoid`` or the ``tanh`` of xWᵀ + b, of constants."""
    assert weight is not None
    if uses_onednn(len(x), x.shape[1], len(weight), x) and _onednn is not None:
        return _onednn(x, weight, bias, function, [], "")  # type: ignore[no-any-return]
    found = functional.linear(x, weight, bias)
    return found.sigmoid_() if function == "sigmoid" else found.tanh_()


def scaled_rows(left: Tensor, factors: Tensor) -> Tensor:
    """Rows times their factors, laid out in memory as :func:`product` wants its left side."""
    if _onednn is None:
        return left * factors[:, None]
    return left.mT.clone(memory_format=torch.contiguous_format).mul_(factors).mT


def product(left: Tensor, right: Tensor, keep: int) -> Tensor:
    """LᵀR = Σ_i left_i ⊗ right_i over many rows i.

    Threads share a product by its result, of which a thin one has too little. So the rows are cut into a few pieces and
    their products added; as many pieces for any number of threads, so that a run does not depend on that number.
    """
    rows, small = len(left), min(left.shape[1], right.shape[1])
    if uses_onednn(left.shape[1], rows, right.shape[1], left):
        return times(left.mT, right)
    partial = PIECES * left.shape[1] * right.shape[1] * left.element_size()
    if left.device.type != "cpu" or rows < max(4 * small, PIECES) or partial > keep:
        return left.mT @ right
    each = rows // PIECES
    whole = each * PIECES
    left_pieces, right_pieces = (t[:whole].reshape(PIECES, each, -1) for t in (left, right))
    total = torch.bmm(left_pieces.mT, right_pieces).sum(0)
    return total if whole == rows else total.addmm_(left[whole:].mT, right[whole:])


def worth_keeping(left: Tensor, right: Tensor, segments: Segments) -> bool:
    """Whether Σ left_i ⊗ right_i of every group is better formed once and kept than its norm found by Gram matrices.

    The weighted sum needs products of all rows anyway. Kept, they cost the way to the memory and back, which is worth
    about 32 operations a number; Gram matrices cost n²(p + q) operations for a group of n rows and positions.
    """
    p, q = left.shape[2], right.shape[2]
    gram = float((segments.lengths.astype(np.float64) * left.shape[1]).dot(segments.lengths * left.shape[1])) * (p + q)
    numbers = len(segments) * p * q
    return numbers * left.element_size() <= segments.memory.keep and gram > 32 * numbers


def group_products(left: Tensor, right: Tensor, segments: Segments) -> Tensor:
    """Σ left_i ⊗ right_i over the (row, position) pairs i of each group."""
    p, q = left.shape[2], right.shape[2]
    if p > q:  # wide results are the quicker ones
        return group_products(right, left, segments).mT
    found = []
    for r in segments.stretches:
        a, b = left[r.rows].reshape(r.count, -1, p), right[r.rows].reshape(r.count, -1, q)
        if not uses_onednn(p, a.shape[1], q, a, WORTH_ONEDNN_EACH):
            found.append(a.mT @ b)
            continue
        each = b.new_empty(r.count, p, q)
        for one, rows, columns in zip(each, a.mT.contiguous(), b, strict=True):
            one.copy_(times(rows, columns))
        found.append(each)
    return torch.cat(found) if len(found) > 1 else found[0]


def product_squares(left: Tensor, right: Tensor, segments: Segments, *, bias: bool = False) -> Tensor:
    """||Σ_i left_i ⊗ right_i||² over the (row, position) pairs i of each group; both are (rows, positions, width).

    With ``bias`` every right_i has a further coordinate 1, whose gradient is Σ_i left_i.

    Short groups by Gram matrices, ||LᵀR||² = Σ (LLᵀ)∘(RRᵀ); long ones by forming LᵀR, a few groups at a time. A Gram
    sum can lose digits to cancellation, and a norm taken too small would let more than ρ through: its rounding error
    is that of its terms, so it is rounded up by as much, and by what an entry below the smallest float may hide.
    Either way the norm is at least :func:`smallest_square` of the terms' sizes.
    """
    p, q = left.shape[2], right.shape[2]
    parts = []
    for short, stretches in itertools.groupby(
        segments.stretches, lambda stretch: stretch.size * left.shape[1] * (p + q) <= p * q
    ):
        pairs = [(left[r.rows].reshape(r.count, -1, p), right[r.rows].reshape(r.count, -1, q)) for r in stretches]
        parts += [_by_gram(pairs, bias)] if short else [_formed(a, b, bias, segments.memory.keep) for a, b in pairs]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def smallest_square(size: Tensor) -> Tensor:
    """The least squared norm of a group that is weighed row by row, given the sum of its rows' sizes.

    Rows may cancel, however large they are: a group of norm zero would go unclipped into the sum of all rows, and while
    its rows pass through that sum they push out the digits of every other group. With this their size is at most some
    hundred ρ. Rows that only point every which way, half a million of them, are not touched.
    """
    return size.square() * (16 * torch.finfo(size.dtype).eps)


@lru_cache(maxsize=4)
def _entries(matrices: tuple[tuple[int, int], ...], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Of square matrices, given as (width, how many), one after another: where their diagonals are, the matrix of each
    entry, and the matrix of each entry of a diagonal. All layers of a batch ask for the same."""
    widths = np.repeat(*np.array(matrices).T)
    # The diagonal: in a matrix of width w, one entry in w + 1.
    within = np.arange(widths.sum()) - np.repeat(np.cumsum(widths) - widths, widths)
    places = np.repeat(np.cumsum(widths**2) - widths**2, widths) + within * (np.repeat(widths, widths) + 1)
    return torch.from_numpy(places).to(device), owners(widths**2).to(device), owners(widths).to(device)


def _grams(many: Sequence[Tensor]) -> Tensor:
    """The products of all rows of a group with each other, of one group after another.

    Like norms, long ones are added up from pieces, not to lose digits.
    """
    pieces = []
    for start in range(0, many[0].shape[2], GRAM_PIECE):
        parts = [rows[:, :, start : start + GRAM_PIECE] for rows in many]
        pieces.append(torch.cat([torch.bmm(part, part.mT).flatten() for part in parts]))
    return pieces[0] if len(pieces) == 1 else accurate(torch.stack(pieces)).sum(0).to(pieces[0].dtype)


def _by_gram(pairs: Sequence[tuple[Tensor, Tensor]], bias: bool) -> Tensor:
    terms, right = (_grams(side) for side in zip(*pairs, strict=True))
    index, entry, owner = _entries(tuple((a.shape[1], len(a)) for a, _ in pairs), terms.device)
    groups = sum(len(a) for a, _ in pairs)
    if bias:
        right.add_(1)
    roots = [gram.index_select(0, index).sqrt_() for gram in (terms, right)]
    numbers = torch.finfo(terms.dtype)
    squares = segment_sums(accurate(terms.mul_(right)), entry, groups).clamp_min_(0)
    size = segment_sums(accurate(roots[0] * roots[1]), owner, groups)
    digits = 2 + sum(min(t.shape[2], GRAM_PIECE) for t in pairs[0]) / 16
    squares.add_(size.square(), alpha=digits * numbers.eps)
    for hidden, other in zip(pairs[0], reversed(roots), strict=True):
        squares.add_(segment_sums(accurate(other), owner, groups).square_(), alpha=hidden.shape[2] * numbers.tiny)
    return torch.maximum(squares.to(terms.dtype), smallest_square(size.to(terms.dtype)))


def _formed(a: Tensor, b: Tensor, bias: bool, keep: int) -> Tensor:
    step = max(1, keep // (a.shape[2] * b.shape[2] * a.element_size()))
    parts = []
    for i in range(0, len(a), step):
        part = a[i : i + step]
        other = b[i : i + step]
        found = lengths((part.mT @ other).flatten(1)).square()
        widths = torch.linalg.vector_norm(other, dim=2)
        if bias:
            found += part.sum(1).square().sum(1)
            widths = torch.hypot(widths, torch.ones_like(widths))
        size = (torch.linalg.vector_norm(part, dim=2) * widths).sum(1)
        parts.append(torch.maximum(found, smallest_square(size)))
    return torch.cat(parts)
