"""The projection of eqn:histogram-mechanism on whole numbers: each (user, element) group into a ball of radius ρ.

Counts live on the grid of multiples of 1/G, G a power of two: a group's counts v become z = ⌊G·v·min(1, ρ/‖v‖)⌋.
Rounding down keeps the norm within R = ⌊Gρ⌋, checked in whole numbers and not left to floating point.

**Sensitivity.** Neighbours differ in the data of one group, so in one z, from z to z' say (either may be 0). Both are
non-negative, so ‖z − z'‖² = ‖z‖² + ‖z'‖² − 2⟨z, z'⟩ ≤ 2R²: sensitivity √2·R, attained by two items of one element.
If an element holds a single item, z and z' are numbers in [0, R] and the sensitivity is R. A neighbour changes one
element, so each item's noise need only suit the element it is in.

A group's z must not depend on any other group, not even in the last bit: counts are added up as whole numbers, and
the squares in ‖v‖ are added in order of size, so neither the order of the table nor the batches matter.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elementdp.errors import ArgumentError, positive
from elementdp.histogram.noise import Integers

COUNT_UNITS = 1 << 20
"""Units in a count of 1: fractional counts are kept to 2⁻²⁰."""

_LOG_RADIUS = 30
LARGEST_RHO = 2.0**_LOG_RADIUS
_SMALLEST_RHO = 2.0**-_LOG_RADIUS


@dataclass(frozen=True)
class GridBall:
    """The ball of radius R = ``radius`` ≤ 2³⁰ on the grid of multiples of 1/G, G = ``grid``."""

    radius: int
    grid: float

    @classmethod
    def of(cls, rho: float) -> "GridBall":
        """The finest grid on which ρ stays within 2³⁰ steps, so that sums and squares fit in 64 bits."""
        if not _SMALLEST_RHO <= positive("rho", rho) <= LARGEST_RHO:
            raise ArgumentError("rho", rho, "between 2^-30 and 2^30")
        grid = math.ldexp(1.0, _LOG_RADIUS - math.ceil(math.log2(rho)))
        return cls(math.floor(grid * rho), grid)

    @property
    def rho(self) -> float:
        """The radius in counts: ρ, rounded down to the grid."""
        return self.radius / self.grid

    def sensitivity(self, *, one_item: bool) -> float:
        """In grid steps, rounded up: R if no element holds two items, else √2·R."""
        return float(self.radius) if one_item else math.nextafter(math.sqrt(2) * self.radius, math.inf)


@dataclass(frozen=True)
class GroupCounts:
    """Counts by (group, item), each pair once, sorted by group: ``starts`` are the groups' first rows."""

    keys: NDArray[np.uint64]
    items: NDArray[np.int64]
    units: Integers
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, keys: NDArray[np.uint64], items: NDArray[np.int64], units: Integers) -> "GroupCounts":
        """Add up the units of each (group, item) pair; pairs that come to nothing are left out."""
        order = np.lexsort((items, keys))
        keys, items, units = keys[order], items[order], units[order]
        if len(keys):
            first = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]) | (items[1:] != items[:-1])])
            keys, items, units = keys[first], items[first], np.add.reduceat(units, first)
        # Sums that overflowed into the negative go too: the bound √2·R rests on non-negative counts.
        return cls._sorted(keys, items, units, units > 0)

    @classmethod
    def none(cls) -> "GroupCounts":
        """No group at all."""
        return cls.of(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def _sorted(
        cls, keys: NDArray[np.uint64], items: NDArray[np.int64], units: Integers, keep: NDArray[np.bool_]
    ) -> "GroupCounts":
        keys, items, units = keys[keep], items[keep], units[keep]
        starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.empty(0, np.int64)
        return cls(keys, items, units, starts)

    def keep(self, mask: NDArray[np.bool_]) -> "GroupCounts":
        """Only the pairs where ``mask`` is true."""
        return self._sorted(self.keys, self.items, self.units, mask)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of items of each group."""
        return np.diff(self.starts, append=len(self.keys))

    def norms(self) -> NDArray[np.float64]:
        """The ℓ2 norm of each group's counts."""
        index = np.repeat(np.arange(len(self.starts)), self.sizes)
        counts = (self.units / COUNT_UNITS)[np.lexsort((self.units, index))]
        return np.sqrt(np.bincount(index, weights=counts**2, minlength=len(self.starts)))

    def apart(self) -> "GroupCounts":
        """Each pair a group of its own, as it is when elements are single items.

        Nothing changes then, except that two such groups whose hashes collide are told apart, which the sensitivity R
        (and not √2·R) of one-item elements needs.
        """
        return GroupCounts(self.keys, self.items, self.units, np.arange(len(self.keys)))

    def presence(self) -> "GroupCounts":
        """The same pairs, each with a count of one."""
        return GroupCounts(self.keys, self.items, np.full(len(self.keys), COUNT_UNITS), self.starts)

    def project(self, ball: GridBall) -> Integers:
        """z for each pair: the group's counts, scaled into the ball and rounded down to its grid."""
        if not len(self.keys):
            return np.empty(0, np.int64)
        counts, sizes = self.units / COUNT_UNITS, self.sizes
        norms = self.norms() * ball.grid
        factor = ball.grid * np.minimum(1.0, ball.radius / norms)
        while True:
            inside = np.floor(counts * np.repeat(factor, sizes)).astype(np.int64)
            outside = np.add.reduceat(inside**2, self.starts) > ball.radius**2
            if not outside.any():
                return inside
            factor = np.where(outside, factor * (1 - 2.0**-40), factor)  # floating point missed by an ulp
