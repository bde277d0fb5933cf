"""A privacy loss cut into cells between the knots of a grid, keeping the mass of both laws."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from elementdp.privacy._engine.pairs import Pair, pieces
from elementdp.privacy.curves import Floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
CUT = 1e-9  # how well a knot is met, in cells
ROUNDING = 1e-15  # how well, relative to its loss
LOGARITHMS = 4e-14  # how well the loss of a wide piece is known: by logarithms of masses, of some tens each
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """A privacy loss cut into cells, between knots at losses origin + h·index; the index may leave gaps.

    ``down`` and ``rise`` are the mass under the first law of each cell, split between its two knots so that the mass
    under the *second* law is kept as well. ``atom`` is mass exactly at knot 0; ``outside`` bounds the mass left out.
    """

    origin: float
    h: float
    index: Whole
    down: Floats
    rise: Floats
    lift: Floats  # Σ mass·(distance up)·(share that goes up): how far rounding to the knots moves the loss
    sink: Floats  # the same downwards
    outside: float
    atom: float = 0.0
    symmetrised: bool = False  # whether the law below 0 was mirrored from that above it
    balanced: bool = False  # whether exchanging the laws mirrors the loss: a symmetric block then has equal masses

    @property
    def knots(self) -> Floats:
        """The losses between which the cells lie."""
        return np.asarray(self.origin + self.h * self.index, dtype=float)

    @property
    def widths(self) -> Floats:
        """The widths of the cells."""
        return np.asarray(self.h * np.diff(self.index), dtype=float)

    @property
    def zero(self) -> int:
        """Where in the index knot 0 is."""
        return int(np.searchsorted(self.index, 0))


@dataclass(frozen=True)
class Grid:
    """Knots at losses origin + h·index, dense where the mass is; ``index`` is increasing and has 0 in it."""

    origin: float
    h: float
    index: Whole

    def moved(self, origin: float) -> "Grid":
        """The same knots counted from another origin."""
        return replace(self, origin=origin)

    def covering(self, low: float, high: float) -> Whole:
        """The index, continued evenly at either end as far as the losses ``low`` and ``high`` need it."""
        stride = int(np.diff(self.index).max())
        left = max(0, math.ceil((self.index[0] - (low - self.origin) / self.h) / stride) + 1)
        right = max(0, math.ceil(((high - self.origin) / self.h - self.index[-1]) / stride) + 1)
        before = self.index[0] + stride * np.arange(-left, 0)
        return np.concatenate([before, self.index, self.index[-1] + stride * np.arange(1, right + 1)])


def cells(pair: Pair, grid: Grid, reach: float, *, above: float = -math.inf, right_of: float = -math.inf) -> Cells:
    """The loss in cells between the knots of ``grid``, within ``reach`` of a mean of the first law.

    Only cells above the knot ``above`` and outcomes right of ``right_of`` are cut.
    """
    monotone = pieces(pair, reach, right_of)
    ends = [float(loss[end]) for _, loss in monotone for end in (0, -1)]
    index = grid.covering(min(ends), max(ends))
    knots = np.asarray(grid.origin + grid.h * index, dtype=float)
    cuts = [_cuts(pair, u, loss, knots, CUT * grid.h) for u, loss in monotone]
    place, low, high = cuts[0] if len(cuts) == 1 else tuple(np.concatenate(part) for part in zip(*cuts, strict=True))
    inside = high > low
    if above > -math.inf:
        inside &= knots[place] >= above
    if not inside.all():
        place, low, high = place[inside], low[inside], high[inside]
    left = knots[place]
    shares = _split(pair, left, knots[place + 1] - left, low, high)
    down, rise, lift, sink = (_gathered(place, share, len(index) - 1) for share in shares)
    return Cells(grid.origin, grid.h, index, down, rise, lift, sink, 2 * float(ndtr(-reach)), balanced=pair.mirrored)


def _gathered(place: Whole, share: Floats, size: int) -> Floats:
    """The sum of the shares at each place."""
    return np.bincount(place, share, size).astype(float, copy=False)


def symmetrised(half: Cells) -> Cells:
    """From the cells above 0 of (A, B): the pair whose curve is the larger of those of (A, B) and (B, A), everywhere.

    Below 0 it has the exchanged pair's loss, a mass e^{-x}·m at −x for each mass m at x, and what is left is at 0.
    """
    zero = half.zero
    knots, half_down, half_rise = half.knots[zero:], half.down[zero:].copy(), half.rise[zero:]
    fall = np.exp(-knots)
    elsewhere = float(np.dot(half_down[1:], 1 + fall[1:-1])) + float(np.dot(half_rise, 1 + fall[1:]))
    half_down[0] = min(half_down[0], max(0.0, (1 - elsewhere) / 2))  # rounding must not count a plateau at 0 twice
    mirror_rise = (half_down * fall[:-1])[::-1]
    mirror_down = (half_rise * fall[1:])[::-1]
    down, rise = np.concatenate([mirror_down, half_down]), np.concatenate([mirror_rise, half_rise])
    atom = max(0.0, 1.0 - float(down.sum()) - float(rise.sum()))
    index = np.concatenate([-half.index[:zero:-1], half.index[zero:]])
    unknown = np.full(len(down), math.nan)  # no adversary shows this pair, so no lower bound is asked of it
    return Cells(
        half.origin, half.h, index, down, rise, unknown, unknown, half.outside, atom, symmetrised=True, balanced=True
    )


def merged_plateau(pair: Pair, grid: Grid, reach: float, width: float) -> Cells | None:
    """The loss after all outcomes left of where it leaves its plateau by ``width`` are merged into one outcome.

    Merging outcomes can only lower δ. The merged one has its exact loss, and the lattice a knot there. ``None`` if
    there is no plateau to the left.
    """
    if min(pair.first.means.min(), pair.second.means.min()) < 0:
        return None
    u = np.linspace(-reach, float(pair.first.means.max()) + reach, 4097)
    end = float(u[int(np.argmax(np.abs(pair.loss(u) - pair.plateau) > width))])
    edge = np.array([end]), np.array([-np.inf])
    first, second = (float(mix.mass(edge[1], edge[0])[0]) for mix in (pair.first, pair.second))
    if end <= -reach or not second > 0:
        return None
    cut = cells(pair, grid.moved(math.log(first / second)), reach, right_of=end)
    return replace(cut, atom=first, balanced=False)


def mixed(parts: list[tuple[float, Cells]], lost: float) -> Cells:
    """The loss when one of several pairs is drawn with the given weights and shown; all on the same lattice.

    ``lost`` bounds what pairs that were left out would show.
    """
    first = parts[0][1]
    # All are one grid, continued evenly as far as each needs, so the longest ends of any of them hold all others.
    lowest = min((part.index for _, part in parts), key=lambda knots: int(knots[0]))
    highest = max((part.index for _, part in parts), key=lambda knots: int(knots[-1]))
    index = np.concatenate([lowest, highest[np.searchsorted(highest, lowest[-1], side="right") :]])
    sums = np.zeros((4, len(index) - 1))
    for weight, part in parts:
        start = int(np.searchsorted(index, part.index[0]))
        shares = np.array([part.down, part.rise, part.lift, part.sink])
        sums[:, start : start + len(part.down)] += weight * shares
    outside = sum(weight * part.outside for weight, part in parts) + lost
    balanced = all(part.balanced for _, part in parts)
    return Cells(first.origin, first.h, index, sums[0], sums[1], sums[2], sums[3], outside, balanced=balanced)


def _cuts(pair: Pair, u: Floats, loss: Floats, knots: Floats, near: float) -> tuple[Whole, Floats, Floats]:
    """The pieces into which the knots cut a stretch of outcomes on which the loss is monotone.

    ``u`` and ``loss`` are outcomes from end to end and their losses. Of each piece: its cell and its two ends.
    """
    if loss[-1] < loss[0]:
        u, loss = u[::-1], loss[::-1]
    first, last = int(np.searchsorted(knots, loss[0])), int(np.searchsorted(knots, loss[-1], side="right"))
    inner = pair.outcome(knots[first:last])
    if inner is None:
        inner = _sought(pair, u, np.maximum.accumulate(loss), knots[first:last], near)
    cell = np.minimum(np.arange(first - 1, last), len(knots) - 2)
    ends = np.concatenate([u[:1], inner, u[-1:]])
    if u[-1] < u[0]:
        cell, ends = cell[::-1], ends[::-1]
    ends = np.maximum.accumulate(ends)  # where the loss is flat, rounding may put two knots in the wrong order
    return cell, ends[:-1], ends[1:]


def _sought(pair: Pair, coarse: Floats, loss: Floats, knots: Floats, near: float) -> Floats:
    """Outcomes at which an increasing loss, known at ``coarse``, is at each knot."""
    place = np.clip(np.searchsorted(loss, knots), 1, len(loss) - 1)
    below, above = coarse[place - 1].copy(), coarse[place].copy()
    gap = loss[place] - loss[place - 1]
    share = np.where(gap > 0, (knots - loss[place - 1]) / np.where(gap > 0, gap, 1), 0.5)
    u = below + share * (above - below)
    todo = np.arange(len(u))
    met = near + ROUNDING * np.abs(knots)
    for _ in range(60):  # Newton, kept inside its bracket by bisection
        value = pair.loss(u[todo]) - knots[todo]
        open_ = np.abs(value) > met[todo]
        todo, value = todo[open_], value[open_]
        if not len(todo):
            break
        at = u[todo]
        under = value <= 0
        below[todo[under]], above[todo[~under]] = at[under], at[~under]
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = at - value / (pair.first.log_ratio(at, slope=True) - pair.second.log_ratio(at, slope=True))
        inside = (newton - below[todo]) * (newton - above[todo]) < 0
        u[todo] = np.where(inside, newton, (below[todo] + above[todo]) / 2)
    return u


def _split(pair: Pair, knot: Floats, width: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Mass of each piece under the first law, split between the knots of its cell keeping the second law's mass.

    ``knot`` and ``width`` are the lower knot and the width of the cell of each piece. Also how far the split moves the
    loss up and down (``lift`` and ``sink``).
    """
    sharpest = max(10.0, float(np.abs(pair.first.means).max()), float(np.abs(pair.second.means).max()))
    narrow = (high - low) * sharpest < 1
    if narrow.all():
        return _split_narrow(pair, knot, width, low, high)
    shares = np.empty((4, len(low)))
    shares[:, narrow] = _split_narrow(pair, knot[narrow], width[narrow], low[narrow], high[narrow])
    wide = ~narrow
    shares[:, wide] = _split_wide(pair, knot[wide], width[wide], low[wide], high[wide])
    return shares[0], shares[1], shares[2], shares[3]


