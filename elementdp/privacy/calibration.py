"""The noise for a target: the smallest σ whose ε may be promised."""

import math
import warnings
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from scipy.optimize import brentq

from elementdp.errors import ArgumentError, positive, probability
from elementdp.privacy._engine.domination import worst_case
from elementdp.privacy.accountant import least_promise
from elementdp.privacy.allocation import RandomAllocation
from elementdp.privacy.digits import rounded_up
from elementdp.privacy.events import LEAST_Q, SIGMAS, SubsampledGaussian
from elementdp.privacy.fixed_order import FixedOrder
from elementdp.privacy.guarantee import Sampler

Run = TypeVar("Run", bound=SubsampledGaussian | FixedOrder | RandomAllocation)
_LEAST, _MOST = (math.log(sigma) for sigma in SIGMAS)
_NEAR, _CLOSE = 5e-4, 2e-5  # how well log σ is found first, and then
_CLIFF = 20.0  # how steeply log ε falls with log σ where the bound jumps, or ε comes to a cliff
_STEEP = 2.0  # beyond this a logarithm of ε says nothing about where the target is, only on which side


class LeastNoiseWarning(UserWarning):
    """Noise at the lower edge of what the accountants are tested for: less may do."""


def calibrate(event: Run, epsilon: float, delta: float) -> Run:
    """``event`` with the smallest σ (to 1e-4, rounded up) whose ``account(…).up`` is at most ``epsilon``.

    Where this ``up`` jumps past ``epsilon`` the σ found is enough, as everywhere, and within 1e-3 of the smallest.

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
    search = _NoiseSearch(event, epsilon, delta)
    start, stride = event.sigma, 1.0
    if isinstance(event, RandomAllocation) and event.batches > 1:
        start, stride = _close_to(event, epsilon, delta), 0.02
    low, high = search.bracket(min(max(math.log(start), _LEAST), _MOST), stride)
    if low == high:
        up = rounded_up(least_promise(search.noisier(_LEAST), delta))
        warnings.warn(
            f"sigma = {SIGMAS[0]:g} is the least noise the accountants are tested for, and already has epsilon = "
            f"{up}, within {epsilon:g}: how much less would do is not known",
            LeastNoiseWarning,
            stacklevel=2,
        )
        return search.noisier(_LEAST)
    return search.noisier(search.between(low, high))


def _close_to(event: RandomAllocation, epsilon: float, delta: float) -> float:
    """The σ for sampled pairs: that for allocated ones is close, and takes longer to count."""
    rate = max(1 / event.batches, LEAST_Q)
    pairs = SubsampledGaussian(Sampler.POISSON_PAIRS, 1.0, rate, event.steps, relation=event.relation)
    return calibrate(pairs, epsilon, delta).sigma


@dataclass(frozen=True)
class _NoiseSearch(Generic[Run]):
    """The search for the least log σ with which ``event`` keeps to ``epsilon``; ``known`` is what was counted."""

    event: Run
    epsilon: float
    delta: float
    known: dict[float, float] = field(default_factory=dict)

    def noisier(self, log_sigma: float) -> Run:
        """The event with another σ."""
        return replace(self.event, sigma=min(max(math.exp(log_sigma), SIGMAS[0]), SIGMAS[1]))

    def excess(self, log_sigma: float) -> float:
        """log of ε over the target, as exact as it takes to have the right sign."""
        if log_sigma not in self.known:
            up = least_promise(self.noisier(log_sigma), self.delta, self.epsilon)
            self.known[log_sigma] = math.log(max(up, 1e-12)) - math.log(self.epsilon)
        return self.known[log_sigma]

    def bracket(self, start: float, stride: float) -> tuple[float, float]:
        """Too little and enough, ever longer steps from ``start``; the least tested noise twice if that is enough."""
        low = high = start
        step = stride
        while (above := self.excess(high)) > 0:
            if high == _MOST:
                raise ArgumentError("epsilon", self.epsilon, f"reachable with sigma at most {SIGMAS[1]:g}")
            # ε falls as 1/σ or faster: a long step goes no further than that, for far beyond the answer ε is slow to
            # count.
            further = step if step < 4 else min(step, above + 0.1)
            low, high, step = high, min(high + further, _MOST), 2 * step
        step = stride
        while low == high or self.excess(low) <= 0:
            if low == _LEAST:
                return low, low
            low, step = max(low - step, _LEAST), 2 * step
        return low, high

    def between(self, low: float, high: float) -> float:
        """The least log σ that is known to be enough; looked at closely unless the bound jumps past the target."""
        for close in (_NEAR, _CLOSE):
            brentq(self._bounded, low, high, xtol=close, disp=False)
            high = min(place for place, excess in self.known.items() if low < place <= high and excess <= 0)
            low = max(place for place, excess in self.known.items() if low <= place < high and excess > 0)
            if self.excess(low) - self.excess(high) > _CLIFF * (high - low):
                break
        return high

    def _bounded(self, log_sigma: float) -> float:
        return min(max(self.excess(log_sigma), -_STEEP), _STEEP)
