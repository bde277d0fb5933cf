"""Pairs of Gaussian mixtures on the line: their masses, the privacy loss, and where it turns."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtr

from elementdp.privacy.curves import Floats

_OVERFLOW = 600.0
LEAST_CHANCE = 1e-30  # of a number of shown coins that is not left out
_PROBES = np.linspace(0, 1, 513)  # where, from end to end, a loss is looked at before its knots are sought


@dataclass(frozen=True)
class UnitMixture:
    """Σ weight·N(mean, 1)."""

    weights: Floats
    means: Floats

    @property
    def at_zero(self) -> float:
        """The weight of the components at zero."""
        return float(self.weights[self.means == 0].sum())

    @cached_property
    def _parts(self) -> list[tuple[float, float]]:
        """Weights and means as plain numbers."""
        return [(w, m) for w, m in zip(self.weights.tolist(), self.means.tolist(), strict=True) if w > 0]

    def log_ratio(self, u: Floats, slope: bool = False) -> Floats:
        """log of the density over that of N(0, 1), or its derivative; accurate also where it is nearly zero."""
        excess, climb, top = np.zeros(u.shape), np.zeros(u.shape), 0.0
        for weight, mean in self._parts:
            if mean != 0:
                power = mean * u - 0.5 * mean * mean
                top = max(top, float(power.max(initial=0.0)))
                grown = np.expm1(power if top < _OVERFLOW else np.minimum(power, _OVERFLOW))
                excess += weight * grown
                if slope:
                    climb += weight * mean * (grown + 1)
        extreme = None
        if top > _OVERFLOW or float(excess.min(initial=0.0)) < -0.5:
            extreme = (excess < -0.5) | (excess > math.exp(_OVERFLOW / 2))
            excess[extreme] = 0.0
        result = climb / (1 + excess) if slope else np.log1p(excess)
        if extreme is not None:
            result[extreme] = self._extreme_log_ratio(u[extreme], slope)
        return result

    def _extreme_log_ratio(self, u: Floats, slope: bool) -> Floats:
        """The same where the ratio of the densities is far above or well below one: a sum of positive terms, scaled."""
        total, climb, top = np.zeros(u.shape), np.zeros(u.shape), np.full(u.shape, -np.inf)
        for _, mean in self._parts:
            top = np.maximum(top, mean * u - 0.5 * mean * mean)
        for weight, mean in self._parts:
            term = weight * np.exp(mean * u - 0.5 * mean * mean - top)
            total += term
            climb += mean * term
        return climb / total if slope else top + np.log(total)

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

    first: UnitMixture
    second: UnitMixture

    def loss(self, u: Floats) -> Floats:
        """The privacy loss at outcome ``u``."""
        return self.first.log_ratio(u) - self.second.log_ratio(u)

    @property
    def plateau(self) -> float:
        """The loss where only the components at zero count: with little noise much mass gathers there."""
        common = min(self.first.at_zero, self.second.at_zero)
        if common == 0 or min(self.first.means.min(), self.second.means.min()) < 0:
            return 0.0
        return math.log(self.first.at_zero / self.second.at_zero)

    @property
    def apart(self) -> float:
        """What is not at zero in one of the two: the rest they have in common. One minus that would lose a small q."""
        return max(float(part.weights[part.means != 0].sum()) for part in (self.first, self.second))

    @cached_property
    def mirrored(self) -> bool:
        """Whether exchanging the laws mirrors the line: the loss is then odd."""
        return np.array_equal(self.first.weights, self.second.weights) and np.array_equal(
            self.first.means, -self.second.means
        )

    @cached_property
    def _offer(self) -> float | None:
        """log of q·e^{−m²/2}/(1−q) if this is (1−q)N(0)+qN(m) against (1−q)N(0)+qN(−m), as printed."""
        if not self.mirrored or self.first.means.tolist()[:1] != [0.0] or len(self.first.means) != 2:
            return None
        (stay, go), mean = self.first.weights.tolist(), float(self.first.means[1])
        return math.log(go / stay) - mean * mean / 2 if stay > 0 and go > 0 and mean != 0 else None

    def outcome(self, loss: Floats) -> Floats | None:
        """The outcome at which the loss has the given values, where there is a closed form that does not overflow.

        For the printed pair with mean m, e^L = (1 + c·e^{mu})/(1 + c·e^{−mu}), a quadratic equation in e^{mu} with the
        solution m·u = L/2 + arsinh(sinh(L/2)/c).
        """
        if self._offer is None or not float(np.abs(loss).max(initial=0.0)) / 2 - self._offer < _OVERFLOW:
            return None
        half = loss / 2
        return np.asarray((half + np.arcsinh(np.sinh(half) / math.exp(self._offer))) / self.first.means[1], dtype=float)

    def exchanged(self) -> "Pair":
        """The same two laws, the other way round."""
        return Pair(self.second, self.first)


def two_point(q: float, swing: float, change: float, sigma: float, *, stay: float | None = None) -> Pair:
    """(1−q)N(0)+qN(s) against (1−q)N(0)+qN(s−c), the pair (A, B) of :mod:`elementdp.privacy._engine.domination`.

    ``stay`` is 1−q where it is known better than the difference; however small, it matters to a mean far enough away.
    """
    weights = np.array([1 - q if stay is None else stay, q])
    first, second = (UnitMixture(weights, np.array([0.0, mean / sigma])) for mean in (swing, swing - change))
    return Pair(first, second)


def binomial(q: float, size: int, sigma: float, *, replaced: bool) -> Pair:
    """All of one user's ``size`` vectors at +1 (against −1, or against none) under pair sampling."""
    count, weights = shown(q, size)
    first = UnitMixture(weights, count / sigma)
    return Pair(first, UnitMixture(weights, -count / sigma) if replaced else UnitMixture(np.ones(1), np.zeros(1)))


