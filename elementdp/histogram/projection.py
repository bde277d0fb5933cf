"""The projection of Equation (9) on whole numbers: each (user, element) group into a ball of radius ρ.

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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elementdp.elements.grouping import sorted_groups
from elementdp.errors import ArgumentError, positive
from elementdp.histogram.errors import TableError
from elementdp.histogram.noise import Integers
from elementdp.histogram.values import VALUE_UNITS, value_sensitivity

FRACTION_UNITS = 1 << 40
"""Fractions of a count are kept to 2⁻⁴⁰."""

_LOG_RADIUS = 30
_ODD = np.uint64(0x9E3779B97F4A7C15)
_OVERFLOW = "the counts of one user and item add up to more than 64 bits hold"
LARGEST_RHO = 2.0**40


@dataclass(frozen=True)
class GridBall:
    """The ball of radius R = ``radius`` ≤ 2³⁰ on the grid of multiples of 1/G, G = ``grid``."""

    radius: int
    grid: float

    @classmethod
    def of(cls, rho: float) -> "GridBall":
        """The finest grid on which ρ stays within 2³⁰ steps, so that sums and squares fit in 64 bits."""
        if not 1 / LARGEST_RHO <= positive("rho", rho) <= LARGEST_RHO:
            raise ArgumentError("rho", rho, "between 2^-40 and 2^40")
        grid = math.ldexp(1.0, _LOG_RADIUS - math.ceil(math.log2(rho)))
        return cls(math.floor(grid * rho), grid)

    @property
    def rho(self) -> float:
        """The radius in counts: ρ, rounded down to the grid."""
        return self.radius / self.grid

    def sensitivity(self, *, one_item: bool, valued: bool = False) -> float:
        """In grid steps, rounded up: R if no element holds two items, else √2·R; more if values come with counts."""
        if valued:
            return value_sensitivity(self.radius, one_item=one_item)
        return float(self.radius) if one_item else math.nextafter(math.sqrt(2) * self.radius, math.inf)


@dataclass(frozen=True)
class GroupCounts:
    """Counts by (group, item), each pair once, sorted by group: ``starts`` are the groups' first rows.

    ``values`` are the pairs' sums of a bounded column in the units of :mod:`elementdp.histogram.values`, if asked for.
    """

    keys: NDArray[np.uint64]
    items: NDArray[np.int64]
    counts: NDArray[np.float64]
    starts: NDArray[np.int64]
    values: Integers | None = None

    @classmethod
    def of(
        cls,
        keys: NDArray[np.uint64],
        items: NDArray[np.int64],
        whole: Integers | None = None,
        fraction: Integers | None = None,
        values: Integers | None = None,
    ) -> "GroupCounts":
        """Add up whole counts (one a row, unless given), fractions in units of 2⁻⁴⁰ and values, by (group, item).

        Pairs that come to nothing are left out.
        """
        keys, items, sums, fractions, *valued = pair_sums(
            tuple(column for column in (keys, items, whole, fraction, values) if column is not None)
        )
        counts = sums + fractions / FRACTION_UNITS
        return cls.sorted(keys, items, counts, counts > 0, *valued)

    @classmethod
    def none(cls) -> "GroupCounts":
        """No group at all."""
        return cls.of(np.empty(0, np.uint64), np.empty(0, np.int64))

    @classmethod
    def sorted(
        cls,
        keys: NDArray[np.uint64],
        items: NDArray[np.int64],
        counts: NDArray[np.float64],
        keep: NDArray[np.bool_],
        values: Integers | None = None,
    ) -> "GroupCounts":
        """Pairs that are sorted by group already, where ``keep`` is true."""
        if not keep.all():
            keys, items, counts = keys[keep], items[keep], counts[keep]
            values = None if values is None else values[keep]
        starts = np.flatnonzero(_changes(keys))
        return cls(keys, items, counts, starts, values)

    def keep(self, mask: NDArray[np.bool_]) -> "GroupCounts":
        """Only the pairs where ``mask`` is true."""
        return self.sorted(self.keys, self.items, self.counts, mask, self.values)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of items of each group."""
        return np.diff(self.starts, append=len(self.keys))

    def totals(self) -> NDArray[np.float64]:
        """The ℓ1 norm of each group's counts."""
        return self._sums(self.counts)

    def norms(self) -> NDArray[np.float64]:
        """The ℓ2 norm of each group's counts."""
        return np.sqrt(self._sums(self.counts**2))

    def _sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of each group's values, which must not depend on the order of its items."""
        if not len(values):
            return np.empty(0)
        whole = values == np.floor(values)
        if not (whole.all() and values.sum() < 2.0**53):  # else each sum is exact in whatever order
            index = np.repeat(np.arange(len(self.starts)), self.sizes)
            values = values[np.lexsort((values, index))]
        return np.asarray(np.add.reduceat(values, self.starts))

    def apart(self) -> "GroupCounts":
        """Each pair a group of its own, as it is when elements are single items.

        Nothing changes then, except that two such groups whose hashes collide are told apart, which the sensitivity R
        (and not √2·R) of one-item elements needs.
        """
        return replace(self, starts=np.arange(len(self.keys)))

    def presence(self) -> "GroupCounts":
        """The same pairs, each with a count of one."""
        return GroupCounts(self.keys, self.items, np.ones(len(self.keys)), self.starts)

    def project(self, ball: GridBall) -> Integers:
        """z for each pair: the group's counts, scaled into the ball and rounded down to its grid."""
        return self._projected(ball)[0]

    def project_both(self, ball: GridBall) -> tuple[Integers, Integers]:
        """z and t for each pair: its count and its value, scaled by the same factor and rounded towards zero."""
        assert self.values is not None
        inside, factor = self._projected(ball)
        scaled = np.trunc(self.values * (np.repeat(factor, self.sizes) / VALUE_UNITS)).astype(np.int64)
        return inside, np.clip(scaled, -inside, inside)  # floating point can miss |t| ≤ z by a step

    def _projected(self, ball: GridBall) -> tuple[Integers, NDArray[np.float64]]:
        """z, and the factor of each group."""
        if not len(self.keys):
            return np.empty(0, np.int64), np.empty(0)
        sizes = self.sizes
        factor = ball.grid * np.minimum(1.0, ball.radius / (self.norms() * ball.grid))
        while True:
            inside = np.floor(self.counts * np.repeat(factor, sizes)).astype(np.int64)
            outside = np.add.reduceat(inside**2, self.starts) > ball.radius**2
            if not outside.any():
                return inside, factor
            factor = np.where(outside, factor * (1 - 2.0**-40), factor)  # floating point missed by an ulp


