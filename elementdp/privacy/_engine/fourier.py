"""ε and δ of T independent copies of a pair, bracketed: choose the lattice and the tilt, compose, read off."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from elementdp.privacy._engine.adversaries import Law
from elementdp.privacy._engine.cells import (
    CUT,
    LOGARITHMS,
    ROUNDING,
    Cells,
    Grid,
    cells,
    merged_plateau,
    mixed,
    symmetrised,
)
from elementdp.privacy._engine.composed import Curve
from elementdp.privacy._engine.lattice import Lattice, above, below, blur
from elementdp.privacy._engine.pairs import extent
from elementdp.privacy._engine.planning import SMALLEST, LossSample
from elementdp.privacy._engine.transform import TransformPlan, compose

_FARTHEST = 37.0  # standard deviations beyond which a float has no room for the tail
_MOST_KNOTS = 1 << 21
_MOST_REFINED = 1 << 13  # knots of a lattice that is still made finer
_BUDGET = 14.0  # minus log of the tilted probability that rounding adds up to more than allowed for
AIM = 9e-4  # width of the band relative to ε, or to δ, that is thought good enough


def _cut(law: Law, grid: Grid, reach: float) -> Cells:
    """The loss of ``law`` between the knots of ``grid``."""
    if law.symmetric:
        return symmetrised(cells(law.parts[0][1], grid, reach, above=0.0))
    cut = [(weight, cells(pair, grid, reach)) for weight, pair in law.parts]
    return cut[0][1] if len(cut) == 1 else mixed(cut, law.lost)


def _ever_differ(law: Law, steps: int) -> float:
    """A bound on the chance that any of T copies differs."""
    return -math.expm1(steps * math.log1p(-law.apart)) if law.apart < 1 else 1.0


def epsilon_bounds(
    law: Law,
    steps: int,
    delta: float,
    *,
    aim: float = AIM,
    target: float | None = None,
    known: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """(low, up) around the ε at which T copies of ``law`` have ``delta``; refined until they are close.

    With a ``target``, they are refined only until both lie on one side of it. ``known`` is an earlier answer.
    """
    if _ever_differ(law, steps) <= delta * (1 - 1e-9):  # the laws differ that rarely
        return 0.0, 0.0
    log_delta = math.log(delta)
    reach = _reach(steps, log_delta)
    sample = LossSample(law, steps, reach)
    saddle, epsilon = sample.saddle(lambda t, bound: (bound - log_delta) / t)

    def once(finer: float) -> tuple[float, float, bool]:
        cut, high, up = _upper(
            law, sample, reach, max(epsilon, 0.0), finer, lambda curve, near: curve.epsilon(log_delta, 1, near), saddle
        )
        if up == 0:
            return 0.0, 0.0, False
        slack = _slack(cut, steps)
        low = _best(
            (curve.epsilon(log_delta, -1, up) for curve in _lows(law, cut, high, steps, reach)),
            up - AIM * max(up, SMALLEST),
        )
        return max(0.0, float(low - slack)), float(up + slack), _worth(cut)

    return _refined(once, aim, SMALLEST, target, known)


def delta_bounds(
    law: Law, steps: int, epsilon: float, *, aim: float = AIM, known: tuple[float, float] | None = None
) -> tuple[float, float]:
    """(low, up) around δ(ε) of T copies of ``law``; refined until they are close. ``known`` is an earlier answer."""

    largest = max(extent(pair, _FARTHEST)[1] for _, pair in law.parts)
    if steps * largest * (1 + 1e-9) <= epsilon:  # no loss within reach is that large
        return 0.0, steps * (2 * float(ndtr(-_FARTHEST)) + law.lost)

    def once(finer: float) -> tuple[float, float, bool]:
        reach, up, low = 12.0, 1.0, 0.0
        for _ in range(2):
            sample = LossSample(law, steps, reach)
            cut, high, _ = _upper(law, sample, reach, epsilon, finer, lambda curve, near: epsilon)
            slack = _slack(cut, steps)
            up = high.delta(max(0.0, epsilon - slack), 1)
            lows = (curve.delta(epsilon + slack, -1) for curve in _lows(law, cut, high, steps, reach))
            low = _best(lows, up * (1 - AIM))
            if high.lost < 1e-4 * up or reach == _FARTHEST:
                break
            reach = min(_FARTHEST, _reach(steps, math.log(max(up - high.lost, 1e-300))))
        return max(0.0, low), min(1.0, up), _worth(cut)

    return _refined(once, aim, known=known)


def _upper(
    law: Law,
    sample: LossSample,
    reach: float,
    epsilon: float,
    finer: float,
    solve: Callable[[Curve, float], float],
    saddle: float | None = None,
) -> tuple[Cells, Curve, float]:
    """The upper curve, tilted so that its bulk is where ``solve`` says the answer is; coarse pilots find that place.

    ``epsilon`` is Chernoff's bound, far above the answer where rare large losses matter: the tilt must follow. Each
    pilot is a bound, so the least is kept. Pilots that point past one another are tried between them.
    """
    best, least, most = None, 0.0, math.inf
    for attempt in range(6):
        tilt = saddle if saddle and attempt == 0 else sample.saddle_at(epsilon)
        cut = _cut(law, sample.grid(tilt, epsilon, finer), reach)
        plan = TransformPlan.of(above(cut), sample.steps, tilt)
        if not plan.feasible:
            floor = plan.size * cut.h / _MOST_KNOTS
            cut = _cut(law, sample.grid(tilt, epsilon, finer, floor=floor), reach)
            plan = TransformPlan.of(above(cut), sample.steps, tilt)
        high = compose(plan)
        found = solve(high, epsilon)
        # Below where the curve starts nothing is known but that ε is not above it.
        up = max(0.0, found if found > -math.inf else high.start)
        helped = best is None or up < 0.9 * best[2]
        if best is None or up < best[2]:
            best = cut, high, up
        if up == 0 or 0.6 * epsilon <= found <= 1.7 * epsilon or (attempt > 1 and not helped):
            break
        if found < epsilon:
            most, wanted = epsilon, max(found, epsilon / 4)
        else:
            least, wanted = epsilon, min(found, epsilon * 4)
        if epsilon == 0 or most < 1.5 * least:
            break
        epsilon = wanted if least < wanted < most else math.sqrt(least * most)
    assert best is not None
    return best


def _reach(steps: int, log_delta: float) -> float:
    """Standard deviations to keep: T times what lies beyond is a millionth of δ."""
    return math.sqrt(2 * (math.log(steps) - log_delta + math.log(1e6)))


def _refined(
    once: Callable[[float], tuple[float, float, bool]],
    aim: float,
    least: float = 0.0,
    target: float | None = None,
    known: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """Refine the lattice while that helps, is worth it, and the band is wider than aimed at or holds the target."""
    low, up, worth = once(1.0) if known is None else (*known, True)
    finer = 1.0
    for _ in range(4):
        gap = (up - low) / max(up, least) if up > 0 else 0.0
        if gap <= aim or not worth or (target is not None and not low <= target < up):
            break
        finer *= min(0.25, max(1 / 64, (aim / gap) ** 2))
        inner, outer, worth = once(finer)
        helped = outer - inner < 0.9 * (up - low)
        low, up = max(low, inner), min(up, outer)
        if not helped:
            break
    return low, up


def _worth(cut: Cells) -> bool:
    """Whether a finer lattice may help and is not too long; a symmetrised one has no lower bound to come closer to."""
    return not cut.symmetrised and len(cut.index) < _MOST_REFINED


def _lows(law: Law, cut: Cells, high: Curve, steps: int, reach: float) -> Iterator[Curve]:
    """Lower bounds, the cheapest first; no adversary shows the symmetrised pair, so none is asked of it."""
    if cut.symmetrised:
        return
    yield from _composed(below(cut, high.tilt), high, steps)
    yield from _moved(cut, high, steps)
    if len(law.parts) == 1:
        coarse = merged_plateau(law.parts[0][1], Grid(cut.origin, cut.h, cut.index), reach, 6 * cut.h)
        if coarse is not None:
            yield from _composed(below(coarse, high.tilt), high, steps)
            for curve in _composed(above(coarse), high, steps):
                yield from _moved(coarse, curve, steps)


def _composed(lattice: Lattice, high: Curve, steps: int) -> list[Curve]:
    """The curve of ``lattice`` tilted as ``high`` is, if it can be had."""
    plan = TransformPlan.of(lattice, steps, high.tilt, room=2)
    return [compose(plan)] if plan.feasible else []


def _moved(cut: Cells, high: Curve, steps: int) -> Iterator[Curve]:
    """The upper curve moved left by what rounding may have added: a lower bound for laws of any roughness."""
    shift = blur(cut, steps, high.tilt, _BUDGET)
    if not math.isfinite(shift):
        return
    worst = math.exp(high.tilt * math.log(high.tilt) - (1 + high.tilt) * math.log1p(high.tilt) - _BUDGET)
    # Knots move left by ``shift``; e^{tilt·ε} in the scaling moves with them. Mass left out does not count here.
    log_scale = high.log_scale - high.tilt * shift
    yield replace(high, start=high.start - shift, error=high.error + worst, log_scale=log_scale)


def _best(values: Iterable[float], enough: float) -> float:
    """The largest value, not looking further once one is at least ``enough``."""
    best = 0.0
    for value in values:
        best = max(best, value)
        if best >= enough:
            break
    return best


def _slack(cut: Cells, steps: int) -> float:
    """Rounding of T single losses: their own, how well the knots were met, and that of masses known by logarithms."""
    return steps * (ROUNDING * float(np.abs(cut.knots[[0, -1]]).max()) + CUT * cut.h + LOGARITHMS)
