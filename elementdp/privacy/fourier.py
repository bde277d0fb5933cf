"""ε and δ of T independent copies of a pair, bracketed: choose the lattice and the tilt, compose, read off."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from elementdp.privacy.curves import Floats
from elementdp.privacy.lattice import Curve, above, below, blur, compose
from elementdp.privacy.pairs import CUT, Cells, Pair, cells, mixed, symmetrised, windows

_MOST_CELLS = 1 << 19
_MOST_KNOTS = 1 << 22
_TOLERANCE = 2e-4  # aimed-at relative error of ε from one lattice
_BUDGET = 14.0  # minus log of the tilted probability that rounding adds up to more than allowed for
AIM = 8e-4  # width of the band relative to ε that is thought good enough


@dataclass(frozen=True)
class Law:
    """One step: one of ``parts`` is drawn with its weight and shown; ``symmetric`` asks for the symmetrised pair."""

    parts: tuple[tuple[float, Pair], ...]
    symmetric: bool = False

    @property
    def origin(self) -> float:
        """A loss at which the lattice has a knot: where mass gathers."""
        return self.parts[0][1].plateau if not self.symmetric else 0.0

    def cut(self, h: float, reach: float) -> Cells:
        """The loss on the lattice of step ``h``."""
        if self.symmetric:
            return symmetrised(cells(self.parts[0][1], h, reach, above=0.0))
        cut = [(weight, cells(pair, h, reach, origin=self.origin)) for weight, pair in self.parts]
        return cut[0][1] if len(cut) == 1 else mixed(cut)

    def sample(self, reach: float) -> tuple[Floats, Floats]:
        """The loss at a few thousand outcomes and their masses: close to the law, for planning only."""
        losses, masses = [], []
        for weight, pair in self.parts:
            for low, high in windows(pair, reach):
                u = np.linspace(low, high, 2048)
                log_first = pair.first.log_ratio(u)
                loss = log_first - pair.second.log_ratio(u)
                mass = weight * (u[1] - u[0]) * np.exp(-0.5 * u * u + log_first) / math.sqrt(2 * math.pi)
                losses.append(loss)
                masses.append(mass)
        loss, mass = np.concatenate(losses), np.concatenate(masses)
        if self.symmetric:
            loss, mass = loss[loss > 0], mass[loss > 0]
            loss, mass = np.concatenate([loss, -loss]), np.concatenate([mass, mass * np.exp(-loss)])
            loss, mass = np.append(loss, 0.0), np.append(mass, max(0.0, 1 - float(mass.sum())))
        return loss, mass / mass.sum()


@dataclass(frozen=True)
class _Plan:
    epsilon: float
    tilt: float
    h: float


def _plan(
    law: Law, steps: int, reach: float, finer: float, *, log_delta: float = 0.0, epsilon: float | None = None
) -> _Plan:
    """Chernoff's bound on ε (or on δ), the tilt that gives it (the saddle point is near), and a lattice step."""
    losses, masses = law.sample(reach)
    keep = masses > 0
    losses, log_masses = losses[keep], np.log(masses[keep])

    def chernoff(t: Floats) -> Floats:
        powers = np.multiply.outer(t, losses) + log_masses
        top = powers.max(axis=1)
        cumulant = top + np.log(np.exp(powers - top[:, None]).sum(axis=1))
        bound = steps * cumulant + t * np.log(t) - (1 + t) * np.log1p(t)
        return np.asarray((bound - log_delta) / t if epsilon is None else bound - t * epsilon)

    grid = np.geomspace(1e-3, 1e10, 40)
    for _ in range(3):
        values = chernoff(grid)
        best = int(np.argmin(values))
        grid = np.geomspace(grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)], 9)
    tilt = float(grid[4])
    tilted = np.exp(tilt * losses + log_masses - np.max(tilt * losses + log_masses))
    tilted /= tilted.sum()
    mean = float(np.dot(tilted, losses))
    spread = math.sqrt(steps * float(np.dot(tilted, (losses - mean) ** 2)))
    found = float(np.min(values)) if epsilon is None else epsilon
    # The chords' error in ε is about T·(1+τ)/2·E[o(h−o)], o the distance to the knot below: h²/6 for a smooth law, and
    # much less where rare participation keeps most of the mass at one knot.
    allowed = _TOLERANCE * finer * max(found, 0.05 * spread, 1e-12)
    h = math.sqrt(8 * allowed / (steps * (1 + tilt)))
    smallest = max(float(np.ptp(losses)) / _MOST_CELLS, 20 * spread / _MOST_KNOTS)
    for _ in range(12):
        offset = np.mod(losses - law.origin, 2 * h)
        if steps * (1 + tilt) / 2 * float(np.dot(tilted, offset * (2 * h - offset))) > allowed:
            break
        h *= 2
    return _Plan(found, tilt, max(h, smallest))


