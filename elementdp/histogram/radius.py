"""ρ chosen privately: the two-stage estimator that Section 3.2 mentions, with its budget paid.

**What is minimised.** A group with counts v loses the weight ‖v‖₁(1 − ρ/‖v‖₂)₊ to the projection. So the expected ℓ1
error of the release is at most

    Σ over groups ‖v‖₁(1 − ρ/‖v‖₂)₊ + ρ·S,   S = Σ over items √(2/π) × (the item's noise per unit of ρ),

bias plus noise. This is convex in ρ and least where

    D(ρ) = Σ over groups with ‖v‖₂ > ρ of ‖v‖₁/‖v‖₂

falls to S.

**Sensitivity of what is searched.** By Cauchy–Schwarz 1 ≤ ‖v‖₁/‖v‖₂ ≤ √k for a group with k items. At most K of the
items released lie in one element, and K is public: it follows from the list of items and from the partition. A group
therefore adds a number between 0 and √K to D(ρ) (cut at √K, should the hashes of two groups collide, and rounded down
to a grid), and neighbours, who differ in one group, differ by at most √K in D(ρ), for every ρ at once. The ratio has no
unit: the bound holds for weights of any size.

A binary search over a public grid of ρ asks for D at one ρ a step, with noise. The steps are adaptive and each is a
Gaussian query, so together they cost μ² = steps·K/σ². A bad choice costs accuracy, never privacy.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elementdp.histogram.noise import AddNoise, Integers, scale_for
from elementdp.histogram.projection import GroupCounts

_PER_OCTAVE = 4
_LOG_LARGEST = 32
_GRID = 1 << 20  # a ratio of one, in steps: fine, so that the discreteness of the noise costs nothing
_NEAR = 4  # the last steps choose among neighbouring ρ


def rho_grid(*, whole: bool) -> tuple[float, ...]:
    """What ρ is chosen from, four values an octave: from 1 for whole counts, from 2⁻³² for weights, to almost 2³²."""
    first = 0 if whole else -_LOG_LARGEST
    return tuple(2.0 ** (k / _PER_OCTAVE) for k in range(first * _PER_OCTAVE, _LOG_LARGEST * _PER_OCTAVE))


@dataclass(frozen=True)
class RadiusSearch:
    """A noisy binary search for ρ on ``grid``, in elements of at most ``most_items`` items.

    ``scale`` is the noise of each step, in steps of a grid on which a ratio ‖v‖₁/‖v‖₂ of one is ``unit``.
    """

    grid: tuple[float, ...]
    most_items: int
    scale: float
    unit: int = _GRID

    @classmethod
    def of(cls, mu: float, most_items: int, *, whole: bool) -> "RadiusSearch":
        """The search that costs μ in all; counts that are whole numbers need no ρ below 1."""
        quiet = cls(rho_grid(whole=whole), max(1, most_items), 0.0)
        return cls(quiet.grid, quiet.most_items, scale_for(float(quiet.bound), mu / math.sqrt(quiet.steps)))

    @property
    def steps(self) -> int:
        """The number of noisy queries, at most."""
        return math.ceil(math.log2(len(self.grid)))

    @property
    def bound(self) -> int:
        """The most that one group adds to a query, in steps: √K, rounded down, as the cut is."""
        return math.isqrt(self.most_items * self.unit**2)

    @property
    def noise(self) -> float:
        """The standard deviation of each noisy D."""
        return self.scale / self.unit

    def measure(self, groups: GroupCounts) -> Integers:
        """D(ρ) for each ρ of the grid, in steps."""
        norms = groups.norms()
        ratios = np.minimum(np.floor(groups.totals() / norms * self.unit), self.bound).astype(np.int64)
        sums = np.zeros(len(self.grid) + 1, dtype=np.int64)
        np.add.at(sums, np.searchsorted(self.grid, norms, side="left"), ratios)  # counts for every ρ below the norm
        return np.asarray(np.cumsum(sums[:0:-1])[::-1])

    def choose(self, above: Integers, wanted: float, add_noise: AddNoise) -> float:
        """The first ρ of the grid at which D (``above``, in steps) is at most ``wanted``, as far as one can tell.

        As long as a step decides between ρ far apart, three standard deviations are allowed on top: above every norm
        such a step goes wrong only if its noise exceeds them, and it would multiply the noise of the release by
        thousands. The last steps are allowed one.
        """
        low, high = 0, len(self.grid) - 1
        while low < high:
            middle = (low + high) // 2
            allowed = 3 if high - low > 1 << _NEAR else 1
            noisy = int(add_noise(above[middle : middle + 1], self.scale)[0]) / self.unit
            low, high = (low, middle) if noisy <= wanted + allowed * self.noise else (middle + 1, high)
        return self.grid[low]


def balance(noise_per_rho: NDArray[np.float64]) -> float:
    """S: the D(ρ) at which a larger ρ costs as much noise as it saves bias."""
    return math.sqrt(2 / math.pi) * float(noise_per_rho.sum())
