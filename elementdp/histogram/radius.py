"""ρ chosen privately: the two-stage estimator that Section 3.2 mentions, with its budget paid.

The expected ℓ1 error of the release is at most

    Σ over groups (‖v‖ − ρ)₊ + ρ·Σ over items s_j,   s_j = √(2/π) × (the item's noise per unit of ρ),

bias plus noise (exact for one-item elements), which is convex in ρ and least where the number of groups with ‖v‖ > ρ
falls to Σ s_j. That number, N(ρ), moves by at most 1 between neighbours, so a binary search over a public
grid of ρ, with a noisy N at each of its few steps, finds the place. The steps are adaptive and each is a Gaussian
query, so together they cost μ² = steps/σ². A bad choice costs accuracy, never privacy.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elementdp.histogram.noise import AddNoise, scale_for

RHO_GRID: tuple[float, ...] = tuple(math.ldexp(base, power) for power in range(30) for base in (1.0, 1.5))
"""1, 1.5, 2, 3, 4, 6, … up to 1.5·2²⁹: what a private choice of ρ chooses from."""

STEPS = math.ceil(math.log2(len(RHO_GRID)))
_GRID = 1 << 30  # a count of one, in steps: fine, so that the discreteness of the noise costs nothing


@dataclass(frozen=True)
class RadiusSearch:
    """A noisy binary search for ρ: ``scale`` is the noise of each step, in steps of the grid."""

    scale: float

    @classmethod
    def of(cls, mu: float) -> "RadiusSearch":
        """The search that costs μ in all."""
        return cls(scale_for(float(_GRID), mu / math.sqrt(STEPS)))

    @property
    def noise(self) -> float:
        """The standard deviation of each noisy number of groups."""
        return self.scale / _GRID

    def choose(self, above: NDArray[np.int64], wanted: float, add_noise: AddNoise) -> float:
        """The first ρ of the grid with at most ``wanted`` groups ``above`` it, as far as the noise lets one tell.

        Three standard deviations are allowed on top. Above every norm a step goes wrong only if its noise exceeds them,
        and that mistake is the dear one: it can multiply ρ, and so the noise of the release, by thousands.
        """
        low, high = 0, len(RHO_GRID) - 1
        for _ in range(STEPS):
            if low == high:
                break
            middle = (low + high) // 2
            noisy = int(add_noise(np.array([int(above[middle]) * _GRID]), self.scale)[0]) / _GRID
            low, high = (low, middle) if noisy <= wanted + 3 * self.noise else (middle + 1, high)
        return RHO_GRID[low]


def groups_above(norms: NDArray[np.float64]) -> NDArray[np.int64]:
    """N(ρ), the number of norms above ρ, for each ρ of the grid."""
    return np.asarray(len(norms) - np.searchsorted(np.sort(norms), RHO_GRID, side="right"), dtype=np.int64)


def balance(noise_per_rho: NDArray[np.float64]) -> float:
    """Σ s_j: the number of clipped groups at which a larger ρ costs as much noise as it saves bias."""
    return math.sqrt(2 / math.pi) * float(noise_per_rho.sum())
