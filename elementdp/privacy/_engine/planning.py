"""Where the answer will be and which lattice finds it: from a rough sample of the loss, without any rigour."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elementdp.privacy._engine.adversaries import Law
from elementdp.privacy._engine.cells import Grid, Whole
from elementdp.privacy._engine.pairs import windows
from elementdp.privacy._engine.transform import QUIET
from elementdp.privacy.curves import Floats

_MOST_CELLS = 1 << 16
_MOST_FREE = 1 << 11
_MOST_KNOTS = 1 << 21
_TOLERANCE = 2.2e-4  # aimed-at relative error of ε from one lattice
_UNEVEN = 2.0  # the most a cell may have over its part of the error: halving leaves an eighth of that at least
_STEEP = 0.08  # off-centre, in widths, of the mass in a cell whose lower bound would be poor
SMALLEST = 1e-4  # an ε below this is found as if it were this: nobody can tell it from none
_TILTS = np.geomspace(1e-3, 1e10, 27)
_AROUND = 10 ** np.linspace(-0.5, 0.5, 9)  # from one of these tilts to the next
_LOOKS = np.linspace(0, 1, 256)


def _origin(law: Law) -> float:
    """A loss at which the lattice has a knot: where mass gathers."""
    return law.parts[0][1].plateau if not law.symmetric else 0.0


def _sample(law: Law, reach: float) -> tuple[Floats, Floats]:
    """The loss at a few thousand outcomes and their masses: close to the law, for planning only."""
    losses, masses = [], []
    for weight, pair in law.parts:
        for low, high in windows(pair, reach):
            u = low + (high - low) * _LOOKS[:: 1 if len(law.parts) == 1 else 2]
            log_first = pair.first.log_ratio(u)
            losses.append(log_first - pair.second.log_ratio(u))
            masses.append(weight * (u[1] - u[0]) * np.exp(-0.5 * u * u + log_first) / math.sqrt(2 * math.pi))
    loss, mass = np.concatenate(losses), np.concatenate(masses)
    if law.symmetric:
        loss, mass = loss[loss > 0], mass[loss > 0]
        loss, mass = np.concatenate([loss, -loss]), np.concatenate([mass, mass * np.exp(-loss)])
        loss, mass = np.append(loss, 0.0), np.append(mass, max(0.0, 1 - float(mass.sum())))
    return loss, mass / mass.sum()


class _Density:
    """A law that is even between the points of a sample."""

    def __init__(self, x: Floats, masses: Floats) -> None:
        gaps = x[1:] - x[:-1]
        between = (masses[1:] + masses[:-1]) / 2
        self.cube_root = float(np.cbrt(between * gaps * gaps).sum())  # ∫ density^{1/3}
        self.x, self.inner = x, x[1:-1]
        powers = _powers(x)
        density = np.divide(between, gaps, out=np.zeros_like(gaps), where=gaps > 0)
        sums = np.zeros_like(powers)
        np.cumsum(density * (powers[:, 1:] - powers[:, :-1]), axis=1, out=sums[:, 1:])
        self.table = np.concatenate([sums[:, :-1], powers[:, :-1], density[None]])

    def moments(self, z: Floats) -> Floats:
        """∫ 1, x and x² over all below each ``z``."""
        z = np.minimum(np.maximum(z, self.x[0]), self.x[-1])
        row = self.table[:, np.searchsorted(self.inner, z)]
        return np.asarray(row[:3] + row[6] * (_powers(z) - row[3:6]), dtype=float)


def _powers(x: Floats) -> Floats:
    """The integrals of 1, x and x² from 0."""
    square = x * x
    return np.array([x, square / 2, square * x / 3])


class LossSample:
    """The loss at a few thousand outcomes: close to the law, for planning only."""

    def __init__(self, law: Law, steps: int, reach: float) -> None:
        losses, masses = _sample(law, reach)
        order = np.argsort(losses)
        order = order[(masses[order] > 0) & np.isfinite(losses[order])]
        self.losses, self.log_masses = losses[order], np.log(masses[order])
        # Outside the losses nothing gathers, and knots that reach as far as there would be many.
        self.steps, self.origin = steps, min(max(_origin(law), float(self.losses[0])), float(self.losses[-1]))

    def chernoff(self, t: Floats) -> Floats:
        """log of Chernoff's bound on δ(0) for each tilt."""
        powers = np.multiply.outer(t, self.losses) + self.log_masses
        top = powers.max(axis=1)
        powers -= top[:, None]
        cumulant = top + np.log(np.exp(powers, out=powers).sum(axis=1))
        return np.asarray(self.steps * cumulant + t * np.log(t) - (1 + t) * np.log1p(t), dtype=float)

    def saddle(self, objective: Callable[[Floats, Floats], Floats]) -> tuple[float, float]:
        """The tilt that minimises ``objective(tilt, Chernoff's bound)``, and the minimum."""
        coarse = objective(_TILTS, self.chernoff(_TILTS))
        around = _TILTS[int(np.argmin(coarse))] * _AROUND
        values = objective(around, self.chernoff(around))
        best = int(np.argmin(values))
        return float(around[best]), float(values[best])

    def saddle_at(self, epsilon: float) -> float:
        """The tilt of Chernoff's bound on δ(ε)."""
        return self.saddle(lambda t, bound: bound - t * epsilon)[0]

    def grid(self, tilt: float, epsilon: float, finer: float, *, floor: float = 0.0) -> Grid:
        """Knots that are fine enough at ``epsilon``, as few as do it.

        The chords' error in ε is about T·(1+tilt)/2·E[o(w−o)], with o the distance to the knot below and w to that
        above, under the tilted law. In cells of width w ≪ 1 around density f it is the sum of fw³/6, least for a given
        number of cells if it is the same in each; so halve the cells that have more than their part.
        Where much of the law lies in the smallest cells its transform is known to decay, and they may be as small as
        they like (see ``transform._silent``); with a ``floor`` they may not, since a full transform must reach around.
        """
        powers = tilt * self.losses + self.log_masses
        tilted = np.exp(powers - powers.max())
        tilted /= tilted.sum()
        x = self.losses - self.origin
        mean = float(np.dot(tilted, x))
        spread = math.sqrt(self.steps * float(np.dot(tilted, (x - mean) ** 2)))
        allowed = _TOLERANCE * finer * max(epsilon, min(0.05 * spread, 0.05 / tilt), SMALLEST)
        allowed /= self.steps * (1 + tilt) / 2
        spread_out = x != 0  # a mass on a knot does not move
        if np.count_nonzero(spread_out) < 3:
            spread_out[:] = True
        halving = _Halving(
            steps=self.steps,
            density=_Density(x[spread_out], tilted[spread_out]),
            allowed=allowed,
            tiny=1e-3 * allowed * (1 + tilt) / 2,
            finest=max(_even(x, tilted, allowed) / 2, 20 * spread / _MOST_KNOTS, floor),
            loud=math.inf if floor else 8 * QUIET / self.steps,
        )
        width, index = halving.cells(float(x[0]), float(x[-1]))
        return Grid(self.origin, width, index)


