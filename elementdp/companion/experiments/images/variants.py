"""The variants an image figure compares: what is protected, how it is sampled and counted, and so how much noise."""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from elementdp.errors import ArgumentError
from elementdp.privacy import (
    Band,
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
    NONE = "non-private"


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
        if self.accounting is Accounting.PAIRS and self.unit is Unit.USER:
            known = "another for whole users: sampling users is already right for them"
            raise ArgumentError("accounting", self.accounting, known)
        if (self.accounting is Accounting.NONE) != math.isinf(self.epsilon):
            raise ArgumentError("epsilon", self.epsilon, "infinite exactly for the non-private variant")

    @property
    def sampler(self) -> Sampler:
        """What the coin of rate q decides on."""
        return Sampler.POISSON_PAIRS if self.accounting is Accounting.PAIRS else Sampler.POISSON_USERS

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


def event(variant: Variant, schedule: Schedule, sigma: float) -> SubsampledGaussian:
    """The T noisy sums as the accountants see them.

    A user may have images in K ∧ m elements whatever k the experiment gives them: privacy is for every data set.
    """
    most = 1 if variant.unit is Unit.USER else min(variant.clusters, schedule.images)
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
    if variant.accounting is Accounting.PRINTED:
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
