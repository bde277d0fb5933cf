"""Group gradients of convolutions, a cacheful of rows at a time."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.grad import conv2d_weight

from elementdp.learning._fast.products import (
    Call,
    Gradients,
    Layer,
    added_up,
    clean,
    joined,
    kept,
    lengths,
    merged,
    product_squares,
    smallest_square,
)
from elementdp.learning._fast.segments import Segments

ENOUGH = 1 << 24
"""From so many operations a group on, torch's own gradient of a whole group beats one of every row, summed."""


def row_gradients(inputs: Tensor, grads: Tensor, module: nn.Conv2d) -> Tensor:
    """The weight gradient of every row: (rows, out, in/groups, height, width).

    Only the kernel's width is unfolded (a full unfold moves `height` times as much memory); the kernel's height is
    then a shift by whole lines, which is a view.
    """
    (high, wide), (up, along), (tall, broad) = module.kernel_size, module.stride, module.dilation
    n, _, out_h, out_w = grads.shape
    groups, channels = module.groups, module.in_channels // module.groups
    cut = inputs[..., : (out_w - 1) * along + (wide - 1) * broad + 1]
    columns = cut.unfold(3, (out_w - 1) * along + 1, broad)[..., ::along]  # rows, in, height, kernel, out
    columns = columns.transpose(2, 3).reshape(n * groups, channels * wide, inputs.shape[2], out_w)
    right = grads.reshape(n * groups, -1, out_h * out_w).mT
    last = (out_h - 1) * up + 1
    lines = [columns[:, :, tall * i : tall * i + last : up].flatten(2) @ right for i in range(high)]
    stacked = torch.stack(lines, 1).view(n, groups, high, channels, wide, -1)
    return stacked.permute(0, 1, 5, 3, 2, 4).flatten(1, 2)


def _as_planes(module: nn.Conv1d | nn.Conv2d) -> nn.Conv2d:
    """A 1-d convolution as a 2-d one of height one, without copying its parameters."""
    if isinstance(module, nn.Conv2d):
        return module
    return nn.Conv2d(
        module.in_channels,
        module.out_channels,
        (1, module.kernel_size[0]),
        (1, module.stride[0]),
        "same" if module.padding == "same" else (0, 0 if isinstance(module.padding, str) else module.padding[0]),
        (1, module.dilation[0]),
        module.groups,
        bias=False,
        padding_mode=module.padding_mode,
        device="meta",
    )


def padded(module: nn.Conv2d, call: Call) -> Call:
    """The call with the padding that the layer itself applies."""
    edges = list(module._reversed_padding_repeated_twice)
    if not any(edges):
        return call
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    return Call(functional.pad(call.inputs, edges, mode=mode), call.grads)


def convolution(module: nn.Conv1d | nn.Conv2d, calls: Sequence[Call], segments: Segments) -> Layer:
    """``nn.Conv1d`` and ``nn.Conv2d``, any stride, padding, dilation and groups."""
    planes = _as_planes(module)
    if isinstance(module, nn.Conv1d):
        calls = [Call(call.inputs.unsqueeze(2), call.grads.unsqueeze(2)) for call in calls]
    layers = []
    if module.bias is not None and module.bias.requires_grad:
        sums = added_up([call.grads.sum((2, 3)) for call in calls])
        layers.append(kept([(module.bias, segments.sum(sums))]))
    if not module.weight.requires_grad:
        return merged(layers)
    if len(segments) * module.weight.numel() * module.weight.element_size() <= segments.memory.keep:
        return merged([*layers, kept([(module.weight, _in_groups(calls, planes, segments))])])
    return merged([*layers, _wide_convolution(module, planes, calls, segments)])


