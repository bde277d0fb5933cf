"""How much noise each line of the figure adds for a privacy level, and what privacy it then really has."""

from dataclasses import replace
from enum import StrEnum
from functools import cache

from elementdp.companion.experiments.logistic.model import Design
from elementdp.privacy import Band, Sampler, SubsampledGaussian, Unit, account, calibrate, calibrate_as_printed


class LogisticMethod(StrEnum):
    """The lines of the figure."""

    ELEMENT_PRINTED = "element, as printed"  # users sampled, noise by the paper's accountant
    ELEMENT_REPAIRED = "element, repaired"  # (user, element) pairs sampled, noise by a true accountant
    USER_PRINTED = "user, as printed"  # one cluster (K = 1), noise by the paper's accountant
    USER_SUMMED = "user, summed elements"  # Algorithm 1 on the K elements with K ∧ M times the noise, as printed
    USER_TRUE = "user, true accountant"  # the same with noise by a true accountant; sampling users is right here
    NON_PRIVATE = "non-private"

    @property
    def unit(self) -> Unit:
        """Whose data the method protects."""
        return Unit.ELEMENT if self in _ELEMENT else Unit.USER

    @property
    def sampler(self) -> Sampler:
        """What the method's coin decides on."""
        return Sampler.POISSON_PAIRS if self is LogisticMethod.ELEMENT_REPAIRED else Sampler.POISSON_USERS

    @property
    def clips_users(self) -> bool:
        """Whether a user's data are averaged and clipped as one (Algorithm 1 with K = 1), not element by element."""
        return self in (LogisticMethod.USER_PRINTED, LogisticMethod.USER_TRUE)

    @property
    def printed(self) -> bool:
        """Whether its noise follows the paper's claim."""
        return self in (LogisticMethod.ELEMENT_PRINTED, LogisticMethod.USER_PRINTED, LogisticMethod.USER_SUMMED)


_ELEMENT = (LogisticMethod.ELEMENT_PRINTED, LogisticMethod.ELEMENT_REPAIRED, LogisticMethod.NON_PRIVATE)


def event(method: LogisticMethod, design: Design, q: float, sigma: float) -> SubsampledGaussian:
    """The T noisy sums, for the accountants.

    A user may have data in all K elements whatever k the experiment gives them: privacy is for every data set.
    """
    size = 1 if method.clips_users else min(design.elements, design.points)  # K ∧ M
    return SubsampledGaussian(
        sampler=method.sampler, q=q, sigma=sigma, steps=design.steps, unit=method.unit, elements_per_user=size
    )


@cache
def noise_for(method: LogisticMethod, design: Design, q: float, epsilon: float) -> float:
    """The σ (in units of ρ) with which the method reports ε: the paper's claim if printed, else the true one."""
    if method is LogisticMethod.NON_PRIVATE:
        return 0.0
    run = event(method, design, q, 1.0)
    if method.printed:
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