def shown(q: float, size: int) -> tuple[Floats, Floats]:
    """How many of ``size`` coins may show, and the chance of each number; the least likely are left out."""
    from scipy.stats import binom  # slow to import; only whole users under pair sampling need it

    count = np.arange(size + 1.0)
    chance = binom.pmf(count, size, q)
    return count[chance > LEAST_CHANCE], chance[chance > LEAST_CHANCE]


def windows(pair: Pair, reach: float) -> list[tuple[float, float]]:
    """Where the first law has its mass: within ``reach`` of its means, overlapping intervals joined."""
    merged: list[tuple[float, float]] = []
    for mean in sorted(set(pair.first.means.tolist())):
        if merged and mean - reach <= merged[-1][1]:
            merged[-1] = (merged[-1][0], mean + reach)
        else:
            merged.append((mean - reach, mean + reach))
    return merged


def pieces(pair: Pair, reach: float, right_of: float = -math.inf) -> list[tuple[Floats, Floats]]:
    """Outcomes and their losses over the windows right of ``right_of``, split where the loss turns.

    Where the loss has an inverse in closed form these are the two ends only.
    """
    return [
        piece
        for low, high in windows(pair, reach)
        if high > right_of
        for piece in _monotone(pair, max(low, right_of), high)
    ]


def extent(pair: Pair, reach: float) -> tuple[float, float]:
    """The least and the largest loss within ``reach`` of a mean of the first law."""
    ends = [float(loss[end]) for _, loss in pieces(pair, reach) for end in (0, -1)]
    return min(ends), max(ends)


def _monotone(pair: Pair, low: float, high: float) -> list[tuple[Floats, Floats]]:
    """Split [low, high] where the loss turns; for these pairs it turns at most once (Descartes' rule of signs)."""
    ends = np.array([low, high])
    loss = pair.loss(ends)
    if pair.outcome(loss) is not None:
        return [(ends, loss)]
    u = low + (high - low) * _PROBES
    loss = pair.loss(u)
    sign, turn = 1.0, int(np.argmin(loss))
    if turn in (0, len(u) - 1):
        sign, turn = -1.0, int(np.argmax(loss))
    if turn in (0, len(u) - 1):
        return [(u, loss)]
    left, right = u[turn - 1], u[turn + 1]
    for _ in range(60):
        third = (right - left) / 3
        probe = sign * pair.loss(np.array([left + third, right - third]))
        left, right = (left + third, right) if probe[0] > probe[1] else (left, right - third)
    middle = (left + right) / 2
    parts = [start + (end - start) * _PROBES for start, end in ((low, middle), (middle, high))]
    return [(part, pair.loss(part)) for part in parts]
