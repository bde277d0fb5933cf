"""The engine's only way to the accountants: noise for a target, and what a number of steps has spent."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from elementdp.errors import ArgumentError, at_least, nonnegative, one_of, positive, probability
from elementdp.privacy import Guarantee, Relation, Sampler, SubsampledGaussian, Unit, account, calibrate


@dataclass(frozen=True)
class Target:
    """The privacy wanted of a whole run."""

    epsilon: float
    delta: float
    unit: Unit = Unit.ELEMENT

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        probability("delta", self.delta, low_open=True, high_open=True)
        object.__setattr__(self, "unit", Unit(one_of("unit", self.unit, Unit)))


@dataclass(frozen=True)
class Budget:
    """T steps of the subsampled Gaussian sum with noise ρσ. Each group's vector has norm at most ρ.

    Clipping by element, ``elements_per_user`` bounds K ∧ M, the groups of any one user (None: no bound is used). For
    the unit ``USER`` a user is one group, so the bound is 1. σ = 0 is no privacy: ε = ∞.
    """

    sampler: Sampler
    q: float
    sigma: float
    steps: int
    delta: float
    unit: Unit = Unit.ELEMENT
    elements_per_user: int | None = None

    def __post_init__(self) -> None:
        for name, kind in (("sampler", Sampler), ("unit", Unit)):
            object.__setattr__(self, name, kind(one_of(name, getattr(self, name), kind)))
        probability("q", self.q, low_open=True)
        nonnegative("sigma", self.sigma)
        at_least("steps", self.steps, 1)
        probability("delta", self.delta, low_open=True, high_open=True)
        if self.sampler is Sampler.NONE and self.q != 1:
            raise ArgumentError("q", self.q, "1 when the sampler is none")

    def event(self, steps: int) -> SubsampledGaussian:
        """The first ``steps`` steps as the accountants see them."""
        bound = 1 if self.unit is Unit.USER else self.elements_per_user
        return SubsampledGaussian(
            sampler=self.sampler,
            q=self.q,
            sigma=self.sigma or 1.0,
            steps=steps,
            unit=self.unit,
            elements_per_user=bound,
        )

    def spent(self, steps: int) -> Guarantee:
        """The guarantee after ``steps`` steps: the upper end of what is known, never an estimate."""
        return Guarantee(_epsilon(self, steps), self.delta, self.unit, Relation.REPLACE, self.sampler)

    def calibrated(self, epsilon: float) -> "Budget":
        """The same run with the smallest σ that keeps all its steps within ``epsilon``."""
        return replace(self, sigma=calibrate(self.event(self.steps), epsilon, self.delta).sigma)


@lru_cache(maxsize=256)  # progress, checkpoints and results ask for the same steps
def _epsilon(budget: Budget, steps: int) -> float:
    if steps == 0:
        return 0.0
    return math.inf if budget.sigma == 0 else account(budget.event(steps), budget.delta).up