def _pair_order(keys: NDArray[Any], items: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows in order of their groups, with equal items of a group side by side, and where each pair begins.

    This sorts plain 64-bit numbers, ten times as fast as sorting by two keys: first the keys; then the group's number
    in the upper bits and as much of the item as fits into the lower ones. If two items of a group agree in these, the
    rows are sorted by both keys after all.
    """
    order = np.argsort(keys)
    group = np.cumsum(_changes(keys[order])).astype(np.uint64)
    lower = np.uint64(64 - len(keys).bit_length())
    with np.errstate(over="ignore"):
        spread = items[order].view(np.uint64) * _ODD
    pairs = group << lower | spread >> np.uint64(64 - lower)
    inside = np.argsort(pairs)
    order, begins = order[inside], _changes(pairs[inside])
    if (_changes(items[order]) & ~begins).any():
        order, starts = sorted_groups(keys, items)
        return order, starts[:-1]
    return order, np.flatnonzero(begins)


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each value differs from the one before it; the first does."""
    return np.asarray(np.r_[np.ones(min(1, len(values)), bool), values[1:] != values[:-1]])


def pair_sums(rows: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
    """Rows (group, item[, whole[, fraction[, value]]]) added up by pair, sorted; without a count a row counts once.

    A sum that 64 bits do not hold is refused: the bound √2·R rests on non-negative counts.
    """
    keys, items, *counts = rows
    order, first = _pair_order(keys, items)
    keys, items = keys[order], items[order]
    if not len(first):
        return keys, items, *(np.empty(0, np.int64) for _ in range(max(2, len(counts))))
    return keys[first], items[first], *run_sums(tuple(column[order] for column in counts), first, len(keys))


def run_sums(counts: tuple[Integers, ...], starts: NDArray[np.int64], rows: int) -> tuple[Integers, ...]:
    """Whole counts, fractions and values ([whole[, fraction[, value]]]) of runs of rows, each at its start."""
    whole = _run_sums(counts[0], starts) if counts else np.diff(starts, append=rows)
    fraction = _run_sums(counts[1], starts) if len(counts) > 1 else np.zeros(len(starts), np.int64)
    values = (_run_sums(column, starts) for column in counts[2:])
    return whole + fraction // FRACTION_UNITS, fraction % FRACTION_UNITS, *values


def _run_sums(column: Integers, starts: NDArray[np.int64]) -> Integers:
    largest = max(int(column.max(initial=0)), -int(column.min(initial=0)))
    if len(column) * largest >= 1 << 62:  # else no sum can be too large
        rough = np.add.reduceat(np.abs(column.astype(np.float64)), starts)
        if (rough >= 2.0**62).any():
            raise TableError(_OVERFLOW, _OVERFLOW)
    return np.asarray(np.add.reduceat(column, starts))