def _reach(steps: int, log_delta: float) -> float:
    """Standard deviations to keep: T times what lies beyond is a millionth of δ."""
    return math.sqrt(2 * (math.log(steps) - log_delta + math.log(1e6)))


def epsilon_bounds(law: Law, steps: int, delta: float, *, aim: float = AIM) -> tuple[float, float]:
    """(low, up) around the ε at which T copies of ``law`` have ``delta``; the lattice is refined until they are close."""
    return _refined(lambda finer: _epsilon_once(law, steps, math.log(delta), finer), aim)


def delta_bounds(law: Law, steps: int, epsilon: float, *, aim: float = AIM) -> tuple[float, float]:
    """(low, up) around δ(ε) of T copies of ``law``; the lattice is refined until they are close."""
    return _refined(lambda finer: _delta_once(law, steps, epsilon, finer), 10 * aim)


def _refined(once: Callable[[float], tuple[float, float]], aim: float) -> tuple[float, float]:
    low, up = once(1.0)
    finer = 1.0
    for _ in range(3 if low > 0 else 0):
        gap = (up - low) / up if up > 0 else 0.0
        if gap <= aim:
            break
        finer *= min(0.25, max(1 / 64, (aim / gap) ** 2))
        finer_low, finer_up = once(finer)
        if finer_up - finer_low > 0.8 * (up - low):
            low, up = max(low, finer_low), min(up, finer_up)
            break
        low, up = max(low, finer_low), min(up, finer_up)
    return low, up


def _epsilon_once(law: Law, steps: int, target: float, finer: float) -> tuple[float, float]:
    reach = _reach(steps, target)
    plan = _plan(law, steps, reach, finer, log_delta=target)
    cut = law.cut(plan.h, reach)
    tilt = plan.tilt
    high = compose(above(cut), steps, tilt)
    up = high.epsilon(target, 1)
    while up == -math.inf:  # the window lies right of the answer
        if high.start <= 0:
            return 0.0, 0.0
        tilt /= 2
        high = compose(above(cut), steps, tilt)
        up = high.epsilon(target, 1)
    slack = _slack(cut, steps)
    low = max((curve.epsilon(target, -1) for curve in _lows(cut, high, steps)), default=0.0)
    return max(0.0, low - slack), max(0.0, up + slack)


def _delta_once(law: Law, steps: int, epsilon: float, finer: float) -> tuple[float, float]:
    reach, up, low = 12.0, 1.0, 0.0
    for _ in range(2):
        plan = _plan(law, steps, reach, finer, epsilon=epsilon)
        cut = law.cut(plan.h, reach)
        slack = _slack(cut, steps)
        high = compose(above(cut), steps, plan.tilt)
        up = high.delta(max(0.0, epsilon - slack), 1)
        low = max((curve.delta(epsilon + slack, -1) for curve in _lows(cut, high, steps)), default=0.0)
        if high.lost < 1e-4 * up or reach > 38:
            break
        reach = min(38.5, _reach(steps, math.log(max(up - high.lost, 1e-300))))
    return max(0.0, low), min(1.0, up)


def _lows(cut: Cells, high: Curve, steps: int) -> list[Curve]:
    """Two lower bounds: of the contracted law, and the upper curve moved left by what rounding may have added to it.

    No adversary shows the symmetrised pair, so none is asked of it.
    """
    if cut.symmetrised:
        return []
    shift = blur(cut, steps, high.tilt, _BUDGET)
    worst = math.exp(high.tilt * math.log(high.tilt) - (1 + high.tilt) * math.log1p(high.tilt) - _BUDGET)
    # Knots move left by ``shift``; e^{tilt·ε} in the scaling moves with them.
    moved = replace(
        high, start=high.start - shift, error=high.error + worst, log_scale=high.log_scale - high.tilt * shift
    )
    return [compose(below(cut, high.tilt), steps, high.tilt), moved]


def _slack(cut: Cells, steps: int) -> float:
    """Rounding of T single losses: their own, and how well the knots were met."""
    return steps * (1e-15 * float(np.abs(cut.knots[[0, -1]]).max()) + CUT * cut.h)
