r"""Sums and noise in whole numbers, so that nothing but the sum and its noise is released.

**What is computed.** Let R = 2³⁰, and let a grid step be ρ/R. The mean gradient of each group is scaled and truncated
to a vector w of whole numbers of grid steps, and w is replaced by zero unless ‖w‖₂ ≤ R. The vectors of all groups are
added up as 64-bit integers, and every coordinate gets a draw of round(σR·G), with G a standard normal.

**Why it has the guarantee of the Gaussian mechanism, with no further δ.**

1. *Each vector has norm at most R.* Coordinates are whole numbers, since a float that is truncated is one in any
   precision. The norm computed from them in float64, a root of d squares added in any order, with roots of parts taken
   and squared again, is within a factor 1 ± (d + 8)·2⁻⁵³ of the true one. For d ≤ 2³⁰ coordinates, a computed norm of
   at most R(1 - 2⁻²²) therefore means a true one of at most R. Whatever went wrong before (norms, factors, a whole
   gradient), this is checked on the very numbers that are added.
2. *The sum is exact.* Whole numbers of at most 2³⁰ are added without rounding, in any order and by any number of
   processes: in float64 within a batch of at most 2²³ groups, in 64-bit integers between processes.
3. *So replacing one element moves the sum by at most 2R*, as replacing one vector of norm ρ moves a sum by 2ρ. This
   needs that a group's vector is a function of that group, and of draws of its own where the model draws (dropout):
   their seed has 256 bits, as the noise has. With ``method="loop"``, one pass for each group over rows
   in memory of their own, it is, if the kernels are deterministic. Vectorized passes take groups together, and a kernel
   may round the last bits of one differently in a batch of another shape: there it is an assumption about the kernels,
   and what the other vectors would move by is not in the sensitivity.
4. *The noise is rounded after it is added.* The sum k is a whole number, so k + round(σRG) = round(k + σRG): a function
   of the Gaussian mechanism's output, with deviation σR for a sensitivity of 2R.
5. *The draws have that law exactly*, see :func:`rounded_normal`.
6. What follows (a factor ρ/R, the step) only sees that integer. No low bits are left that could tell anything.
"""

from collections.abc import Sequence

import mpmath
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor

from elementdp.errors import ArgumentError
from elementdp.learning.batch import Batch
from elementdp.learning.clipping import ClippedSum, GroupClipper
from elementdp.learning.randomness import Purpose, Randomness, Stream

RADIUS = 2**30
"""R: what ρ is in grid steps."""
MOST_COORDINATES = 2**30
MOST_GROUPS = 2**23
"""So many whole numbers of at most 2³⁰ float64 adds up without rounding: no sum is beyond 2⁵³."""
LARGEST_SIGMA = 1e5
"""Beyond it a draw would not fit into the 53 bits that are compared below."""

_MARGIN = 2.0**-47
_SURE = 4.4
"""Up to here 2⁻⁶³ of the mass is narrower than the margin."""


def rounded_normal(scale: float, count: int, stream: Stream) -> NDArray[np.int64]:
    r"""``count`` draws of round(scale·G), with G a standard normal, exactly.

    A draw is a function of a real number P, uniform on (0, 1), and a sign: |G| solves 2Φ(-|G|) = P. The first 63 bits
    of P leave an interval for |G|. If all of it rounds to one integer, with a margin for the rounding errors of the
    inverse Φ (2⁻⁴⁷(1 + |G|), some thirty units in the last place), that is the draw: further bits could not change it.
    The few others get as many further bits, and digits, as it takes to know.
    """
    words = stream.words(count)
    left = (words & np.uint64(2**63 - 1)).astype(np.int64)
    size = -ndtri((left.astype(np.float64) + 0.5) * 2.0**-64)
    margin = _MARGIN * (1 + size)
    low, high = (np.floor(scale * (size + sign * margin) + 0.5) for sign in (-1, 1))
    result: NDArray[np.int64] = low.astype(np.int64)
    for place in np.flatnonzero((low != high) | (size > _SURE)).tolist():
        result[place] = _settled(scale, int(left[place]), stream)
    result[words >> np.uint64(63) == 1] *= -1
    return result


