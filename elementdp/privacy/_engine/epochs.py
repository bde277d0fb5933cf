"""The curve of one epoch of random allocation, bracketed, and its composition (theorem in ``privacy.allocation``).

In units of σ, let z be normal, L = e^{az − a²/2} and L′ = e^{−az − a²/2} with a = 1/σ the likelihood ratios of ±1 to 0.
An epoch of B steps, of which the first r were made, has the curve H_γ = E(Σ_{i≤r} (L_i − γL′_i) + (B−r)(1−γ))₊ / B
for replacement, E(Σ_{i≤r} L_i + B − r − γB)₊ / B for removal, and addition exchanges the two samples of removal.

**Above.** Let W = L − γL′ (or L). Spread each value of W over the two nearest multiples of h so that its mean stays:
the positive part is convex, so H rises, and by the second order in h only. The sum of r such values is a Fourier
transform. W may be very large: values above a bound (*big* ones) are kept out of the transform. One big value is added
to the sum of the others without a lattice, chords joining the convex result; two or more add at most their chance under
the first law, since E[ΣL; A] = Σ_i P_i(A). Values below a bound are raised to it. H at knots e^x, joined by chords, is
the curve of a law on a lattice of losses, which E epochs compose.

The lower bound is that of ``statistic``, the composition that of ``allocated``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtr, ndtri

from elementdp.privacy._engine.lattice import Lattice, to_ends
from elementdp.privacy.curves import Floats

_EPS = float(np.finfo(float).eps)
_FOLDED = 46.0  # minus log of what the window of a transform may fold back
_FINENESS = 12.0  # multiples of h to a deviation of W
_ROOM = 200.0  # deviations of the sum, in multiples of h and fineness, that a transform may hold
_DEEPEST = 1 << 16  # multiples of h below zero that are told apart, over √r
_KNOTS = 8.0  # knots to a deviation of the loss
_WIDEST = 0.1  # distance of knots
_GROWTH = 25  # a knot's index over the distance to the next
_MOST_KNOTS = 201
_LARGEST = 40.0  # loss of one epoch that is looked at
_LONGEST = 1 << 20  # points of a transform
_SLACK = 1e-9  # relative rounding of masses, generously


@dataclass(frozen=True)
class Epoch:
    """The first ``made`` of ``batches`` steps, the one changed element in one of the ``batches``, with noise σ."""

    sigma: float
    batches: int
    made: int
    replaced: bool

    @property
    def a(self) -> float:
        """The distance between an element that is there and none, in deviations."""
        return 1 / self.sigma

    @property
    def spread(self) -> float:
        """About the deviation of the loss, where it is small."""
        square = self.a * self.a
        if square > 300:
            return math.inf
        return math.sqrt((4 * math.sinh(square) if self.replaced else math.expm1(square)) * self.made) / self.batches


@dataclass(frozen=True)
class _Sum:
    """A law at the multiples h·(first + k) of h, each mass known within ``error``, but for a trifle outside."""

    h: float
    first: int
    mass: Floats
    error: float

    @classmethod
    def both(cls, index: NDArray[np.int64], mass: Floats, count: int, h: float) -> "tuple[_Sum, _Sum] | None":
        """Sums of ``count`` independent values h·index, and of one less; None if they take too long."""
        values = np.asarray(h * index, dtype=float)
        low, high = -_tail(-values, mass, count), _tail(values, mass, count)
        size = next_fast_len(int((high - low) / h) + 3, real=True)
        if size > _LONGEST:
            return None
        first = math.floor(low / h)
        spectrum = rfft(np.bincount(index % size, mass, size))
        less = spectrum ** (count - 1)
        one, two = (cls._from(power, size, first, h, count) for power in (less * spectrum, less))
        return one, two

    @classmethod
    def _from(cls, power: NDArray[np.complex128], size: int, first: int, h: float, count: int) -> "_Sum":
        strength = float(np.abs(power).sum()) * 2 / size * 8 * math.log2(size)
        return cls(h, first, np.roll(irfft(power, size), -(first % size)), _EPS * (1 + count) * strength)

    def over(self, thresholds: Floats) -> Floats:
        """An upper bound of E(S − c)₊ for each threshold c."""
        size = len(self.mass)
        thresholds = thresholds - self.h * self.first  # from the lowest value on, lest large sums take the digits
        values = self.h * np.arange(size)
        masses = np.append(np.cumsum(self.mass[::-1])[::-1], 0.0)
        means = np.append(np.cumsum((self.mass * values)[::-1])[::-1], 0.0)
        place = np.clip(np.ceil(thresholds / self.h), 0, size).astype(np.int64)
        left = (size - place).astype(float)
        before = np.maximum(-thresholds, 0.0)
        rounding = self.error * left * (left * self.h + before) + 3 * math.exp(-_FOLDED) * (size * self.h + before)
        return np.asarray(np.maximum(means[place] - thresholds * masses[place], 0.0) + rounding)

    def mirrored(self) -> "_Sum":
        """The law of the sum with its sign changed."""
        return _Sum(self.h, 1 - self.first - len(self.mass), self.mass[::-1], self.error)


def _tail(values: Floats, mass: Floats, count: int) -> float:
    """What sums of ``count`` values, and of one less, exceed with chance e^{−46} at most (Chernoff's bound)."""
    mean = float(mass @ values) / float(mass.sum())
    deviation = math.sqrt(count * float(mass @ (values - mean) ** 2)) + 1e-300
    best = [math.inf, math.inf]
    for tilt in np.geomspace(0.03, 15, 9) / deviation:
        powers = tilt * (values - mean)
        top = float(powers.max())
        log = top + math.log(float(mass @ np.exp(powers - top)))
        for which, number in enumerate((count, count - 1)):
            best[which] = min(best[which], mean * number + (max(number * log, 0.0) + _FOLDED) / tilt)
    return max(best)


def normal(edges: Floats, mean: float) -> Floats:
    """The mass of N(mean, 1) between consecutive edges, without cancellation in either tail."""
    low, high = edges[:-1] - mean, edges[1:] - mean
    return np.asarray(np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)), dtype=float)