def _split_narrow(
    pair: Pair, knot: Floats, width: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Narrow pieces: five-point Gauss–Legendre, error below 1e-12 here, and no difference of nearly equal numbers."""
    half = (high - low) / 2
    u = (high + low) / 2 + np.multiply.outer(_NODES, half)
    log_first = pair.first.log_ratio(u)
    loss = log_first - pair.second.log_ratio(u)
    mass = np.exp(log_first - 0.5 * u * u) * np.multiply.outer(_WEIGHTS / math.sqrt(2 * math.pi), half)
    offset = np.minimum(np.maximum(loss - knot, 0.0), width)
    up = mass * (np.expm1(-offset) / np.expm1(-width))
    down = mass - up
    return down.sum(axis=0), up.sum(axis=0), (up * (width - offset)).sum(axis=0), (down * offset).sum(axis=0)


def _split_wide(
    pair: Pair, knot: Floats, width: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Wide pieces: from the distribution functions; s(1−s)h is concave, so the lift is at most that of the mean."""
    log_mass = pair.first.log_mass(low, high)
    ratio = np.exp(np.minimum(knot + pair.second.log_mass(low, high) - log_mass, 0.0))
    first = np.exp(log_mass)
    rise = np.minimum(np.maximum(first * (1 - ratio) / -np.expm1(-width), 0.0), first)
    spread = np.divide(rise * (first - rise), first, out=np.zeros_like(first), where=first > 0)
    with np.errstate(over="ignore", invalid="ignore"):  # a cell too wide for e^w lifts without limit, if at all
        lift = np.where(spread > 0, spread * width * np.exp(width), 0.0)
    return first - rise, rise, lift, np.maximum(lift - first * width * width / 8, 0.0)
