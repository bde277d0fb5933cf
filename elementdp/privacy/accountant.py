"""How it is counted: ε and δ of a run as (low, estimate, up), and the noise for a target."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TypeVar

from scipy.optimize import brentq

from elementdp.errors import ArgumentError, nonnegative, positive, probability
from elementdp.privacy._engine import allocated, far
from elementdp.privacy._engine.adversaries import Law, adversaries, dominating
from elementdp.privacy._engine.domination import Knowledge, WorstCase, worst_case
from elementdp.privacy._engine.fourier import AIM, delta_bounds, epsilon_bounds
from elementdp.privacy._engine.participation import revealed_delta, revealed_epsilon
from elementdp.privacy.allocation import RandomAllocation
from elementdp.privacy.band import Band
from elementdp.privacy.curves import gaussian_delta, gaussian_epsilon
from elementdp.privacy.digits import rounded_up
from elementdp.privacy.events import LEAST_Q, SIGMAS, SubsampledGaussian
from elementdp.privacy.fixed_order import FixedOrder
from elementdp.privacy.guarantee import Guarantee, Sampler

Event = SubsampledGaussian | FixedOrder | RandomAllocation
Run = TypeVar("Run", bound=SubsampledGaussian | FixedOrder | RandomAllocation)
_Bounds = Callable[[Law, float], tuple[float, float]]
_COARSE = 5e-3  # accuracy of lower bounds that are anyway far below the upper one


class LeastNoiseWarning(UserWarning):
    """Noise at the lower edge of what the accountants are tested for: less may do."""


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


def _account(event: Event, delta: float, *, low: bool = True) -> Band:
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

    def bounds(law: Law, aim: float) -> tuple[float, float]:
        return epsilon_bounds(law, event.steps, delta, aim=aim)

    refuted = partial(far.refuted_epsilon, event, worst, delta)
    return _bracket(event, worst, bounds, revealed, refuted if low else None)


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

    def bounds(law: Law, aim: float) -> tuple[float, float]:
        return delta_bounds(law, event.steps, epsilon, aim=aim)

    return _bracket(event, worst, bounds, revealed, partial(far.refuted_delta, event, worst, epsilon))


def promise(event: Event, delta: float) -> Guarantee:
    """What may be promised of ``event`` at ``delta``: the upper end of the band, for its unit and relation."""
    return Guarantee(_account(event, delta, low=False).up, delta, event.unit, event.relation, event.sampler)


def calibrate(event: Run, epsilon: float, delta: float) -> Run:
    """``event`` with the smallest σ (to 1e-4, rounded up) whose ``account(…).up`` is at most ``epsilon``.

    If even the least noise the accountants are tested for keeps within ``epsilon``, that is what is returned, with a
    :class:`LeastNoiseWarning`: it is no answer to how little would do.

    Args:
        event: the run; its own σ is only where the search starts.
        epsilon: the target, above 0.
        delta: the δ of the target, above 0 and below 1.

    Returns:
        The same run with another σ.

    Raises:
        ArgumentError: ``epsilon`` or ``delta`` is out of range, or no tested σ reaches the target.
        NoGuaranteeError: nothing is proved of the event's unit, relation and sampler together.

    >>> run = SubsampledGaussian(Sampler.POISSON_PAIRS, sigma=1.0, q=0.01, steps=40_000)
    >>> private = calibrate(run, epsilon=3, delta=5e-5)
    >>> account(private, delta=5e-5).up <= 3
    True
    """
    positive("epsilon", epsilon)
    probability("delta", delta, low_open=True, high_open=True)
    if isinstance(event, SubsampledGaussian):
        worst_case(event)  # refuse before any work

    def noisier(log_sigma: float) -> Run:
        return replace(event, sigma=min(max(math.exp(log_sigma), SIGMAS[0]), SIGMAS[1]))

    @cache
    def excess(log_sigma: float) -> float:
        up = _account(noisier(log_sigma), delta, low=False).up
        return math.log(max(up, 1e-12)) - math.log(epsilon)

    start, stride = event.sigma, 1.0
    if isinstance(event, RandomAllocation) and event.batches > 1:  # sampling pairs is close, and counted faster
        rate = max(1 / event.batches, LEAST_Q)
        pairs = SubsampledGaussian(Sampler.POISSON_PAIRS, 1.0, rate, event.steps, relation=event.relation)
        start, stride = calibrate(pairs, epsilon, delta).sigma, 0.02
    low, high = _around(excess, math.log(start), stride)
    if excess(high) > 0:
        raise ArgumentError("epsilon", epsilon, f"reachable with sigma at most {SIGMAS[1]:g}")
    if excess(low) <= 0:
        up = rounded_up(_account(noisier(low), delta, low=False).up)
        warnings.warn(
            f"sigma = {SIGMAS[0]:g} is the least noise the accountants are tested for, and already has epsilon = "
            f"{up}, within {epsilon:g}: how much less would do is not known",
            LeastNoiseWarning,
            stacklevel=2,
        )
        return noisier(low)
    root, step = float(brentq(excess, low, high, xtol=2e-5)), 4e-5
    while excess(root) > 0:
        root, step = min(root + step, math.log(SIGMAS[1])), 2 * step
    return noisier(root)


def _around(excess: Callable[[float], float], start: float, stride: float) -> tuple[float, float]:
    """Two values of log σ with the target between them; if it lies beyond all that are tested, the pair ends there."""
    least, most = (math.log(sigma) for sigma in SIGMAS)
    low = high = min(max(start, least), most)
    step = stride
    while (above := excess(high)) > 0 and high < most:
        # ε falls as 1/σ or faster: a long step goes no further than that, for far beyond the answer ε is slow to count.
        further = step if step < 4 else min(step, above + 0.1)
        low, high, step = high, min(high + further, most), 2 * step
    step = stride
    while above <= 0 and (low == high or excess(low) <= 0) and low > least:
        low, step = max(min(low, high) - step, least), 2 * step
    return low, high


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
) -> Band:
    """Bounds of the dominating laws, and of adversaries that exist; none of these if ``refuted`` is None.

    What holds if participation is told (``revealed``) holds if it is not. Where no lattice shows anything, simple tests
    may (``refuted``).
    """
    least, up = _largest(dominating(event, worst), bounds, AIM)
    if worst.knowledge is not Knowledge.COUNTED:
        up = min(up, revealed().up)
    if refuted is None:
        return Band.between(0.0, up)
    if worst.knowledge not in (Knowledge.PAIR, Knowledge.DIRECTED):  # else the dominating laws are attained
        laws = adversaries(event, worst)
        least = _largest(laws, bounds, _COARSE)[0] if laws else 0.0
    return Band.between(least if least > 0 else min(up, refuted()), up)


def _largest(laws: Sequence[Law], bounds: _Bounds, aim: float) -> tuple[float, float]:
    """Bounds around the largest answer among ``laws``, looking closer only at those that may have it."""
    if len(laws) == 1:
        return bounds(laws[0], aim)
    ends = [bounds(law, 1.0) for law in laws]
    best = max(low for low, _ in ends)
    ends = [
        bounds(law, aim) if up >= best and up - low > aim * up else (low, up)
        for law, (low, up) in zip(laws, ends, strict=True)
    ]
    return max(low for low, _ in ends), max(up for _, up in ends)