def _in_groups(calls: Sequence[Call], planes: nn.Conv2d, segments: Segments) -> Tensor:
    """The gradient of every group: torch's own, group by group, or that of every row, a cacheful of rows at a time."""
    places = sum(call.grads[0, 0].numel() for call in calls)
    if 2 * places * segments.rows * math.prod(_shape(planes)) >= ENOUGH * len(segments):
        ends = np.cumsum([0, *segments.sizes]).tolist()
        found = calls[0].grads.new_empty(len(segments), math.prod(_shape(planes)))
        for i, values in enumerate(found):
            values.copy_(_weight_gradient(_rows(calls, slice(*ends[i : i + 2])), planes).flatten())
        return found
    owner = segments.owner(calls[0].grads.device)
    total: Tensor | None = None
    for call in (padded(planes, call) for call in calls):
        numbers = max(math.prod(_shape(planes)), call.inputs[0].numel() * planes.kernel_size[1])
        step = max(1, segments.memory.cache // (numbers * call.inputs.element_size()))
        for i in range(0, segments.rows, step):
            rows = row_gradients(call.inputs[i : i + step], call.grads[i : i + step], planes)
            if total is None:
                total = rows.new_zeros(len(segments), rows[0].numel())
            total.index_add_(0, owner[i : i + step], rows.flatten(1))
    assert total is not None
    return total


def _wide_convolution(
    module: nn.Conv1d | nn.Conv2d, planes: nn.Conv2d, calls: Sequence[Call], segments: Segments
) -> Layer:
    """Many channels: norms through the layer's matrix form or a few groups at a time, then torch's own product."""
    matrix = planes.groups == 1 and _prefers_matrix(planes, calls, segments)
    width = math.prod(_shape(planes)[1:])
    parts = []
    row = 0
    for stretch in segments.stretches:
        numbers = width * (sum(c.grads[0, 0].numel() for c in calls) * stretch.size if matrix else planes.out_channels)
        few = max(1, segments.memory.keep // (numbers * module.weight.element_size()))
        for i in range(0, stretch.count, few):
            part = Segments((stretch.size,) * min(few, stretch.count - i), segments.memory)
            here = _rows(calls, slice(row, row + part.rows))
            row += part.rows
            if matrix:
                unfolded = joined([_unfold(padded(planes, call).inputs, planes) for call in here])
                grads = joined([call.grads.flatten(2).mT for call in here])
                parts.append(product_squares(grads, unfolded, part))
            else:
                sums = _in_groups(here, planes, part)
                squares = lengths(sums).square()
                parts.append(torch.maximum(squares, smallest_square(part.sum(_sizes(here, planes)))))

    def weigh(factors: Tensor, spoilt: bool) -> Gradients:
        rows = segments.spread(factors)
        scaled = [
            Call(clean(call.inputs, rows, spoilt), clean(call.grads, rows, spoilt) * rows[:, None, None, None])
            for call in calls
        ]
        return [(module.weight, _weight_gradient(scaled, planes).view_as(module.weight))]

    return Layer(torch.cat(parts), weigh)


def _rows(calls: Sequence[Call], rows: slice) -> list[Call]:
    return [Call(call.inputs[rows], call.grads[rows]) for call in calls]


def _sizes(calls: Sequence[Call], planes: nn.Conv2d) -> Tensor:
    """For each row, no less than the sizes of its products over the places: a kernel's worth of them share an input."""
    spread = math.sqrt(planes.kernel_size[0] * planes.kernel_size[1])
    norms = [
        [torch.linalg.vector_norm(t.flatten(1), dim=1) for t in (padded(planes, call).inputs, call.grads)]
        for call in calls
    ]
    return spread * torch.stack([inputs * grads for inputs, grads in norms]).sum(0)


def _prefers_matrix(planes: nn.Conv2d, calls: Sequence[Call], segments: Segments) -> bool:
    width_in = math.prod(_shape(planes)[1:])
    places = sum(call.grads[0, 0].numel() for call in calls) * max(segments.sizes)
    return places * (width_in + planes.out_channels) <= width_in * planes.out_channels


def _unfold(inputs: Tensor, planes: nn.Conv2d) -> Tensor:
    """What each place of the output sees, channels last: (rows, places, height · width · channels)."""
    seen = inputs.permute(0, 2, 3, 1).contiguous()
    for dim, size, stride, dilation in zip((1, 2), planes.kernel_size, planes.stride, planes.dilation, strict=True):
        seen = seen.unfold(dim, (size - 1) * dilation + 1, stride)[..., ::dilation]
    return seen.permute(0, 1, 2, 4, 5, 3).flatten(3).flatten(1, 2)


def _shape(planes: nn.Conv2d) -> tuple[int, ...]:
    return (planes.out_channels, planes.in_channels // planes.groups, *planes.kernel_size)


def _weight_gradient(calls: Sequence[Call], planes: nn.Conv2d) -> Tensor:
    """The gradient of all rows together, by torch's own product; it pads with zeros itself."""
    total: Tensor | None = None
    for call in calls:
        padding: Sequence[int] = (0, 0)
        if planes.padding_mode == "zeros" and not isinstance(planes.padding, str):
            padding = planes.padding
        else:
            call = padded(planes, call)
        found = conv2d_weight(  # type: ignore[no-untyped-call]
            call.inputs, _shape(planes), call.grads, planes.stride, padding, planes.dilation, planes.groups
        )
        total = found if total is None else total + found
    assert total is not None
    return total
