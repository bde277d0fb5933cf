"""ε and δ of T independent copies of a pair, bracketed: choose the lattice and the tilt, compose, read off."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from elementdp.privacy.adversaries import Law
from elementdp.privacy.curves import Floats
from elementdp.privacy.lattice import QUIET, Curve, Lattice, Plan, above, below, blur, compose
from elementdp.privacy.pairs import (
    CUT,
    ROUNDING,
    Cells,
    Grid,
    cells,
    extent,
    merged_plateau,
    mixed,
    symmetrised,
    windows,
)

_MOST_CELLS = 1 << 16
_MOST_FREE = 1 << 11
_FARTHEST = 37.0  # standard deviations beyond which a float has no room for the tail
_MOST_KNOTS = 1 << 21
_TOLERANCE = 2.2e-4  # aimed-at relative error of ε from one lattice
_UNEVEN = (
    2.0  # the most a cell may have over its part of the error: halving leaves it between an eighth of that and that
)
_BUDGET = 14.0  # minus log of the tilted probability that rounding adds up to more than allowed for
_STEEP = 0.08  # off-centre, in widths, of the mass in a cell whose lower bound would be poor
_SMALLEST = 1e-4  # an ε below this is found as if it were this: nobody can tell it from none
AIM = 9e-4  # width of the band relative to ε that is thought good enough


def _origin(law: Law) -> float:
    """A loss at which the lattice has a knot: where mass gathers."""
    return law.parts[0][1].plateau if not law.symmetric else 0.0


def _cut(law: Law, grid: Grid, reach: float) -> Cells:
    """The loss of ``law`` between the knots of ``grid``."""
    if law.symmetric:
        return symmetrised(cells(law.parts[0][1], grid, reach, above=0.0))
    cut = [(weight, cells(pair, grid, reach)) for weight, pair in law.parts]
    return cut[0][1] if len(cut) == 1 else mixed(cut)


def _sample(law: Law, reach: float) -> tuple[Floats, Floats]:
    """The loss at a few thousand outcomes and their masses: close to the law, for planning only."""
    losses, masses = [], []
    for weight, pair in law.parts:
        for low, high in windows(pair, reach):
            u = np.linspace(low, high, 256 if len(law.parts) == 1 else 128)
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
        self.x, gaps = x, np.diff(x)
        between = (masses[1:] + masses[:-1]) / 2
        self.cube_root = float(np.sum(np.cbrt(between * gaps**2)))  # ∫ density^{1/3}
        self.density = np.divide(between, gaps, out=np.zeros_like(gaps), where=gaps > 0)
        self.powers = np.array([x, x**2 / 2, x**3 / 3])
        self.sums = np.cumsum(self.density * np.diff(self.powers, axis=1), axis=1)
        self.sums = np.concatenate([np.zeros((3, 1)), self.sums], axis=1)

    def moments(self, z: Floats) -> Floats:
        """∫ 1, x and x² over all below each ``z``."""
        z = np.clip(z, self.x[0], self.x[-1])
        i = np.clip(np.searchsorted(self.x, z) - 1, 0, len(self.x) - 2)
        part = np.array([z, z**2 / 2, z**3 / 3]) - self.powers[:, i]
        return np.asarray(self.sums[:, i] + self.density[i] * part, dtype=float)


class _Sample:
    """The loss at a few thousand outcomes: close to the law, for planning only."""

    def __init__(self, law: Law, steps: int, reach: float) -> None:
        losses, masses = _sample(law, reach)
        order = np.argsort(losses)
        order = order[(masses[order] > 0) & np.isfinite(losses[order])]
        self.losses, self.log_masses = losses[order], np.log(masses[order])
        self.steps, self.origin = steps, _origin(law)

    def chernoff(self, t: Floats) -> Floats:
        """log of Chernoff's bound on δ(0) for each tilt."""
        powers = np.multiply.outer(t, self.losses) + self.log_masses
        top = powers.max(axis=1)
        cumulant = top + np.log(np.exp(powers - top[:, None]).sum(axis=1))
        return np.asarray(self.steps * cumulant + t * np.log(t) - (1 + t) * np.log1p(t), dtype=float)

    def saddle(self, objective: Callable[[Floats, Floats], Floats]) -> tuple[float, float]:
        """The tilt that minimises ``objective(tilt, Chernoff's bound)``, and the minimum."""
        grid = np.geomspace(1e-3, 1e10, 27)
        for _ in range(3):
            values = objective(grid, self.chernoff(grid))
            best = int(np.argmin(values))
            grid = np.geomspace(grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)], 9)
        return float(grid[4]), float(np.min(values))

    def saddle_at(self, epsilon: float) -> float:
        """The tilt of Chernoff's bound on δ(ε)."""
        return self.saddle(lambda t, bound: bound - t * epsilon)[0]

    def grid(self, tilt: float, epsilon: float, finer: float, *, floor: float = 0.0) -> Grid:
        """Knots that are fine enough at ``epsilon``, as few as do it.

        The chords' error in ε is about T·(1+tilt)/2·E[o(w−o)], with o the distance to the knot below and w to that
        above, under the tilted law. In cells of width w ≪ 1 around density f it is the sum of fw³/6, least for a given
        number of cells if it is the same in each; so halve the cells that have more than their part.
        Where much of the law lies in the smallest cells its transform is known to decay, and they may be as small as
        they like (see ``lattice._silent``); with a ``floor`` they may not, since a full transform must reach around.
        """
        powers = tilt * self.losses + self.log_masses
        tilted = np.exp(powers - powers.max())
        tilted /= tilted.sum()
        x = self.losses - self.origin
        mean = float(np.dot(tilted, x))
        spread = math.sqrt(self.steps * float(np.dot(tilted, (x - mean) ** 2)))
        allowed = _TOLERANCE * finer * max(epsilon, min(0.05 * spread, 0.05 / tilt), _SMALLEST)
        allowed /= self.steps * (1 + tilt) / 2
        spread_out = x != 0  # a mass on a knot does not move
        density = _Density(x[spread_out], tilted[spread_out])
        share = (6 * allowed / density.cube_root) ** 1.5 / 6 * _UNEVEN
        tiny = 1e-3 * allowed * (1 + tilt) / 2
        even = math.sqrt(4 * allowed)  # even knots would do at this distance; a law gathered at one knot allows more
        for _ in range(12):
            offset = np.mod(x, 2 * even)
            if float(np.dot(tilted, offset * (2 * even - offset))) > allowed:
                break
            even *= 2
        finest = max(even / 2, 20 * spread / _MOST_KNOTS, floor)
        width = max((float(x[-1]) - float(x[0])) / 16, 2 * finest)
        start = np.arange(math.floor(min(x[0], 0.0) / width), math.ceil(max(x[-1], 0.0) / width) + 1)
        end, start, kept = start[-1], start[:-1], []
        while True:
            low = width * start
            mass, first, second = density.moments(low + width) - density.moments(low)
            error = width * (first - low * mass) - (second - low * (2 * first - low * mass))
            lean = np.abs(first - low * mass - width / 2 * mass)
            matters = (first - low * mass > tiny) & (start != -1)
            split = (error > share) | matters & (lean > _STEEP * width * mass)
            if np.any(split):  # no wide cells between narrow ones: the step between them would cost the lower bound
                split |= matters & (start >= start[split].min()) & (start <= start[split].max())
            split &= len(start) < _MOST_CELLS
            if width < 2 * finest and (
                floor > 0 or len(start) > _MOST_FREE or float(np.sum(mass[split])) < 8 * QUIET / self.steps
            ):
                split[:] = False
            kept.append(start[~split])
            if not np.any(split):
                break
            start, width = np.concatenate([2 * start[split], 2 * start[split] + 1]), width / 2
        levels = len(kept) - 1
        index = np.concatenate([[end << levels], *(part << (levels - level) for level, part in enumerate(kept))])
        return Grid(self.origin, width, np.sort(index))


