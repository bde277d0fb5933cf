"""ε and δ of E epochs of random allocation, bracketed: the curves of one epoch, composed (see ``epochs``)."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from elementdp.privacy._engine.composed import Curve
from elementdp.privacy._engine.epochs import Epoch, uppers
from elementdp.privacy._engine.lattice import Lattice
from elementdp.privacy._engine.statistic import lowers
from elementdp.privacy._engine.transform import TransformPlan, compose

_TRIFLE = 1e-3  # of δ that is given away at each approximation of a tail, over all epochs
_TILTS = np.geomspace(1e-3, 1e4, 400)
_LEAST = 1e-250  # δ below which nothing is looked for


def epsilon_above(epoch: Epoch, epochs: int, delta: float) -> float:
    """An upper bound of the ε at which ``epochs`` epochs have ``delta``; infinite where none is found."""
    laws = uppers(epoch, _TRIFLE * delta / epochs)
    return max(_epsilons(laws, epochs, delta, 1), default=math.inf)


def epsilon_below(epoch: Epoch, epochs: int, delta: float) -> float:
    """A lower bound of that ε, zero where none is found."""
    return max(0.0, *_epsilons(lowers(epoch, epochs), epochs, delta, -1), 0.0)


def delta_above(epoch: Epoch, epochs: int, epsilon: float) -> float:
    """An upper bound of the δ of ``epochs`` epochs at ``epsilon``, one where none is found.

    What may be given away is a share of δ, so the lower bound of it is looked at first.
    """
    least = max(delta_below(epoch, epochs, epsilon), _LEAST)
    return max(_deltas(uppers(epoch, _TRIFLE * least / epochs), epochs, epsilon, 1), default=1.0)


def delta_below(epoch: Epoch, epochs: int, epsilon: float) -> float:
    """A lower bound of that δ, zero where none is found."""
    return max(_deltas(lowers(epoch, epochs), epochs, epsilon, -1), default=0.0)


def _epsilons(laws: Sequence[Lattice], epochs: int, delta: float, sign: int) -> list[float]:
    target = math.log(delta)
    found = []
    for law in laws:
        curve, near = _composed(law, epochs, lambda bound, tilt: (bound - target) / tilt)
        if curve is None:
            found.append(math.inf if sign > 0 else 0.0)
            continue
        value = curve.epsilon(target, sign, max(near, 0.0))
        # Below where the curve starts nothing is known but that ε is not above it.
        found.append(max(0.0, value if value > -math.inf or sign < 0 else curve.start))
    return found


def _deltas(laws: Sequence[Lattice], epochs: int, epsilon: float, sign: int) -> list[float]:
    found = []
    for law in laws:
        curve, _ = _composed(law, epochs, lambda bound, tilt: bound - tilt * epsilon)
        found.append(float(sign > 0) if curve is None else curve.delta(epsilon, sign))
    return found


def _composed(law: Lattice, epochs: int, objective: Callable[[float, float], float]) -> tuple[Curve | None, float]:
    """The curve of ``epochs`` copies, tilted where Chernoff's bound makes ``objective`` least; and that value."""

    def value(tilt: float) -> float:
        bound = epochs * law.tilted(tilt)[0] + tilt * math.log(tilt) - (1 + tilt) * math.log1p(tilt)
        return objective(bound, tilt)

    tilt = min(_TILTS.tolist(), key=value)
    plan = TransformPlan.of(law, epochs, tilt, room=2)
    return (compose(plan) if plan.feasible else None), value(tilt)
