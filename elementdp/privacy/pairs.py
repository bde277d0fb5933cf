"""Pairs of Gaussian mixtures on the line, and their privacy loss cut into cells."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom

from elementdp.privacy.curves import Floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


@dataclass(frozen=True)
class Mixture:
    """Σ weight·N(mean, 1)."""

    weights: Floats
    means: Floats

    def log_ratio(self, u: Floats) -> Floats:
        """log of the density over that of N(0, 1); relative accuracy also where it is nearly zero."""
        powers = np.multiply.outer(self.means, u) - 0.5 * (self.means**2)[:, None]
        scale = np.maximum(powers.max(axis=0), 0.0)
        safe = np.einsum("i,ij->j", self.weights, np.exp(powers - scale))
        with np.errstate(divide="ignore"):
            large = scale + np.log(safe)
        small = np.log1p(np.einsum("i,ij->j", self.weights, np.expm1(np.minimum(powers, 1.0))))
        return np.where(scale < 1, small, large)

    def mass(self, low: Floats, high: Floats) -> Floats:
        """Probability between ``low`` and ``high``, from whichever tail is nearer."""
        total = np.zeros_like(low)
        for weight, mean in zip(self.weights, self.means, strict=True):
            a, b = low - mean, high - mean
            right = a > 0
            total += weight * (ndtr(np.where(right, -a, b)) - ndtr(np.where(right, -b, a)))
        return total


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
        at_zero = [float(mix.weights[mix.means == 0].sum()) for mix in (self.first, self.second)]
        return math.log(at_zero[0] / at_zero[1])

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
    """The privacy loss of a pair on the lattice origin + hℤ: cell i lies between knots ``start + i`` and the next.

    ``down`` and ``rise`` hold the mass under the first law of each cell, split between its two knots so that the mass
    under the *second* law is kept as well. ``atom`` is mass exactly at knot 0; ``outside`` bounds the mass left out.
    """

    origin: float
    h: float
    start: int
    down: Floats
    rise: Floats
    outside: float
    atom: float = 0.0

    @property
    def knots(self) -> Floats:
        """The losses between which the cells lie."""
        return self.origin + self.h * (self.start + np.arange(len(self.down) + 1))


def cells(pair: Pair, h: float, reach: float, *, origin: float = 0.0, above: float = -math.inf) -> Cells:
    """The loss of ``pair`` above ``above`` in cells of width ``h``, within ``reach`` of a mean of the first law."""
    index: list[Floats] = []
    edges_low: list[Floats] = []
    edges_high: list[Floats] = []
    for low, high in windows(pair, reach):
        for left, right in _monotone(pair, low, high):
            cut = _cuts(pair, left, right, h, origin)
            middle = pair.loss((cut[1:] + cut[:-1]) / 2)
            inside = (cut[1:] > cut[:-1]) & (middle > above)
            index.append(np.floor((middle - origin) / h)[inside])
            edges_low.append(cut[:-1][inside])
            edges_high.append(cut[1:][inside])
    cell = np.concatenate(index).astype(np.int64)
    down, rise = _split(pair, cell, np.concatenate(edges_low), np.concatenate(edges_high), h, origin)
    start = int(cell.min())
    size = int(cell.max()) - start + 1
    down, rise = np.bincount(cell - start, down, size), np.bincount(cell - start, rise, size)
    return Cells(origin, h, start, down, rise, 2 * float(ndtr(-reach)))


def symmetrised(half: Cells) -> Cells:
    """From the cells above 0 of (A, B): the pair whose curve is the larger of those of (A, B) and (B, A), everywhere.

    Below 0 it has the exchanged pair's loss, a mass e^{-x}·m at −x for each mass m at x, and what is left is at 0.
    """
    knots = half.knots
    mirror_rise = (half.down * np.exp(-knots[:-1]))[::-1]
    mirror_down = (half.rise * np.exp(-knots[1:]))[::-1]
    hole = np.zeros(2 * half.start)
    down = np.concatenate([mirror_down, hole, half.down])
    rise = np.concatenate([mirror_rise, hole, half.rise])
    atom = max(0.0, 1.0 - float(down.sum()) - float(rise.sum()))
    start = -(half.start + len(half.down))
    return Cells(half.origin, half.h, start, down, rise, half.outside, atom)


def mixed(parts: list[tuple[float, Cells]]) -> Cells:
    """The loss when one of several pairs is drawn with the given weights and shown; all on the same lattice."""
    start = min(part.start for _, part in parts)
    size = max(part.start + len(part.down) for _, part in parts) - start
    down, rise = np.zeros(size), np.zeros(size)
    for weight, part in parts:
        place = slice(part.start - start, part.start - start + len(part.down))
        down[place] += weight * part.down
        rise[place] += weight * part.rise
    first = parts[0][1]
    outside = sum(weight * part.outside for weight, part in parts) + max(0.0, 1 - sum(weight for weight, _ in parts))
    return Cells(first.origin, first.h, start, down, rise, outside)


def windows(pair: Pair, reach: float) -> list[tuple[float, float]]:
    """Where the first law has its mass: within ``reach`` of its means, overlapping intervals joined."""
    return _merge([(mean - reach, mean + reach) for mean in np.unique(pair.first.means)])


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
    u = np.linspace(low, high, 2049)
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


def _cuts(pair: Pair, left: float, right: float, h: float, origin: float) -> Floats:
    """Outcomes between ``left`` and ``right`` at which the (monotone) loss crosses a knot, ends included, in order."""
    coarse = np.linspace(left, right, 2049)
    loss = pair.loss(coarse)
    rising = loss[-1] >= loss[0]
    if not rising:
        coarse, loss = coarse[::-1], loss[::-1]
    loss = np.maximum.accumulate(loss)
    knots = origin + h * np.arange(math.ceil((loss[0] - origin) / h), math.floor((loss[-1] - origin) / h) + 1)
    place = np.clip(np.searchsorted(loss, knots), 1, len(loss) - 1)
    below, above = coarse[place - 1].copy(), coarse[place].copy()
    gap = loss[place] - loss[place - 1]
    share = np.where(gap > 0, (knots - loss[place - 1]) / np.where(gap > 0, gap, 1), 0.5)
    u = below + share * (above - below)
    step = 1e-6
    for _ in range(8):  # Newton, kept inside its bracket by bisection
        value = pair.loss(u) - knots
        below, above = np.where(value <= 0, u, below), np.where(value > 0, u, above)
        slope = (pair.loss(u + step) - pair.loss(u - step)) / (2 * step)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = u - value / slope
        inside = (newton - below) * (newton - above) <= 0
        update = np.where(inside, newton, (below + above) / 2)
        if np.all(np.abs(update - u) <= 1e-13 * (1 + np.abs(u))):
            u = update
            break
        u = update
    return np.sort(np.concatenate([[left, right], u]))


def _split(pair: Pair, cell: np.ndarray, low: Floats, high: Floats, h: float, origin: float) -> tuple[Floats, Floats]:
    """Mass of each piece under the first law, split between the knots of its cell keeping the second law's mass."""
    down, rise = np.empty_like(low), np.empty_like(low)
    knot = origin + h * cell
    sharpest = max(10.0, float(np.abs(pair.first.means).max()), float(np.abs(pair.second.means).max()))
    narrow = (high - low) * sharpest < 1
    # Narrow pieces: five-point Gauss–Legendre, error below 1e-12 here, and no difference of nearly equal numbers.
    middle, half = (high[narrow] + low[narrow]) / 2, (high[narrow] - low[narrow]) / 2
    u = middle[:, None] + half[:, None] * _NODES
    log_first = pair.first.log_ratio(u.ravel()).reshape(u.shape)
    loss = log_first - pair.second.log_ratio(u.ravel()).reshape(u.shape)
    mass = half[:, None] * _WEIGHTS * np.exp(-0.5 * u * u + log_first) / math.sqrt(2 * math.pi)
    offset = np.clip(loss - knot[narrow][:, None], 0.0, h)
    share = np.expm1(-offset) / np.expm1(-h)
    rise[narrow] = np.sum(mass * share, axis=1)
    down[narrow] = np.sum(mass * (1 - share), axis=1)
    # Wide pieces: from the two distribution functions.
    wide = ~narrow
    first = pair.first.mass(low[wide], high[wide])
    second = pair.second.mass(low[wide], high[wide])
    lifted = np.clip((first - np.exp(knot[wide]) * second) / -np.expm1(-h), 0.0, first)
    rise[wide], down[wide] = lifted, first - lifted
    return down, rise
