"""The noise of one step."""

from collections.abc import Sequence

import torch
from torch import Tensor


def add_noise(total: Sequence[Tensor], scale: float, generator: torch.Generator) -> None:
    """Add N(0, scale²) to every coordinate: one draw per step, floating point and so of research grade."""
    for tensor in total:
        noise = torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype, device=generator.device)
        tensor.add_(noise.to(tensor.device), alpha=scale)