def _settled(scale: float, bits: int, stream: Stream) -> int:
    """round(scale·|G|), given the first 63 bits of P."""
    length = 63
    while True:
        bits, length = (bits << 64) + int(stream.words(1)[0]), length + 64
        if bits == 0:
            continue
        with mpmath.workprec(2 * length + 64):
            ends = [mpmath.sqrt(2) * mpmath.erfinv(1 - mpmath.mpf(end) / (1 << length)) for end in (bits + 1, bits)]
            slack = mpmath.mpf(2) ** -(length + 32)
            low, high = (
                int(mpmath.floor(scale * end * (1 + sign * slack) + 0.5))
                for sign, end in zip((-1, 1), ends, strict=True)
            )
        if low == high:
            return low


def _sizes(vectors: Sequence[Tensor]) -> Tensor:
    """The norms of the groups' vectors, added up in float64."""
    parts = [torch.linalg.vector_norm(v.reshape(len(v), -1), dim=1, dtype=torch.float64) for v in vectors]
    return torch.stack(parts).square().sum(0).sqrt()


class ExactArithmetic:
    """Whole numbers: the release is one of them, and its guarantee is proved for the numbers a computer has."""

    def __init__(self, rho: float, sigma: float) -> None:
        if not 0 < sigma <= LARGEST_SIGMA:
            raise ArgumentError("sigma", sigma, f"above zero and at most {LARGEST_SIGMA:g} for noise='exact'")
        self.rho = rho

    def sum(self, clipper: GroupClipper, batch: Batch, step: float) -> ClippedSum:
        """Every group's Δ on the grid and within R, added up as integers."""
        if sum(p.numel() for p in clipper.parameters) > MOST_COORDINATES:
            raise ArgumentError("noise", "exact", "float for a model of more than 2^30 parameters")
        if len(batch.sizes) > MOST_GROUPS:
            raise ArgumentError("noise", "exact", "float for more than 2^23 groups in a step")
        total = [torch.zeros_like(p, dtype=torch.float64) for p in clipper.parameters]
        norms, losses = [torch.zeros(0, dtype=torch.float64)], [torch.zeros(0)]
        for gradients, means in clipper.each_group(batch, step):
            size = _sizes(gradients)
            finite = size.isfinite() & means.isfinite()
            for so_far, grid in zip(total, self._inside(gradients, size, finite), strict=True):
                so_far += grid[0] if len(grid) == 1 else grid.sum(0, dtype=torch.float64)
            norms.append(torch.where(finite, size, torch.inf).cpu())
            losses.append(means.cpu())
        return ClippedSum([part.to(torch.int64) for part in total], torch.cat(norms), torch.cat(losses))

    def _inside(self, gradients: Sequence[Tensor], size: Tensor, finite: Tensor) -> list[Tensor]:
        """The groups' vectors on the grid, zero for those that are not finite or too long."""
        factor = (1 - 2.0**-20) * RADIUS / torch.maximum(size, torch.full_like(size, self.rho))
        shape = [(-1, *[1] * (g.dim() - 1)) for g in gradients]
        grid = [(g * factor.to(g.dtype).view(s)).trunc_() for g, s in zip(gradients, shape, strict=True)]
        fits = finite & (_sizes(grid) <= RADIUS * (1 - 2.0**-22))
        if not fits.all():
            for one in grid:
                one[~fits] = 0
        return grid

    def add_noise(self, total: Sequence[Tensor], sigma: float, random: Randomness, k: int) -> None:
        """Add round(σR·G) to every coordinate."""
        stream = random.stream(Purpose.NOISE, k)
        for tensor in total:
            noise = torch.from_numpy(rounded_normal(sigma * RADIUS, tensor.numel(), stream))
            tensor.add_(noise.view(tensor.shape).to(tensor.device))

    def released(self, total: Sequence[Tensor]) -> list[Tensor]:
        """The integer sum in units of ρ/R, as a float64: a function of what is already released."""
        return [tensor.double() * (self.rho / RADIUS) for tensor in total]
