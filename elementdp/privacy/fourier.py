"""ε and δ of T independent copies of a pair, bracketed: choose the lattice and the tilt, compose, read off."""

import math
from dataclasses import dataclass

import numpy as np

from elementdp.privacy.curves import Floats
from elementdp.privacy.lattice import Curve, above, below, compose
from elementdp.privacy.pairs import Cells, Pair, cells, mixed, symmetrised, windows

_MOST_CELLS = 1 << 19
_MOST_KNOTS = 1 << 22
_TOLERANCE = 6e-5  # aimed-at relative error of ε from one lattice


@dataclass(frozen=True)
class Law:
    """One step: one of ``parts`` is drawn with its weight and shown; ``symmetric`` asks for the symmetrised pair."""

    parts: tuple[tuple[float, Pair], ...]
    symmetric: bool = False

    def cut(self, h: float, reach: float) -> Cells:
        """The loss on the lattice of step ``h``."""
        if self.symmetric:
            return symmetrised(cells(self.parts[0][1], h, reach, above=0.0))
        cut = [(weight, cells(pair, h, reach, origin=pair.plateau)) for weight, pair in self.parts]
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
    spread: float
    range: float


def _plan(law: Law, steps: int, reach: float, *, log_delta: float | None = None, epsilon: float | None = None) -> _Plan:
    """Chernoff's bound on ε (or on δ), and the tilt that gives it: the saddle point is near."""
    losses, masses = law.sample(reach)
    keep = masses > 0
    losses, log_masses = losses[keep], np.log(masses[keep])

    def chernoff(t: Floats) -> Floats:
        powers = np.multiply.outer(t, losses) + log_masses
        top = powers.max(axis=1)
        cumulant = top + np.log(np.exp(powers - top[:, None]).sum(axis=1))
        bound = steps * cumulant + t * np.log(t) - (1 + t) * np.log1p(t)
        return (bound - log_delta) / t if epsilon is None else bound - t * epsilon

    grid = np.geomspace(1e-3, 1e10, 53)
    for _ in range(4):
        values = chernoff(grid)
        best = int(np.argmin(values))
        grid = np.geomspace(grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)], 13)
    tilt = float(grid[6])
    tilted = np.exp(tilt * losses + log_masses - np.max(tilt * losses + log_masses))
    tilted /= tilted.sum()
    mean = float(np.dot(tilted, losses))
    variance = float(np.dot(tilted, (losses - mean) ** 2))
    found = float(np.min(values)) if epsilon is None else epsilon
    return _Plan(found, tilt, math.sqrt(steps * variance), float(losses.max() - losses.min()))


def _step(plan: _Plan, steps: int, finer: float) -> float:
    """The lattice step: the chords' error in ε is about T·h²·(1+τ)/8."""
    scale = max(plan.epsilon, 0.05 * plan.spread, 1e-12)
    h = math.sqrt(8 * _TOLERANCE * finer * scale / (steps * (1 + plan.tilt)))
    return max(h, plan.range / _MOST_CELLS, 30 * plan.spread / _MOST_KNOTS)


def _reach(steps: int, log_delta: float) -> float:
    """Standard deviations to keep: T times what lies beyond is a millionth of δ."""
    return math.sqrt(2 * (math.log(steps) - log_delta + math.log(1e6)))


def epsilon_bounds(law: Law, steps: int, delta: float, *, finer: float = 1.0) -> tuple[float, float]:
    """(low, up) around the ε at which T copies of ``law`` have ``delta``."""
    target = math.log(delta)
    reach = _reach(steps, target)
    plan = _plan(law, steps, reach, log_delta=target)
    h = _step(plan, steps, finer)
    cut = law.cut(h, reach)
    tilt, best = plan.tilt, (0.0, math.inf)
    for _ in range(6):
        high, low = compose(above(cut), steps, tilt), compose(below(cut), steps, tilt)
        slack = steps * 1e-15 * float(np.abs(cut.knots[[0, -1]]).max())
        up = _solve(high, _upper(high), target, h)
        down = _solve(low, _lower(low), target, h)
        if up is None:  # the window lies right of the answer
            edge = float(high.epsilon[0])
            if edge <= 0:
                return 0.0, 0.0
            tilt = tilt / 2
            continue
        best = (max(0.0, (down or 0.0) - slack), max(0.0, up + slack))
        break
    return best


def delta_bounds(law: Law, steps: int, epsilon: float, *, finer: float = 1.0) -> tuple[float, float]:
    """(low, up) around δ(ε) of T copies of ``law``."""
    reach = 12.0
    for _ in range(2):
        plan = _plan(law, steps, reach, epsilon=epsilon)
        curve_tilt = plan.tilt
        h = _step(plan, steps, finer)
        # A knot at ε itself is not needed: both curves are chords in e^ε.
        cut = law.cut(h, reach)
        high, low = compose(above(cut), steps, curve_tilt), compose(below(cut), steps, curve_tilt)
        up, down = _read(high, _upper(high), epsilon), _read(low, _lower(low), epsilon)
        if high.lost < 1e-4 * up or reach > 38:
            break
        reach = min(38.5, _reach(steps, math.log(max(up - high.lost, 1e-300))))
    return max(0.0, down), min(1.0, up)


def _upper(curve: Curve) -> Floats:
    """log of the upper bound of δ at the knots."""
    values = np.logaddexp(curve.log_delta, curve.log_error - curve.tilt * curve.epsilon)
    return np.logaddexp(values, math.log(curve.lost)) if curve.lost > 0 else values


def _lower(curve: Curve) -> Floats:
    """log of the lower bound of δ at the knots."""
    error = curve.log_error - curve.tilt * curve.epsilon
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(curve.log_delta > error, curve.log_delta + np.log1p(-np.exp(error - curve.log_delta)), -np.inf)


def _solve(curve: Curve, log_delta: Floats, target: float, h: float) -> float | None:
    """The ε at which the curve, a chord in e^ε between knots, falls to the target."""
    over = np.flatnonzero(log_delta > target)
    if not len(over):
        return None
    last = int(over[-1])
    if last + 1 == len(log_delta):
        return math.inf
    left = math.exp(log_delta[last] - target)
    right = math.exp(log_delta[last + 1] - target)
    return float(curve.epsilon[last]) + math.log1p((left - 1) / (left - right) * math.expm1(h))


def _read(curve: Curve, log_delta: Floats, epsilon: float) -> float:
    """The curve at ``epsilon``."""
    place = int(np.searchsorted(curve.epsilon, epsilon))
    if place == 0 or place == len(log_delta):
        return 0.0 if place else 1.0
    low, high = curve.epsilon[place - 1], curve.epsilon[place]
    share = math.expm1(epsilon - low) / math.expm1(high - low)
    return float((1 - share) * np.exp(log_delta[place - 1]) + share * np.exp(log_delta[place]))
