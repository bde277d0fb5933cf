"""The lines of the image figures: what is protected, how it is sampled and counted, and so how much noise it takes."""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from scipy.optimize import brentq

from elementdp.errors import ArgumentError
from elementdp.privacy import Band, Sampler, SubsampledGaussian, Unit, account, calibrate, claimed


class Way(StrEnum):
    """The ways a private line is told, and the line without privacy."""

    PRINTED = "as printed"  # users sampled, noise by the paper's accountant for the claimed ε
    TRUE = "as printed, true ε"  # users sampled, noise until the true ε is what the legend says
    PAIRS = "pairs sampled"  # (user, element) pairs sampled, noise by a true accountant
    NONE = "non-private"


@dataclass(frozen=True, order=True)
class Line:
    """One line of the legend: k of K elements a user, what is protected, at which ε, told in which way."""

    way: Way
    unit: Unit
    epsilon: float
    k: int
    clusters: int  # K
    users: int  # n

    def __post_init__(self) -> None:
        if self.way is Way.PAIRS and self.unit is Unit.USER:
            raise ArgumentError("way", self.way, "another for whole users: sampling users is already right for them")
        if (self.way is Way.NONE) != math.isinf(self.epsilon):
            raise ArgumentError("epsilon", self.epsilon, "infinite exactly for the non-private line")

    @property
    def sampler(self) -> Sampler:
        """What the coin of rate q decides on."""
        return Sampler.POISSON_PAIRS if self.way is Way.PAIRS else Sampler.POISSON_USERS

    @property
    def label(self) -> str:
        """The line's name in a legend."""
        if self.way is Way.NONE:
            return f"non-private, {self.k}/{self.clusters}"
        return f"{self.unit}, {self.way}, ε = {self.epsilon:g}, {self.k}/{self.clusters}"


@dataclass(frozen=True)
class Schedule:
    """Sizes that decide the accounting beside the line: m images a user, rate q, T steps."""

    images: int
    q: float
    steps: int


def event(line: Line, schedule: Schedule, sigma: float) -> SubsampledGaussian:
    """The T noisy sums as the accountants see them.

    A user may have images in K ∧ m elements whatever k the experiment gives them: privacy is for every data set.
    """
    most = 1 if line.unit is Unit.USER else min(line.clusters, schedule.images)
    return SubsampledGaussian(
        sampler=line.sampler,
        q=schedule.q,
        sigma=sigma,
        steps=schedule.steps,
        unit=line.unit,
        elements_per_user=most,
    )


def delta(line: Line) -> float:
    """δ = n^(-1.1), as in every experiment of the paper."""
    return float(line.users**-1.1)


@cache
def noise_for(line: Line, schedule: Schedule) -> float:
    """The σ (in units of ρ) the line uses: by the paper's claim if printed, else by the true accountant."""
    if line.way is Way.NONE:
        return 0.0
    if line.way is not Way.PRINTED:
        return calibrate(event(line, schedule, 1.0), line.epsilon, delta(line)).sigma

    def excess(log_sigma: float) -> float:
        return math.log(claimed(event(line, schedule, math.exp(log_sigma)), delta(line)) / line.epsilon)

    low, high = math.log(0.05), math.log(0.1)
    while excess(high) > 0:
        low, high = high, high + 1.0
    return math.exp(brentq(excess, low, high, xtol=1e-6))


@cache
def true_epsilon(line: Line, schedule: Schedule) -> Band:
    """The ε the line's run really has; infinite without noise."""
    sigma = noise_for(line, schedule)
    if sigma == 0:
        return Band(math.inf, math.inf, math.inf)
    return account(event(line, schedule, sigma), delta(line))


def three_ways(unit: Unit, epsilon: float, k: int, clusters: int, users: int) -> list[Line]:
    """One private line of the legend in every way it can be told."""
    ways = (Way.PRINTED, Way.TRUE, Way.PAIRS) if unit is Unit.ELEMENT else (Way.PRINTED, Way.TRUE)
    return [Line(way, unit, epsilon, k, clusters, users) for way in ways]


def non_private(k: int, clusters: int, users: int) -> Line:
    """A line without privacy."""
    return Line(Way.NONE, Unit.ELEMENT, math.inf, k, clusters, users)