@dataclass(frozen=True)
class _Values:
    """The values W = L − gain·L′ of one step, spread over a lattice, and the big ones apart."""

    epoch: Epoch
    gain: float  # γ, or 0 for W = L
    trifle: float

    def outcome(self, value: Floats) -> Floats:
        """The z at which W is ``value``."""
        a = self.epoch.a
        scaled = value * math.exp(a * a / 2)
        with np.errstate(divide="ignore"):
            if not self.gain:
                return np.asarray(np.log(np.maximum(scaled, 0.0)) / a)
            root = np.hypot(scaled, 2 * math.sqrt(self.gain))
            big = np.log((np.abs(scaled) + root) / 2)
            return np.asarray(np.where(scaled > 0, big, math.log(self.gain) - big) / a)

    def start(self, value: float) -> float:
        """The same for one value."""
        return float(self.outcome(np.array([value]))[0])

    def value(self, z: float) -> float:
        """W at z."""
        a = self.epoch.a
        return math.exp(a * z - a * a / 2) - self.gain * math.exp(-a * z - a * a / 2)

    @property
    def far(self) -> float:
        """The z beyond which even the first law has next to nothing."""
        return self.epoch.a - float(ndtri(self.trifle))

    @property
    def big(self) -> float:
        """The z from which on a value is big: two such are a trifle under the first law."""
        a, others = self.epoch.a, self.epoch.made
        low, high = 0.0, self.far
        for _ in range(40):
            z = (low + high) / 2
            low, high = (z, high) if _two(ndtr(a - z), others * ndtr(-z)) > self.trifle else (low, z)
        return high

    def spread(self, edges: Floats) -> tuple[Floats, Floats]:
        """The mass of each cell between values ``edges`` that goes to its lower and to its upper end."""
        z, a = self.outcome(edges), self.epoch.a
        mass, mean = normal(z, 0.0), normal(z, a)
        if self.gain:
            mean = mean - self.gain * normal(z, -a)
        upper = np.clip((mean - edges[:-1] * mass) / np.diff(edges), 0.0, mass)
        return mass - upper, upper

    def over(self, thresholds: Floats) -> Floats:
        """An upper bound of E(Σ W − c)₊ for each threshold c; infinite if it takes too long."""
        a, made = self.epoch.a, self.epoch.made
        index, mass, h = self.lattice()
        sums = _Sum.both(index, mass, made, h)
        if sums is None:
            return np.full(len(thresholds), math.inf)
        start = self.start(h * float(index[-1]))
        edges = np.array([self.value(z) for z in np.linspace(start, max(self.far, start + 1), 64)])
        edges[0] = h * float(index[-1])
        lower, upper = self.spread(edges)
        one = sums[1].over((thresholds[:, None] - edges).ravel()).reshape(len(thresholds), -1) @ to_ends(lower, upper)
        # Beyond ``far``: (s + W)₊ ≤ s₊ + L for a big W, and the sum s of the others is independent of it.
        beyond = sums[1].over(thresholds) * ndtr(-self.far) + ndtr(a - self.far)
        rest = beyond + _two(ndtr(a - start), made * ndtr(-start))
        return np.asarray(sums[0].over(thresholds) + made * (one + rest))

    def under(self, thresholds: Floats) -> Floats:
        """An upper bound of E(c − Σ W)₊ for each threshold c, for values W = L, which are never below zero.

        Big values are lowered to the top of the lattice, which can only raise the expectation. Values below its lowest
        point b are raised to b, which lowers the expectation by at most b for each of them: that much is added.
        """
        index, mass, h = self.lattice()
        mass[-1] += float(ndtr(-self.start(h * float(index[-1]))))
        sums = _Sum.both(index, mass, self.epoch.made, h)
        if sums is None:
            return np.full(len(thresholds), math.inf)
        lowest = h * float(index[0])
        raised = self.epoch.made * lowest * float(ndtr(self.start(lowest))) if lowest else 0.0
        return np.asarray(sums[0].mirrored().over(-thresholds) + raised)

    def lattice(self) -> tuple[NDArray[np.int64], Floats, float]:
        """Indices, masses and unit h of W without its big values; values below the lowest index are raised to it."""
        square = self.epoch.a**2
        deviation = math.sqrt((1 + self.gain**2) * math.expm1(square) - 2 * self.gain * math.expm1(-square))
        root = math.sqrt(self.epoch.made)
        # For a large γ nearly all of it is that of γL′; the values of L need a finer lattice, if there is room for it.
        share = max(2 * math.sqrt(math.expm1(square)) / deviation, root / _ROOM) if self.gain else 1 / _FINENESS
        h = min(1.0, share) * deviation / _FINENESS
        top = max(1, math.ceil(self.value(self.big) / h))
        lowest = max(top, 720, min(math.ceil(self.value(self.far) / h), round(_DEEPEST / root)))
        bottom = max(math.floor(self.value(-self.far) / h), -lowest)
        index = np.arange(bottom, min(top, bottom + _LONGEST) + 1)
        mass = to_ends(*self.spread(np.asarray(h * index, dtype=float)))
        mass[0] += float(ndtr(self.start(h * bottom)))
        return index, mass, h


