"""The variants an image figure compares: what is protected, how it is sampled and counted, and so how much noise."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from elementdp.errors import ArgumentError
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
    paper_delta,
)


class Accounting(StrEnum):
    """How the ε of a private variant is counted; NONE is training without privacy."""

    PRINTED = "as printed"  # users sampled, noise by the paper's accountant for the claimed ε
    TRUE = "as printed, true ε"  # users sampled, noise until the true ε is what the legend says
    PAIRS = "pairs sampled"  # (user, element) pairs sampled, noise by a true accountant
    ORDER = "fixed order"  # users in a fixed order of batches, nothing is drawn
    CORRELATED = "fixed order, correlated noise"
    ALLOCATED = "pairs allocated"  # each pair in one random step of each epoch
    NONE = "non-private"


WITHOUT_COINS = {
    Accounting.ORDER: Sampler.FIXED_ORDER,
    Accounting.CORRELATED: Sampler.FIXED_ORDER,
    Accounting.ALLOCATED: Sampler.ALLOCATED_PAIRS,
}
"""Ways of the chapter on training without coins, beyond the paper: they go through the data in epochs."""

BANDS = 8
"""Steps over which the noise of a fixed order is correlated."""


@dataclass(frozen=True, order=True)
class Variant:
    """One curve of a figure: what is protected, at which ε, counted how, for n users with k of K elements."""

    accounting: Accounting
    unit: Unit
    epsilon: float
    k: int
    clusters: int  # K
    users: int  # n

    def __post_init__(self) -> None:
        if self.accounting in (Accounting.PAIRS, *WITHOUT_COINS) and self.unit is Unit.USER:
            known = "another for whole users: sampling users is already right for them"
            raise ArgumentError("accounting", self.accounting, known)
        if (self.accounting is Accounting.NONE) != math.isinf(self.epsilon):
            raise ArgumentError("epsilon", self.epsilon, "infinite exactly for the non-private variant")

    @property
    def sampler(self) -> Sampler:
        """What the coin of rate q decides on."""
        others = {Accounting.PAIRS: Sampler.POISSON_PAIRS, **WITHOUT_COINS}
        return others.get(self.accounting, Sampler.POISSON_USERS)

    @property
    def delta(self) -> float:
        """The paper's δ for this number of users."""
        return paper_delta(self.users)

    @property
    def label(self) -> str:
        """The variant's name in a legend."""
        if self.accounting is Accounting.NONE:
            return f"non-private, {self.k}/{self.clusters}"
        return f"{self.unit}, {self.accounting}, ε = {self.epsilon:g}, {self.k}/{self.clusters}"


@dataclass(frozen=True)
class Schedule:
    """Sizes that decide the accounting beside the variant: m images a user, rate q, T steps."""

    images: int
    q: float
    steps: int


def in_epochs(variant: Variant, schedule: Schedule) -> Schedule:
    """The schedule with a whole number of batches, for ways that need one, at equal work."""
    if variant.accounting not in WITHOUT_COINS:
        return schedule
    batches = max(1, round(1 / schedule.q))
    return replace(schedule, q=1 / batches, steps=max(1, round(schedule.steps * schedule.q * batches)))


@cache
def correlation_for(variant: Variant, schedule: Schedule) -> Correlation:
    """How the noise of different steps hangs together: as is best for the sums of all steps of the run."""
    bands = BANDS if variant.accounting is Accounting.CORRELATED else 1
    return Correlation.optimised(bands, schedule.steps, round(1 / schedule.q))


def event(variant: Variant, schedule: Schedule, sigma: float) -> SubsampledGaussian | FixedOrder | RandomAllocation:
    """The T noisy sums as the accountants see them.

    A user may have images in K ∧ m elements whatever k the experiment gives them: privacy is for every data set.
    """
    most = 1 if variant.unit is Unit.USER else min(variant.clusters, schedule.images)
    if variant.accounting is Accounting.ALLOCATED:
        return RandomAllocation(sigma, schedule.steps, round(1 / schedule.q))
    if variant.accounting in WITHOUT_COINS:
        correlation = correlation_for(variant, schedule)
        return FixedOrder(sigma, schedule.steps, round(1 / schedule.q), correlation=correlation)
    return SubsampledGaussian(
        sampler=variant.sampler,
        q=schedule.q,
        sigma=sigma,
        steps=schedule.steps,
        unit=variant.unit,
        elements_per_user=most,
    )


@cache
def noise_for(variant: Variant, schedule: Schedule) -> float:
    """The σ (in units of ρ) the variant uses: by the paper's claim if printed, else by the true accountant."""
    if variant.accounting is Accounting.NONE:
        return 0.0
    run = event(variant, schedule, 1.0)
    if variant.accounting is Accounting.PRINTED and isinstance(run, SubsampledGaussian):
        return calibrate_as_printed(run, variant.epsilon, variant.delta).sigma
    return calibrate(run, variant.epsilon, variant.delta).sigma


@cache
def true_epsilon(variant: Variant, schedule: Schedule) -> Band:
    """The ε the variant's run really has; infinite without noise."""
    sigma = noise_for(variant, schedule)
    if sigma == 0:
        return Band(math.inf, math.inf, math.inf)
    return account(event(variant, schedule, sigma), variant.delta)


def accountings(unit: Unit, epsilon: float, k: int, clusters: int, users: int) -> list[Variant]:
    """One private curve of the paper's legend, once for each accounting it can have."""
    return [
        Variant(accounting, unit, epsilon, k, clusters, users)
        for accounting in (Accounting.PRINTED, Accounting.TRUE, Accounting.PAIRS)
        if unit is Unit.ELEMENT or accounting is not Accounting.PAIRS
    ]


def non_private(k: int, clusters: int, users: int) -> Variant:
    """Training without privacy."""
    return Variant(Accounting.NONE, Unit.ELEMENT, math.inf, k, clusters, users)
