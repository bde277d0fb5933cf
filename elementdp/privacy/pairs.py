"""Pairs of Gaussian mixtures on the line, and their privacy loss cut into cells."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr
from scipy.stats import binom

from elementdp.privacy.curves import Floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
_OVERFLOW = 600.0
_PROBES = 513  # outcomes at which a loss is looked at before its knots are sought
CUT = 1e-9  # how well a knot is met, in cells
ROUNDING = 1e-15  # how well, relative to its loss
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Mixture:
    """Σ weight·N(mean, 1)."""

    weights: Floats
    means: Floats

    @property
    def at_zero(self) -> float:
        """The weight of the components at zero."""
        return float(self.weights[self.means == 0].sum())

    def log_ratio(self, u: Floats, slope: bool = False) -> Floats:
        """log of the density over that of N(0, 1), or its derivative; accurate also where it is nearly zero."""
        excess, climb, top = np.zeros_like(u), np.zeros_like(u), np.zeros_like(u)
        for weight, mean in zip(self.weights, self.means, strict=True):
            if mean != 0:
                power = mean * u - 0.5 * mean * mean
                top = np.maximum(top, power)
                grown = np.expm1(np.minimum(power, _OVERFLOW))
                excess += weight * grown
                if slope:
                    climb += weight * mean * (grown + 1)
        with np.errstate(over="ignore", divide="ignore"):
            result = climb / (1 + excess) if slope else np.log1p(excess)
        huge = top > _OVERFLOW
        if np.any(huge):
            powers = np.multiply.outer(self.means, u[huge]) - 0.5 * (self.means**2)[:, None]
            terms = self.weights[:, None] * np.exp(powers - top[huge])
            total = terms.sum(axis=0)
            result[huge] = (self.means[:, None] * terms).sum(axis=0) / total if slope else top[huge] + np.log(total)
        return result

    def mass(self, low: Floats, high: Floats) -> Floats:
        """Probability between ``low`` and ``high``, from whichever tail is nearer."""
        total = np.zeros_like(low)
        for weight, mean in zip(self.weights, self.means, strict=True):
            a, b = low - mean, high - mean
            right = a > 0
            total += weight * (ndtr(np.where(right, -a, b)) - ndtr(np.where(right, -b, a)))
        return total

    def log_mass(self, low: Floats, high: Floats) -> Floats:
        """log of :meth:`mass`, also where it underflows."""
        logs = [np.full_like(low, -np.inf)]
        for weight, mean in zip(self.weights, self.means, strict=True):
            if weight == 0:
                continue
            a, b = low - mean, high - mean
            right = a > 0
            a, b = np.where(right, -b, a), np.where(right, -a, b)
            top = log_ndtr(b)
            with np.errstate(divide="ignore", invalid="ignore"):
                logs.append(math.log(weight) + top + np.log1p(-np.exp(np.minimum(log_ndtr(a) - top, 0.0))))
        return np.asarray(np.logaddexp.reduce(logs, axis=0), dtype=float)


@dataclass(frozen=True)
class Pair:
    """Two mixtures with noise 1, the second to be told from the first by the loss L = log(first/second)."""

    first: Mixture
    second: Mixture

    def loss(self, u: Floats) -> Floats:
        """The privacy loss at outcome ``u``."""
        return self.first.log_ratio(u) - self.second.log_ratio(u)

    @property
    def plateau(self) -> float:
        """The loss where only the components at zero count: with little noise much mass gathers there."""
        if min(self.first.means.min(), self.second.means.min()) < 0:
            return 0.0
        return math.log(self.first.at_zero / self.second.at_zero)

    @property
    def common(self) -> float:
        """A part the two have in common: their components at zero."""
        return min(self.first.at_zero, self.second.at_zero)

    def exchanged(self) -> "Pair":
        """The same two laws, the other way round."""
        return Pair(self.second, self.first)


def two_point(q: float, swing: float, change: float, sigma: float) -> Pair:
    """(1−q)N(0)+qN(s) against (1−q)N(0)+qN(s−c), the pair (A, B) of :mod:`elementdp.privacy.domination`."""
    weights = np.array([1 - q, q])
    return Pair(
        Mixture(weights, np.array([0.0, swing / sigma])), Mixture(weights, np.array([0.0, (swing - change) / sigma]))
    )


def binomial(q: float, size: int, sigma: float, *, replaced: bool) -> Pair:
    """All of one user's ``size`` vectors at +1 (against −1, or against none) under pair sampling."""
    count = np.arange(size + 1)
    weights = binom.pmf(count, size, q)
    keep = weights > 1e-30
    first = Mixture(weights[keep], count[keep] / sigma)
    return Pair(first, Mixture(weights[keep], -count[keep] / sigma) if replaced else Mixture(np.ones(1), np.zeros(1)))


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

    Only losses above ``above`` and outcomes right of ``right_of`` are cut.
    """
    pieces = _pieces(pair, reach, right_of)
    ends = pair.loss(np.array(pieces).ravel())
    index = grid.covering(float(ends.min()), float(ends.max()))
    knots = np.asarray(grid.origin + grid.h * index, dtype=float)
    place: list[Whole] = []
    edges_low: list[Floats] = []
    edges_high: list[Floats] = []
    for left, right in pieces:
        cut = _cuts(pair, left, right, knots, CUT * grid.h)
        middle = pair.loss((cut[1:] + cut[:-1]) / 2)
        inside = (cut[1:] > cut[:-1]) & (middle > above)
        place.append(np.clip(np.searchsorted(knots, middle[inside], side="right") - 1, 0, len(knots) - 2))
        edges_low.append(cut[:-1][inside])
        edges_high.append(cut[1:][inside])
    cell = np.concatenate(place)
    shares = _split(pair, knots[cell], np.diff(knots)[cell], np.concatenate(edges_low), np.concatenate(edges_high))
    down, rise, lift, sink = (np.bincount(cell, share, len(index) - 1).astype(float) for share in shares)
    mirrored = np.array_equal(pair.first.weights, pair.second.weights) and np.array_equal(
        pair.first.means, -pair.second.means
    )
    return Cells(grid.origin, grid.h, index, down, rise, lift, sink, 2 * float(ndtr(-reach)), balanced=mirrored)


def symmetrised(half: Cells) -> Cells:
    """From the cells above 0 of (A, B): the pair whose curve is the larger of those of (A, B) and (B, A), everywhere.

    Below 0 it has the exchanged pair's loss, a mass e^{-x}·m at −x for each mass m at x, and what is left is at 0.
    """
    zero = half.zero
    knots, half_down, half_rise = half.knots[zero:], half.down[zero:], half.rise[zero:]
    mirror_rise = (half_down * np.exp(-knots[:-1]))[::-1]
    mirror_down = (half_rise * np.exp(-knots[1:]))[::-1]
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


def mixed(parts: list[tuple[float, Cells]]) -> Cells:
    """The loss when one of several pairs is drawn with the given weights and shown; all on the same lattice."""
    first = parts[0][1]
    index = np.unique(np.concatenate([part.index for _, part in parts]))
    sums = np.zeros((4, len(index) - 1))
    for weight, part in parts:
        start = int(np.searchsorted(index, part.index[0]))
        shares = np.array([part.down, part.rise, part.lift, part.sink])
        sums[:, start : start + len(part.down)] += weight * shares
    outside = sum(weight * part.outside for weight, part in parts) + max(0.0, 1 - sum(weight for weight, _ in parts))
    balanced = all(part.balanced for _, part in parts)
    return Cells(first.origin, first.h, index, sums[0], sums[1], sums[2], sums[3], outside, balanced=balanced)


def windows(pair: Pair, reach: float) -> list[tuple[float, float]]:
    """Where the first law has its mass: within ``reach`` of its means, overlapping intervals joined."""
    return _merge([(mean - reach, mean + reach) for mean in np.unique(pair.first.means)])


def extent(pair: Pair, reach: float) -> tuple[float, float]:
    """The least and the largest loss within ``reach`` of a mean of the first law."""
    ends = pair.loss(np.array(_pieces(pair, reach)).ravel())
    return float(ends.min()), float(ends.max())


def _pieces(pair: Pair, reach: float, right_of: float = -math.inf) -> list[tuple[float, float]]:
    """The windows, right of ``right_of``, split where the loss turns."""
    return [
        piece
        for low, high in windows(pair, reach)
        if high > right_of
        for piece in _monotone(pair, max(low, right_of), high)
    ]


def _merge(intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged = [intervals[0]]
    for low, high in intervals[1:]:
        if low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _monotone(pair: Pair, low: float, high: float) -> list[tuple[float, float]]:
    """Split [low, high] where the loss turns; for these pairs it turns at most once (Descartes' rule of signs)."""
    u = np.linspace(low, high, _PROBES)
    loss = pair.loss(u)
    sign, turn = 1.0, int(np.argmin(loss))
    if turn in (0, len(u) - 1):
        sign, turn = -1.0, int(np.argmax(loss))
    if turn in (0, len(u) - 1):
        return [(low, high)]
    left, right = u[turn - 1], u[turn + 1]
    for _ in range(60):
        third = (right - left) / 3
        probe = sign * pair.loss(np.array([left + third, right - third]))
        left, right = (left + third, right) if probe[0] > probe[1] else (left, right - third)
    return [(low, (left + right) / 2), ((left + right) / 2, high)]


def _cuts(pair: Pair, left: float, right: float, knots: Floats, near: float) -> Floats:
    """Outcomes between ``left`` and ``right`` at which the (monotone) loss crosses a knot, ends included, in order."""
    coarse = np.linspace(left, right, _PROBES)
    loss = pair.loss(coarse)
    if loss[-1] < loss[0]:
        coarse, loss = coarse[::-1], loss[::-1]
    loss = np.maximum.accumulate(loss)
    knots = knots[np.searchsorted(knots, loss[0]) : np.searchsorted(knots, loss[-1], side="right")]
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
    return np.sort(np.concatenate([[left, right], u]))


def _split(pair: Pair, knot: Floats, width: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Mass of each piece under the first law, split between the knots of its cell keeping the second law's mass.

    ``knot`` and ``width`` are the lower knot and the width of the cell of each piece. Also how far the split moves the
    loss up and down (``lift`` and ``sink``).
    """
    down, rise, lift, sink = (np.empty_like(low) for _ in range(4))
    sharpest = max(10.0, float(np.abs(pair.first.means).max()), float(np.abs(pair.second.means).max()))
    narrow = (high - low) * sharpest < 1
    # Narrow pieces: five-point Gauss–Legendre, error below 1e-12 here, and no difference of nearly equal numbers.
    middle, half = (high[narrow] + low[narrow]) / 2, (high[narrow] - low[narrow]) / 2
    u = middle[:, None] + half[:, None] * _NODES
    log_first = pair.first.log_ratio(u.ravel()).reshape(u.shape)
    loss = log_first - pair.second.log_ratio(u.ravel()).reshape(u.shape)
    mass = half[:, None] * _WEIGHTS * np.exp(-0.5 * u * u + log_first) / math.sqrt(2 * math.pi)
    h = width[narrow][:, None]
    offset = np.clip(loss - knot[narrow][:, None], 0.0, h)
    share = np.expm1(-offset) / np.expm1(-h)
    up = mass * share
    rise[narrow] = np.sum(up, axis=1)
    down[narrow] = np.sum(mass - up, axis=1)
    lift[narrow] = np.sum(up * (h - offset), axis=1)
    sink[narrow] = np.sum((mass - up) * offset, axis=1)
    # Wide pieces: from the two distribution functions; s(1−s)h is concave, so the lift is at most that of the mean.
    wide = ~narrow
    h = width[wide]
    log_mass = pair.first.log_mass(low[wide], high[wide])
    ratio = np.exp(np.minimum(knot[wide] + pair.second.log_mass(low[wide], high[wide]) - log_mass, 0.0))
    first = np.exp(log_mass)
    lifted = np.clip(first * (1 - ratio) / -np.expm1(-h), 0.0, first)
    rise[wide], down[wide] = lifted, first - lifted
    with np.errstate(divide="ignore", invalid="ignore"):
        lift[wide] = np.where(first > 0, lifted * (first - lifted) / first * h * np.exp(h), 0.0)
    sink[wide] = np.maximum(lift[wide] - first * h * h / 8, 0.0)
    return down, rise, lift, sink
