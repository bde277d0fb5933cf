"""How it is counted: ε and δ of a run as (low, estimate, up)."""

import math
from collections.abc import Callable, Sequence
from functools import partial

from elementdp.errors import nonnegative, probability
from elementdp.privacy._engine import allocated, far
from elementdp.privacy._engine.adversaries import Law, adversaries, dominating
from elementdp.privacy._engine.domination import Knowledge, WorstCase, worst_case
from elementdp.privacy._engine.fourier import AIM, delta_bounds, epsilon_bounds
from elementdp.privacy._engine.participation import revealed_delta, revealed_epsilon
from elementdp.privacy.allocation import RandomAllocation
from elementdp.privacy.band import Band
from elementdp.privacy.curves import gaussian_delta, gaussian_epsilon
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.fixed_order import FixedOrder
from elementdp.privacy.guarantee import Guarantee

Event = SubsampledGaussian | FixedOrder | RandomAllocation
_Ends = tuple[float, float]
_Bounds = Callable[[Law, float, _Ends | None], _Ends]
_COARSE = 5e-3  # accuracy of lower bounds that are anyway far below the upper one


def account(event: Event, delta: float) -> Band:
    """The ε of ``event`` at ``delta``, as (low, estimate, up). Only ``up`` may be promised to anyone.

    Args:
        event: the run.
        delta: the δ at which ε is asked for, above 0 and below 1.

    Returns:
        The :class:`Band` in which the exact ε lies; both ends are proved.

    Raises:
        ArgumentError: ``delta`` is out of range.
        NoGuaranteeError: nothing is proved of the event's unit, relation and sampler together.

    >>> run = SubsampledGaussian(Sampler.POISSON_PAIRS, sigma=8.0, q=0.01, steps=40_000)
    >>> f"{account(run, delta=5e-5):.3g}"
    '1.79 to 1.8'
    """
    return _account(event, delta)


def _account(event: Event, delta: float, *, low: bool = True, target: float | None = None) -> Band:
    delta = float(probability("delta", delta, low_open=True, high_open=True))
    if isinstance(event, FixedOrder):
        return _rounded(gaussian_epsilon(delta, event.mu))
    if isinstance(event, RandomAllocation):
        shown = _rounded(gaussian_epsilon(delta, event.order.mu))
        below = partial(allocated.epsilon_below, delta=delta) if low else None
        return _allocated(event, shown, partial(allocated.epsilon_above, delta=delta), below)
    worst = worst_case(event)
    if worst.knowledge is Knowledge.GAUSSIAN:
        return _rounded(gaussian_epsilon(delta, worst.change * math.sqrt(event.steps) / event.sigma))
    revealed = partial(revealed_epsilon, delta, event.q, event.sigma, event.steps, worst.change)
    if worst.knowledge is Knowledge.REVEALED:
        return revealed()
    if far.shows(event, worst, revealed().up, delta):
        return revealed()
    if far.is_far(event, worst):
        return Band.between(*far.far_epsilon(event, worst, delta))

    def bounds(law: Law, aim: float, known: _Ends | None) -> _Ends:
        return epsilon_bounds(law, event.steps, delta, aim=aim, target=target, known=known)

    refuted = partial(far.refuted_epsilon, event, worst, delta)
    return _bracket(event, worst, bounds, revealed, refuted if low else None, target)


def delta_at(event: Event, epsilon: float) -> Band:
    """The δ of ``event`` at ``epsilon``, as (low, estimate, up)."""
    epsilon = float(nonnegative("epsilon", epsilon))
    if isinstance(event, FixedOrder):
        return _rounded(gaussian_delta(epsilon, event.mu))
    if isinstance(event, RandomAllocation):
        above, below = (partial(side, epsilon=epsilon) for side in (allocated.delta_above, allocated.delta_below))
        return _allocated(event, _rounded(gaussian_delta(epsilon, event.order.mu)), above, below)
    worst = worst_case(event)
    if worst.knowledge is Knowledge.GAUSSIAN:
        return _rounded(gaussian_delta(epsilon, worst.change * math.sqrt(event.steps) / event.sigma))
    revealed = partial(revealed_delta, epsilon, event.q, event.sigma, event.steps, worst.change)
    if worst.knowledge is Knowledge.REVEALED or far.shows(event, worst, epsilon, revealed().low):
        return revealed()
    if far.is_far(event, worst):
        return Band.between(*far.far_delta(event, worst, epsilon))

    def bounds(law: Law, aim: float, known: _Ends | None) -> _Ends:
        return delta_bounds(law, event.steps, epsilon, aim=aim, known=known)

    return _bracket(event, worst, bounds, revealed, partial(far.refuted_delta, event, worst, epsilon))


def promise(event: Event, delta: float) -> Guarantee:
    """What may be promised of ``event`` at ``delta``: the upper end of the band, for its unit and relation."""
    return Guarantee(least_promise(event, delta), delta, event.unit, event.relation, event.sampler)


def least_promise(event: Event, delta: float, target: float | None = None) -> float:
    """The ε that may be promised; with a ``target``, only as exact as it takes to tell on which side of it this is."""
    return _account(event, delta, low=False, target=target).up


def _rounded(value: float) -> Band:
    """A closed form in floating point: differences of large ε and μ cost digits, fewer than eight for any event."""
    return Band.between(value * (1 - 1e-8), value * (1 + 1e-8))


def _allocated(
    event: RandomAllocation, shown: Band, above: Callable[..., float], below: Callable[..., float] | None
) -> Band:
    """Between what a statistic shows of the whole epochs, and the lesser of both upper bounds; ``shown`` is one."""
    if event.batches == 1:
        return shown
    up = min(shown.up, above(event.epoch, event.epochs))
    return Band.between(below(event.epoch, max(1, event.steps // event.batches)) if below else 0.0, up)


def _bracket(
    event: SubsampledGaussian,
    worst: WorstCase,
    bounds: _Bounds,
    revealed: Callable[[], Band],
    refuted: Callable[[], float] | None,
    target: float | None = None,
) -> Band:
    """Bounds of the dominating laws, and of adversaries that exist; none of these if ``refuted`` is None.

    What holds if participation is told (``revealed``) holds if it is not. Where no lattice shows anything, simple tests
    may (``refuted``).
    """
    least, up = _largest(dominating(event, worst), bounds, AIM, target)
    if worst.knowledge is not Knowledge.COUNTED:
        up = min(up, revealed().up)
    if refuted is None:
        return Band.between(0.0, up)
    if worst.knowledge not in (Knowledge.PAIR, Knowledge.DIRECTED):  # else the dominating laws are attained
        laws = adversaries(event, worst)
        least = _largest(laws, bounds, _COARSE)[0] if laws else 0.0
    return Band.between(least if least > 0 else min(up, refuted()), up)


def _largest(laws: Sequence[Law], bounds: _Bounds, aim: float, target: float | None = None) -> _Ends:
    """Bounds around the largest answer among ``laws``, looking closer only at those that may have it."""
    if len(laws) == 1:
        return bounds(laws[0], aim, None)
    ends = [bounds(law, 1.0, None) for law in laws]
    best = max(low for low, _ in ends)
    if target is None or best <= target < max(up for _, up in ends):
        ends = [
            bounds(law, aim, (low, up)) if up >= best and up - low > aim * up else (low, up)
            for law, (low, up) in zip(laws, ends, strict=True)
        ]
    return max(low for low, _ in ends), max(up for _, up in ends)
