"""ρ chosen privately: the two-stage estimator that Section 3.2 mentions, with its budget paid.

**What is minimised.** A group with counts v loses the weight ‖v‖₁(1 − ρ/‖v‖₂)₊ to the projection. So the expected ℓ1
error of the release is at most

    Σ over groups ‖v‖₁(1 − ρ/‖v‖₂)₊ + ρ·S,   S = Σ over items √(2/π) × (the item's noise per unit of ρ),

bias plus noise. This is convex in ρ and least where

    D(ρ) = Σ over groups with ‖v‖₂ > ρ of ‖v‖₁/‖v‖₂

falls to S.

**Sensitivity of what is searched.** By Cauchy–Schwarz 1 ≤ ‖v‖₁/‖v‖₂ ≤ √k for a group with k items. At most K of the
items released lie in one element, and K is public: it follows from the list of items and from the partition. A step of
the search asks for D(ρ) with each group's ratio cut at a public number c between 1 and √K and rounded down to a grid.
A group adds a number between 0 and c, so neighbours, who differ in one group, differ by at most c, for every ρ. The
ratio has no unit: the bound holds for weights of any size.

A binary search over a public grid of ρ asks at one ρ a step. Step i has noise of scale s = c/μᵢ. The steps are adaptive
and each is a Gaussian query, so together they cost μ = √Σμᵢ². A bad choice costs accuracy, never privacy.

**When the search goes up.** A step goes to a larger ρ if its noisy D exceeds max(S, a·s). Where no group is left, it
goes up with probability Φ(−a) at most, and can then make ρ too large by the factor F by which the two halves of what
is left of the grid lie apart. The number a is such that Φ(−a)(F − 1) is a small risk: a first step, which may spoil
everything, is careful, and a last one is not. Where S is far above the noise, nothing is asked beyond S. The budget is
divided in proportion to a (and the last steps get a little more), so that a·s, below which a step sees nothing, is
alike in all of them.

**Where ratios are cut.** At c = S·μᵢ/a, if that lies between 1 and √K: there a·s is just S. Groups with ratios
below c are then seen without loss and with less noise than at c = √K. And groups with larger ratios, the largest being
√K, lose nothing either: their D is shortened to D·c/√K at least, which exceeds S once D exceeds a√K/μᵢ, and this
is what a step without the cut asks for.

**What the search cannot see.** Heavy groups are given up although keeping them would pay if their D lies above S and
below a√K/μᵢ. S grows with the number of items and √K at most with its root, so this happens with few items only:
with tens of items at user level, not with hundreds. Even cut at c = 1, a step does not see fewer than a/μᵢ groups.

**What no search can see.** Take a choice of ρ that costs μ and is to be near the best with n heavy groups and without
them. It comes to their ρ, or above, with probability p if they are there and p' if not; p' has to be small, since the
noise would then be too large by a large factor. Tables that differ in n groups are nμ-Gaussian, so
Φ⁻¹(p) ≤ Φ⁻¹(p') + nμ. ``benchmarks/histogram_radius.py`` puts numbers in: the n that any choice of this cost needs,
and the n that this one needs. Where the second is larger, a better search may be possible in between.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from elementdp.histogram.noise import AddNoise, Integers, scale_for
from elementdp.histogram.projection import GroupCounts

_PER_OCTAVE = 8
_LOG_LARGEST = 32
RATIO_UNITS = 1 << 20
"""Ratios ‖v‖₁/‖v‖₂ are kept to 2⁻²⁰: fine, so that the discreteness of the noise costs nothing."""

_RISK = 0.03
"""The part by which noise alone makes ρ too large in one step of the search, on average."""

_LEAST_WEIGHT = 1.5
"""The allowance a that a step is paid for at least: the last steps ask for less, and still have to find the best ρ."""


def rho_grid(*, whole: bool) -> tuple[float, ...]:
    """What ρ is chosen from, eight values an octave: from 1 for whole counts, from 2⁻³² for weights, to almost 2³²."""
    first = 0 if whole else -_LOG_LARGEST
    return tuple(2.0 ** (k / _PER_OCTAVE) for k in range(first * _PER_OCTAVE, _LOG_LARGEST * _PER_OCTAVE))


@dataclass(frozen=True)
class SearchStep:
    """A step of the search: where ratios are cut (``bound``) and the ``scale`` of the noise, in units of 2⁻²⁰.

    The step goes up if its noisy D is above ``wanted``.
    """

    bound: int
    scale: float
    wanted: float


@dataclass(frozen=True)
class RadiusSearch:
    """A noisy binary search for ρ on ``grid``, whose length is two to the number of ``steps``."""

    grid: tuple[float, ...]
    steps: tuple[SearchStep, ...]

    @classmethod
    def of(cls, mu: float, most_items: int, wanted: float, *, whole: bool) -> "RadiusSearch":
        """The search that costs μ in all for the ρ at which D falls to ``wanted``, S above.

        ``most_items`` is K; counts that are whole numbers need no ρ below 1.
        """
        grid = rho_grid(whole=whole)
        halves = [2**left for left in reversed(range(len(grid).bit_length() - 1))]
        allowances = [-NormalDist().inv_cdf(_RISK / (2 ** (half / _PER_OCTAVE) - 1)) for half in halves]
        weights = [max(allowed, _LEAST_WEIGHT) for allowed in allowances]
        steps = []
        for allowed, weight in zip(allowances, weights, strict=True):
            each = mu * weight / math.hypot(*weights)
            cut = min(max(wanted * each / allowed, 1.0) * RATIO_UNITS, math.sqrt(max(1, most_items)) * RATIO_UNITS)
            scale = scale_for(float(math.floor(cut)), each)
            steps.append(SearchStep(math.floor(cut), scale, max(wanted, allowed * scale / RATIO_UNITS)))
        return cls(grid, tuple(steps))

    @property
    def widest(self) -> SearchStep:
        """The step that cuts ratios last, and has the most noise."""
        return max(self.steps, key=lambda step: step.bound)

    def measure(self, groups: GroupCounts) -> Integers:
        """D(ρ) for each ρ of the grid in units of 2⁻²⁰, with ratios cut as in the step that asks at this ρ."""
        norms = groups.norms()
        ratios = groups.totals() / norms * RATIO_UNITS
        places = np.searchsorted(self.grid, norms, side="left")  # a group counts for every ρ below its norm
        bounds = np.array([step.bound for step in self.steps])[self._asked()]
        found = np.zeros(len(self.grid), dtype=np.int64)
        for bound in np.unique(bounds).tolist():
            sums = np.zeros(len(self.grid) + 1, dtype=np.int64)
            np.add.at(sums, places, np.minimum(np.floor(ratios), bound).astype(np.int64))
            found = np.where(bounds == bound, np.cumsum(sums[:0:-1])[::-1], found)
        return found

    def _asked(self) -> NDArray[np.int64]:
        """The number of the step that can ask at each ρ: the middle is the first's, the quarters the second's, …

        Nobody asks at the last ρ, where the search ends if all else is too small.
        """
        after = np.arange(1, len(self.grid) + 1)
        halvings = np.log2(after & -after).astype(np.int64)  # how often two divides the number of ρ up to this one
        return np.asarray(np.maximum(len(self.steps) - 1 - halvings, 0))

    def choose(self, above: Integers, add_noise: AddNoise) -> float:
        """The first ρ of the grid at which D (``above``, as measured) is not above S, as far as one can tell."""
        low = 0
        for number, step in enumerate(self.steps, start=1):
            half = len(self.grid) >> number
            middle = low + half - 1
            noisy = int(add_noise(above[middle : middle + 1], step.scale)[0]) / RATIO_UNITS
            low += half if noisy > step.wanted else 0
        return self.grid[low]


def balance(noise_per_rho: NDArray[np.float64]) -> float:
    """S: the D(ρ) at which a larger ρ costs as much noise as it saves bias."""
    return math.sqrt(2 / math.pi) * float(noise_per_rho.sum())
