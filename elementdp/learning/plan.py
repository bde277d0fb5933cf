"""What a run is asked for, as values: the privacy wanted or the noise, and the plan of its steps."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import nn

from elementdp.errors import ArgumentError, at_least, nonnegative, one_of, positive, probability
from elementdp.learning.domain import Domain
from elementdp.learning.passes import Method
from elementdp.privacy import (
    Correlation,
    FixedOrder,
    RandomAllocation,
    Sampler,
    SubsampledGaussian,
    Unit,
    calibrate,
    worst_case,
)

OptimizerMaker = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
SchedulerMaker = Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler]
INDEPENDENT = Correlation()
_SUCH = {"optimizer": "SGD(it, lr=0.1)", "scheduler": "lr_scheduler.StepLR(it, 100)"}
SMALLEST_RHO = 1e-12
"""Squares of smaller numbers are lost in single precision."""


class Arithmetics(StrEnum):
    """What sums and noise are made of."""

    FLOAT = "float"
    EXACT = "exact"


@dataclass(frozen=True)
class Target:
    """The privacy wanted of a whole run; the noise follows from it.

    Args:
        epsilon: the ε of the run, above zero.
        delta: its δ, between zero and one.
        unit: what is protected, and so what is averaged and clipped: everything one user has in one element, or
            everything of one user.

    Raises:
        ArgumentError: for an ε, δ or unit out of range.

    >>> Target(epsilon=3, delta=1e-5).unit.words
    'one element of one user'
    """

    epsilon: float
    delta: float
    unit: Unit = Unit.ELEMENT

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        probability("delta", self.delta, low_open=True, high_open=True)
        object.__setattr__(self, "unit", Unit(one_of("unit", self.unit, Unit)))


@dataclass(frozen=True)
class Noise:
    """The noise of a run, instead of a target: its ε at ``delta`` is counted, not chosen.

    Args:
        sigma: the deviation of the noise in units of ρ. Zero is training without privacy.
        delta: the δ at which ε is reported; it has to be given unless ``sigma`` is zero.
        unit: what is averaged and clipped, as for :class:`Target`.

    Raises:
        ArgumentError: for a σ, δ or unit out of range.

    >>> Noise(sigma=1.5, delta=1e-5, unit="user").unit.words
    'one user'
    """

    sigma: float
    delta: float | None = None
    unit: Unit = Unit.ELEMENT

    def __post_init__(self) -> None:
        nonnegative("sigma", self.sigma)
        if self.delta is not None:
            probability("delta", self.delta, low_open=True, high_open=True)
        elif self.sigma > 0:
            raise ArgumentError("delta", self.delta, "given along with sigma: without it there is no ε to report")
        object.__setattr__(self, "unit", Unit(one_of("unit", self.unit, Unit)))


@dataclass(frozen=True)
class StepSize:
    """α_k = α₀ k^(-β); β = 0 is a constant step."""

    alpha0: float
    beta: float = 0.0

    def __post_init__(self) -> None:
        positive("alpha0", self.alpha0)
        nonnegative("beta", self.beta)

    def __call__(self, k: int) -> float:
        return float(self.alpha0 * k**-self.beta)


@dataclass(frozen=True)
class Plan:
    """The steps of a run: what each one sees, how it is clipped, and how far it moves.

    Args:
        steps: the number T of steps.
        rho: every group's mean gradient is clipped to this norm (infinity: not at all, and then without noise).
        q: the chance of a user, or of a (user, element) pair, to take part in a step; 1 without a sampler, and 1/B for
            B batches in a fixed order or B steps of an epoch.
        sampler: what the coin of rate q decides on; or a fixed order of the users, drawn once before the first step; or
            one random step of each epoch for each pair, drawn anew in every epoch.
        step_size: α, or α_k = α₀ k^(-β) as a :class:`StepSize`; 0.1 unless an optimizer is given.
        elements_per_user: a public bound on the elements of any user (None: users may have any number). Of a user with
            more, so many are kept, drawn once at random.
        domain: a bounded Θ, a :class:`Ball` or :class:`Box`.
        optimizer: makes a torch optimizer from the parameters, instead of plain steps of ``step_size``.
        scheduler: makes a learning-rate scheduler from that optimizer; it moves on with every step.
        method: how group gradients are found; all methods are exact, and ``auto`` takes the fastest.
        precision: ``torch.bfloat16`` for the passes through the model; sums stay in full precision.
        noise: ``float``, or ``exact`` for sums and noise in whole numbers (:mod:`elementdp.learning.exact`).
        correlation: how the noise of different steps hangs together, in a fixed order.
        timeout: the seconds after which another process that does not answer is given up.

    Raises:
        ArgumentError: for a value out of range, and for values that exclude each other: an optimizer along with a step
            size or a bounded Θ, a scheduler without an optimizer, correlated noise with sampling or whole numbers.

    >>> Plan(steps=100, q=0.1, rho=1.0, step_size=StepSize(0.5, beta=0.6)).sampler.words
    'Poisson sampling of (user, element) pairs'
    """

    steps: int
    rho: float
    q: float = 1.0
    sampler: Sampler = Sampler.POISSON_PAIRS
    step_size: StepSize | float | None = None
    elements_per_user: int | None = None
    domain: Domain | None = None
    optimizer: OptimizerMaker | None = None
    scheduler: SchedulerMaker | None = None
    method: Method = Method.AUTO
    precision: torch.dtype | None = None
    noise: Arithmetics = Arithmetics.FLOAT
    correlation: Correlation = INDEPENDENT
    timeout: float = 600.0

    def __post_init__(self) -> None:
        at_least("steps", self.steps, 1)
        probability("q", self.q, low_open=True)
        for name, kind in (("sampler", Sampler), ("method", Method), ("noise", Arithmetics)):
            object.__setattr__(self, name, kind(one_of(name, getattr(self, name), kind)))
        if not isinstance(self.rho, int | float) or not (
            SMALLEST_RHO <= self.rho <= 1 / SMALLEST_RHO or self.rho == math.inf
        ):
            raise ArgumentError(
                "rho", self.rho, f"between {SMALLEST_RHO:g} and {1 / SMALLEST_RHO:g} (infinity for no clipping)"
            )
        if self.sampler is Sampler.NONE and self.q != 1:
            raise ArgumentError("q", self.q, "1 when the sampler is none")
        if self.sampler in (Sampler.FIXED_ORDER, Sampler.ALLOCATED_PAIRS) and abs(self.q * self.batches - 1) > 1e-9:
            raise ArgumentError("q", self.q, f"1/B for a whole number B of batches, with sampler {self.sampler}")
        if self.correlation != INDEPENDENT and (self.exact or self.sampler is not Sampler.FIXED_ORDER):
            raise ArgumentError("correlation", self.correlation, "left out unless sampler is fixed-order, noise float")
        if self.optimizer is not None and self.step_size is not None:
            raise ArgumentError("step_size", self.step_size, "left to the optimizer, which has a rate of its own")
        for name, maker in (("optimizer", self.optimizer), ("scheduler", self.scheduler)):
            if maker is not None and not callable(maker):
                raise ArgumentError(
                    name, maker, f"a function that makes one, such as lambda it: torch.optim.{_SUCH[name]}"
                )
        if self.domain is not None and not callable(getattr(self.domain, "project", None)):
            raise ArgumentError("domain", self.domain, "Ball(radius), Box(low, high), or anything with such a project")
        if self.scheduler is not None and self.optimizer is None:
            raise ArgumentError("scheduler", self.scheduler, "given along with an optimizer")
        if not isinstance(self.step_size, StepSize):
            object.__setattr__(self, "step_size", StepSize(0.1 if self.step_size is None else self.step_size))
        positive("timeout", self.timeout)
        if self.elements_per_user is not None:
            at_least("elements_per_user", self.elements_per_user, 1)
        if self.precision not in (None, torch.bfloat16):
            raise ArgumentError("precision", self.precision, "None or torch.bfloat16: float16 loses small gradients")
        if self.optimizer is not None and self.domain is not None:
            raise ArgumentError(
                "optimizer", self.optimizer, "left out when Θ is bounded: Algorithm 1 projects a plain step"
            )

    @property
    def exact(self) -> bool:
        """Whether sums and noise are whole numbers."""
        return self.noise is Arithmetics.EXACT

    @property
    def batches(self) -> int:
        """The number B of batches in a fixed order, or of steps of an epoch."""
        return round(1 / self.q)

    def step(self, k: int) -> float:
        """α_k."""
        assert isinstance(self.step_size, StepSize)
        return self.step_size(k)

    def event(self, privacy: Target | Noise) -> SubsampledGaussian | FixedOrder | RandomAllocation | None:
        """The run as the accountants see it, its σ calibrated for a target; None without noise.

        A user is one group when users are the unit, so that the bound on a user's vectors is then 1.
        """
        if not isinstance(privacy, Target | Noise):
            raise ArgumentError("privacy", privacy, "Target(epsilon, delta, unit) or Noise(sigma, delta, unit)")
        if isinstance(privacy, Noise) and privacy.sigma == 0:
            return None
        if math.isinf(self.rho):
            raise ArgumentError("rho", self.rho, "finite: noise in units of ρ protects only what is clipped to ρ")
        sigma = privacy.sigma if isinstance(privacy, Noise) else 1.0
        most = 1 if privacy.unit is Unit.USER else self.elements_per_user
        event: SubsampledGaussian | FixedOrder | RandomAllocation
        if self.sampler is Sampler.FIXED_ORDER:
            event = FixedOrder(sigma, self.steps, self.batches, privacy.unit, most, correlation=self.correlation)
        elif self.sampler is Sampler.ALLOCATED_PAIRS:
            event = RandomAllocation(sigma, self.steps, self.batches, privacy.unit, most)
        else:
            event = SubsampledGaussian(self.sampler, sigma, self.q, self.steps, privacy.unit, most)
            worst_case(event)  # refuses a combination without a proof before any work
        return event if isinstance(privacy, Noise) else calibrate(event, privacy.epsilon, privacy.delta)
