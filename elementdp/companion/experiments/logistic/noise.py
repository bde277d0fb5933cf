"""How much noise each line of the figure adds for a privacy level, and what privacy it then really has."""

from dataclasses import replace
from enum import StrEnum
from functools import cache

from elementdp.companion.experiments.logistic.model import Design
from elementdp.privacy import (
    Band,
    Correlation,
    FixedOrder,
    RandomAllocation,
    Sampler,
    SubsampledGaussian,
    Unit,
    account,
    calibrate,
    calibrate_as_printed,
)


class LogisticMethod(StrEnum):
    """The lines of the figure."""

    ELEMENT_PRINTED = "element, as printed"  # users sampled, noise by the paper's accountant
    ELEMENT_REPAIRED = "element, repaired"  # (user, element) pairs sampled, noise by a true accountant
    USER_PRINTED = "user, as printed"  # one cluster (K = 1), noise by the paper's accountant
    USER_SUMMED = "user, summed elements"  # Algorithm 1 on the K elements with K ∧ M times the noise, as printed
    USER_TRUE = "user, true accountant"  # the same with noise by a true accountant; sampling users is right here
    NON_PRIVATE = "non-private"
    ELEMENT_USERS = "element, users sampled, true accountant"  # as the paper samples, with the noise that takes
    ELEMENT_ORDER = "element, fixed order"  # beyond the paper: users in a fixed order of 1/q batches
    ELEMENT_CORRELATED = "element, fixed order, correlated noise"
    ELEMENT_ALLOCATED = "element, pairs allocated"  # each pair in one random step of each epoch of 1/q

    @property
    def unit(self) -> Unit:
        """Whose data the method protects."""
        return Unit.ELEMENT if self in _ELEMENT else Unit.USER

    @property
    def sampler(self) -> Sampler:
        """What the method's coin decides on."""
        return _SAMPLERS.get(self, Sampler.POISSON_USERS)

    @property
    def clips_users(self) -> bool:
        """Whether a user's data are averaged and clipped as one (Algorithm 1 with K = 1), not element by element."""
        return self in (LogisticMethod.USER_PRINTED, LogisticMethod.USER_TRUE)

    @property
    def printed(self) -> bool:
        """Whether its noise follows the paper's claim."""
        return self in (LogisticMethod.ELEMENT_PRINTED, LogisticMethod.USER_PRINTED, LogisticMethod.USER_SUMMED)


_SAMPLERS = {
    LogisticMethod.ELEMENT_REPAIRED: Sampler.POISSON_PAIRS,
    LogisticMethod.ELEMENT_USERS: Sampler.POISSON_USERS,
    LogisticMethod.ELEMENT_ORDER: Sampler.FIXED_ORDER,
    LogisticMethod.ELEMENT_CORRELATED: Sampler.FIXED_ORDER,
    LogisticMethod.ELEMENT_ALLOCATED: Sampler.ALLOCATED_PAIRS,
}
WITHOUT_COINS = tuple(_SAMPLERS)[1:]
"""The methods of the chapter on training without coins, beside those of the figure."""

PAPER = tuple(method for method in LogisticMethod if method not in WITHOUT_COINS)
"""The methods of the paper's figure, and their repairs."""

_ELEMENT = (LogisticMethod.ELEMENT_PRINTED, *_SAMPLERS, LogisticMethod.NON_PRIVATE)
_BANDS = 8  # steps over which noise is correlated


@cache
def correlation_for(method: LogisticMethod, design: Design, q: float) -> Correlation:
    """How the noise of different steps hangs together: as is best for the sums of all steps, of size 1/√k."""
    bands = _BANDS if method is LogisticMethod.ELEMENT_CORRELATED else 1
    return Correlation.optimised(bands, design.steps, round(1 / q), lambda k: k**-0.5)


def event(
    method: LogisticMethod, design: Design, q: float, sigma: float
) -> SubsampledGaussian | FixedOrder | RandomAllocation:
    """The T noisy sums, for the accountants.

    A user may have data in all K elements whatever k the experiment gives them: privacy is for every data set.
    """
    size = 1 if method.clips_users else min(design.elements, design.points)  # K ∧ M
    if method.sampler is Sampler.ALLOCATED_PAIRS:
        return RandomAllocation(sigma, design.steps, round(1 / q))
    if method.sampler is Sampler.FIXED_ORDER:
        return FixedOrder(sigma, design.steps, round(1 / q), correlation=correlation_for(method, design, q))
    return SubsampledGaussian(
        sampler=method.sampler, q=q, sigma=sigma, steps=design.steps, unit=method.unit, elements_per_user=size
    )


@cache
def noise_for(method: LogisticMethod, design: Design, q: float, epsilon: float) -> float:
    """The σ (in units of ρ) with which the method reports ε: the paper's claim if printed, else the true one."""
    if method is LogisticMethod.NON_PRIVATE:
        return 0.0
    run = event(method, design, q, 1.0)
    if method.printed and isinstance(run, SubsampledGaussian):
        return calibrate_as_printed(run, epsilon, design.delta).sigma
    return calibrate(run, epsilon, design.delta).sigma


@cache
def true_epsilon(
    method: LogisticMethod, design: Design, q: float, sigma: float, elements_per_user: int | None = None
) -> Band:
    """The ε the method really has; ``elements_per_user`` overrides how many elements a user may have."""
    run = event(method, design, q, sigma)
    if elements_per_user is not None:
        run = replace(run, elements_per_user=elements_per_user)
    return account(run, design.delta)