def _even(x: Floats, tilted: Floats, allowed: float) -> float:
    """A distance at which even knots would do; a law gathered at one knot allows more than a smooth one."""
    even = math.sqrt(4 * allowed)
    for _ in range(12):
        offset = np.mod(x, 2 * even)
        if float(np.dot(tilted, offset * (2 * even - offset))) > allowed:
            break
        even *= 2
    return even


@dataclass(frozen=True)
class _Halving:
    """Cells that are halved until none has more than its part of the ``allowed`` error, or all are the ``finest``.

    Cells that hold no more than ``tiny`` do not matter. Cells finer than the finest are made only where they hold at
    least the mass ``loud``, which quietens the transform.
    """

    steps: int
    density: _Density
    allowed: float
    tiny: float
    finest: float
    loud: float

    def cells(self, low: float, high: float) -> tuple[float, Whole]:
        """The smallest width, and the knots between ``low`` and ``high`` in multiples of it; 0 is one of them."""
        width = max((high - low) / 16, 2 * self.finest)
        start = np.arange(math.floor(min(low, 0.0) / width), max(1, math.ceil(high / width)) + 1)
        end = int(start[-1])
        kept: list[Whole] = []
        # Halvings after which the sum of T indices is still a whole number of the machine.
        most = 61 - (self.steps * max(abs(int(start[0])), end)).bit_length()
        edges = self.density.moments(np.asarray(width * start, dtype=float))
        start, left, right = start[:-1], edges[:, :-1], edges[:, 1:]
        while True:
            split = self._split(start, width, right - left) & (len(kept) < most)
            kept.append(start[~split])
            if not split.any():
                break
            start, width, left, right = 2 * start[split], width / 2, left[:, split], right[:, split]
            middle = self.density.moments(np.asarray(width * (start + 1), dtype=float))
            start = np.concatenate([start, start + 1])
            left, right = np.concatenate([left, middle], axis=1), np.concatenate([middle, right], axis=1)
        levels = len(kept) - 1
        index = np.concatenate([[end << levels], *(part << (levels - level) for level, part in enumerate(kept))])
        return width, np.sort(index)

    def _split(self, start: Whole, width: float, moments: Floats) -> NDArray[np.bool_]:
        """Which of the cells of this width, with these masses and moments, to halve."""
        share = (6 * self.allowed / max(self.density.cube_root, 1e-100)) ** 1.5 / 6 * _UNEVEN
        low = width * start
        mass, first, second = moments
        lever = first - low * mass
        error = width * lever - (second - low * (first + lever))
        matters = (lever > self.tiny) & (start != -1)
        split = (error > share) | matters & (np.abs(lever - width / 2 * mass) > _STEEP * width * mass)
        if split.any():  # no wide cells between narrow ones: the step between them would cost the lower bound
            those = start[split]
            split |= matters & (start >= those.min()) & (start <= those.max())
        if width < 2 * self.finest:
            split &= len(start) <= _MOST_FREE and float(mass[split].sum()) >= self.loud
        split &= len(start) < _MOST_CELLS
        return np.asarray(split)