def epsilon_bounds(
    law: Law, steps: int, delta: float, *, aim: float = AIM, want_low: bool = True
) -> tuple[float, float]:
    """(low, up) around the ε at which T copies of ``law`` have ``delta``; refined until they are close.

    Without ``want_low`` the lower end is 0, and ``up`` is what a first lattice gives.
    """
    if 1 - law.common**steps <= delta:  # the laws differ that rarely
        return 0.0, 0.0
    target = math.log(delta)
    reach = _reach(steps, target)
    sample = _Sample(law, steps, reach)
    saddle, epsilon = sample.saddle(lambda t, bound: (bound - target) / t)

    def once(finer: float) -> tuple[float, float]:
        cut, high, up = _upper(
            law, sample, reach, max(epsilon, 0.0), finer, lambda curve: curve.epsilon(target, 1), saddle
        )
        if up == 0:
            return 0.0, 0.0
        slack = _slack(cut, steps)
        if not want_low:
            return 0.0, float(up + slack)
        low = _best(
            (curve.epsilon(target, -1) for curve in _lows(law, cut, high, steps, reach)), up - AIM * max(up, _SMALLEST)
        )
        return max(0.0, float(low - slack)), float(up + slack)

    return _refined(once, aim, _SMALLEST)


def delta_bounds(law: Law, steps: int, epsilon: float, *, aim: float = AIM) -> tuple[float, float]:
    """(low, up) around δ(ε) of T copies of ``law``; refined until they are close."""

    largest = max(extent(pair, _FARTHEST)[1] for _, pair in law.parts)
    if steps * largest * (1 + 1e-9) <= epsilon:  # no loss within reach is that large
        unknown = max(0.0, 1 - sum(weight for weight, _ in law.parts))
        return 0.0, steps * (2 * float(ndtr(-_FARTHEST)) + unknown)

    def once(finer: float) -> tuple[float, float]:
        reach, up, low = 12.0, 1.0, 0.0
        for _ in range(2):
            sample = _Sample(law, steps, reach)
            cut, high, _ = _upper(law, sample, reach, epsilon, finer, lambda curve: epsilon)
            slack = _slack(cut, steps)
            up = high.delta(max(0.0, epsilon - slack), 1)
            lows = (curve.delta(epsilon + slack, -1) for curve in _lows(law, cut, high, steps, reach))
            low = _best(lows, up * (1 - 10 * AIM))
            if high.lost < 1e-4 * up or reach == _FARTHEST:
                break
            reach = min(_FARTHEST, _reach(steps, math.log(max(up - high.lost, 1e-300))))
        return max(0.0, low), min(1.0, up)

    return _refined(once, 10 * aim)


