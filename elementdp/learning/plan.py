"""What a run is asked for, as values: the privacy wanted or the noise, and the plan of its steps."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from elementdp.errors import ArgumentError, at_least, nonnegative, one_of, positive, probability
from elementdp.learning.clipping import Method
from elementdp.learning.domain import Domain
from elementdp.privacy import Sampler, SubsampledGaussian, Unit, calibrate, worst_case

OptimizerMaker = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


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
        q: the chance of a user, or of a (user, element) pair, to take part in a step; 1 without a sampler.
        sampler: what the coin of rate q decides on.
        step_size: α, or α_k = α₀ k^(-β) as a :class:`StepSize`.
        elements_per_user: a public bound on the elements of any user (None: users may have any number).
        domain: a bounded Θ, a :class:`Ball` or :class:`Box`.
        optimizer: makes a torch optimizer from the parameters, instead of plain steps of ``step_size``.
        method: how group gradients are found; all methods are exact, and ``auto`` takes the fastest.
        precision: ``torch.bfloat16`` or ``torch.float16`` for the passes through the model; sums stay in
            full precision.

    Raises:
        ArgumentError: for a value out of range, and for an optimizer along with a bounded Θ.

    >>> Plan(steps=100, q=0.1, rho=1.0, step_size=StepSize(0.5, beta=0.6)).sampler.words
    'Poisson sampling of (user, element) pairs'
    """

    steps: int
    rho: float
    q: float = 1.0
    sampler: Sampler = Sampler.POISSON_PAIRS
    step_size: StepSize | float = 0.1
    elements_per_user: int | None = None
    domain: Domain | None = None
    optimizer: OptimizerMaker | None = None
    method: Method = Method.AUTO
    precision: torch.dtype | None = None

    def __post_init__(self) -> None:
        at_least("steps", self.steps, 1)
        probability("q", self.q, low_open=True)
        for name, kind in (("sampler", Sampler), ("method", Method)):
            object.__setattr__(self, name, kind(one_of(name, getattr(self, name), kind)))
        if not isinstance(self.rho, int | float) or not self.rho > 0:
            raise ArgumentError("rho", self.rho, "> 0 (infinity for no clipping)")
        if self.sampler is Sampler.NONE and self.q != 1:
            raise ArgumentError("q", self.q, "1 when the sampler is none")
        if not isinstance(self.step_size, StepSize):
            object.__setattr__(self, "step_size", StepSize(self.step_size))
        if self.elements_per_user is not None:
            at_least("elements_per_user", self.elements_per_user, 1)
        if self.precision not in (None, torch.bfloat16, torch.float16):
            raise ArgumentError("precision", self.precision, "None, torch.bfloat16 or torch.float16")
        if self.optimizer is not None and self.domain is not None:
            raise ArgumentError(
                "optimizer", self.optimizer, "left out when Θ is bounded: Algorithm 1 projects a plain step"
            )

    def step(self, k: int) -> float:
        """α_k."""
        assert isinstance(self.step_size, StepSize)
        return self.step_size(k)

    def event(self, privacy: Target | Noise) -> SubsampledGaussian | None:
        """The run as the accountants see it, its σ calibrated for a target; None without noise.

        A user is one group when users are the unit, so that the bound on a user's vectors is then 1.
        """
        if not isinstance(privacy, Target | Noise):
            raise ArgumentError("privacy", privacy, "Target(epsilon, delta, unit) or Noise(sigma, delta, unit)")
        if isinstance(privacy, Noise) and privacy.sigma == 0:
            return None
        if math.isinf(self.rho):
            raise ArgumentError("rho", self.rho, "finite: noise in units of ρ protects only what is clipped to ρ")
        event = SubsampledGaussian(
            sampler=self.sampler,
            q=self.q,
            sigma=privacy.sigma if isinstance(privacy, Noise) else 1.0,
            steps=self.steps,
            unit=privacy.unit,
            elements_per_user=1 if privacy.unit is Unit.USER else self.elements_per_user,
        )
        worst_case(event)  # refuses a combination without a proof before any work
        return event if isinstance(privacy, Noise) else calibrate(event, privacy.epsilon, privacy.delta)