def _two(here: float, elsewhere: float) -> float:
    """A bound on the chance of two big values: one here with chance ``here``, and ``elsewhere`` expected."""
    return float(here * elsewhere + elsewhere * elsewhere / 2)


def _curves(epoch: Epoch, trifle: float) -> list[Callable[[Floats], Floats]]:
    """Upper bounds of H at each γ ≥ 1: of replacement, or of removal and of addition."""
    size, rest = epoch.batches, epoch.batches - epoch.made
    ratios = _Values(epoch, 0.0, trifle)

    def replaced(gammas: Floats) -> Floats:
        each = [_Values(epoch, g, trifle).over(np.array([rest * (g - 1)]))[0] for g in gammas.tolist()]
        return np.array(each) / size

    if epoch.replaced:
        return [replaced]
    return [
        lambda gammas: ratios.over(size * gammas - rest) / size,
        lambda gammas: ratios.under(size / gammas - rest) * gammas / size,
    ]


def uppers(epoch: Epoch, trifle: float) -> list[Lattice]:
    """Laws on a lattice whose worse curve lies above that of ``epoch``; none if they take too long."""
    if not math.isfinite(epoch.spread):
        return []
    h = min(epoch.spread / _KNOTS, _WIDEST)
    together = 8 if epoch.replaced else _MOST_KNOTS  # one transform answers for all γ unless it is part of W
    found = [_at_knots(curve, h, trifle, together) for curve in _curves(epoch, trifle)]
    if not all(map(len, found)):
        return []
    if epoch.replaced:  # exchanging the samples changes nothing
        found *= 2
    length = max(map(len, found))
    high, other = (np.append(curve, np.full(length - len(curve), curve[-1])) for curve in found)
    law = _joined(h, high, other)
    return [law] if epoch.replaced else [law, _joined(h, other, high)]


def _knots(count: int) -> NDArray[np.int64]:
    """The first knots at multiples of h from 0 on, further apart the larger they are."""
    found = [0]
    while len(found) < count:
        found.append(found[-1] + max(1, found[-1] // _GROWTH))
    return np.array(found)


def _at_knots(curve: Callable[[Floats], Floats], h: float, trifle: float, together: int) -> Floats:
    """The values of a curve at the knots, so many at a time, down to a trifle; none if that takes too many."""
    losses = h * _knots(_MOST_KNOTS)
    losses = losses[losses < _LARGEST]
    values = np.zeros(0)
    while len(values) < len(losses):
        found = curve(np.exp(losses[len(values) : len(values) + together]))
        if not np.isfinite(found).all():
            break
        values = np.append(values, found)
        if (enough := np.flatnonzero(values <= 5 * trifle)).size:
            return np.asarray(np.minimum.accumulate(values[: enough[0] + 1]) * (1 + _SLACK))
    return np.zeros(0)


def _joined(h: float, high: Floats, exchanged: Floats) -> Lattice:
    """The law whose curve joins ``high`` at the knots and, below 0, ``exchanged``, that of the exchanged pair."""
    index = _knots(len(high))
    growth = np.exp(h * index)
    gammas = np.concatenate([1 / growth[:0:-1], growth])
    curve = np.concatenate([1 - (1 - exchanged[:0:-1]) / growth[:0:-1], high])
    slopes = np.concatenate([[(curve[0] - 1) / gammas[0]], np.diff(curve) / np.diff(gammas), [0.0]])
    # A mass below zero is rounding; without it the curve is the higher.
    mass = np.maximum(np.diff(slopes), 0.0) * gammas
    return Lattice(0.0, h, np.concatenate([-index[:0:-1], index]), mass, float(curve[-1]))