def _upper(
    law: Law,
    sample: _Sample,
    reach: float,
    epsilon: float,
    finer: float,
    solve: Callable[[Curve], float],
    saddle: float | None = None,
) -> tuple[Cells, Curve, float]:
    """The upper curve, tilted so that its bulk is where ``solve`` says the answer is; coarse pilots find that place.

    ``epsilon`` is Chernoff's bound, far above the answer where rare large losses matter: the tilt must follow.
    """
    for attempt in range(6):
        tilt = saddle if saddle and attempt == 0 else sample.saddle_at(epsilon)
        cut = _cut(law, sample.grid(tilt, epsilon, finer), reach)
        plan = Plan.of(above(cut), sample.steps, tilt)
        if not plan.feasible:
            floor = plan.size * cut.h / _MOST_KNOTS
            cut = _cut(law, sample.grid(tilt, epsilon, finer, floor=floor), reach)
            plan = Plan.of(above(cut), sample.steps, tilt)
        high = compose(plan)
        found = solve(high)
        if found <= 0 and high.start <= 0:
            return cut, high, 0.0
        if 0.6 * epsilon <= found <= 1.7 * epsilon:
            break
        if attempt < 5:
            epsilon = max(found, epsilon / 4) if found < epsilon else min(found, epsilon * 4)
    return cut, high, max(0.0, found)


def _reach(steps: int, log_delta: float) -> float:
    """Standard deviations to keep: T times what lies beyond is a millionth of δ."""
    return math.sqrt(2 * (math.log(steps) - log_delta + math.log(1e6)))


def _refined(once: Callable[[float], tuple[float, float]], aim: float, least: float = 0.0) -> tuple[float, float]:
    """Refine the lattice while that helps and the band is wider than aimed at; an empty lower bound is left alone."""
    low, up = once(1.0)
    finer = 1.0
    for _ in range(4):
        gap = (up - low) / max(up, least) if up > 0 else 0.0
        if gap <= aim or low == 0:
            break
        finer *= min(0.25, max(1 / 64, (aim / gap) ** 2))
        narrower = once(finer)
        helped = narrower[1] - narrower[0] < 0.9 * (up - low)
        low, up = max(low, narrower[0]), min(up, narrower[1])
        if not helped:
            break
    return low, up


def _lows(law: Law, cut: Cells, high: Curve, steps: int, reach: float) -> Iterator[Curve]:
    """Lower bounds, the cheapest first; no adversary shows the symmetrised pair, so none is asked of it."""
    if cut.symmetrised:
        return
    yield from _composed(below(cut, high.tilt), high, steps)
    yield _moved(cut, high, steps)
    if len(law.parts) == 1:
        coarse = merged_plateau(law.parts[0][1], Grid(cut.origin, cut.h, cut.index), reach, 6 * cut.h)
        if coarse is not None:
            yield from _composed(below(coarse, high.tilt), high, steps)
            yield from (_moved(coarse, curve, steps) for curve in _composed(above(coarse), high, steps))


def _composed(lattice: Lattice, high: Curve, steps: int) -> list[Curve]:
    """The curve of ``lattice`` tilted as ``high`` is, if it can be had."""
    plan = Plan.of(lattice, steps, high.tilt)
    return [compose(plan)] if plan.feasible else []


def _moved(cut: Cells, high: Curve, steps: int) -> Curve:
    """The upper curve moved left by what rounding may have added: a lower bound for laws of any roughness."""
    shift = blur(cut, steps, high.tilt, _BUDGET)
    worst = math.exp(high.tilt * math.log(high.tilt) - (1 + high.tilt) * math.log1p(high.tilt) - _BUDGET)
    # Knots move left by ``shift``; e^{tilt·ε} in the scaling moves with them. Mass left out does not count here.
    log_scale = high.log_scale - high.tilt * shift
    return replace(high, start=high.start - shift, error=high.error + worst, log_scale=log_scale)


def _best(values: Iterable[float], enough: float) -> float:
    """The largest value, not looking further once one is at least ``enough``."""
    best = 0.0
    for value in values:
        best = max(best, value)
        if best >= enough:
            break
    return best


def _slack(cut: Cells, steps: int) -> float:
    """Rounding of T single losses: their own, and how well the knots were met."""
    return steps * (ROUNDING * float(np.abs(cut.knots[[0, -1]]).max()) + CUT * cut.h)
