"""The budget of a release: one Gaussian μ for a wanted (ε, δ), split between its stages and added up again.

A stage adds noise of scale σ to a query of ℓ2 sensitivity Δ. Were the noise a continuous Gaussian, stages chosen
adaptively would compose to a single Gaussian shifted by μ = √ΣΔ²/σ² (Dong, Roth & Su, *Gaussian differential
privacy*, corollary 3.3), whose (ε, δ) curve is known exactly. The noise is discrete, which costs a further
:func:`elementdp.histogram.noise.rounding_epsilon`; discovery of items costs a further δ. :meth:`Ledger.check` adds all
of it up from what was really done and refuses a release that would cost more than was asked for.
"""

import math
from dataclasses import dataclass, field

from elementdp.errors import ArgumentError, NoGuaranteeError, at_least, positive, probability
from elementdp.histogram.noise import DRAW_DELTA, rounding_epsilon
from elementdp.privacy.curves import gaussian_delta, gaussian_mu

MARGIN = 2.0**-20
"""Share of ε and δ kept back for the discreteness of the noise; the fine grid needs far less."""

MOST_WHOLE_NUMBERS = 2.0**24
"""The whole numbers that one release may move at most: a hopeless ε is refused before the table is read."""


@dataclass(frozen=True)
class Spent:
    """What one stage cost: Gaussian ``mu`` and ``delta``. Sensitivity and noise are in counts."""

    stage: str
    mu: float
    delta: float
    sensitivity: float
    noise: float


@dataclass(frozen=True)
class Split:
    """Shares of μ² (and of δ) for the stages beside the release itself; what is left is the release's.

    ``clipping`` pays for the estimate of how much weight the bound ρ removed; with 0 there is no estimate.
    """

    discovery: float = 0.25
    radius: float = 0.15
    clipping: float = 0.02
    threshold_delta: float = 0.5

    def __post_init__(self) -> None:
        for name in ("discovery", "radius", "threshold_delta"):
            probability(name, getattr(self, name), low_open=True, high_open=True)
        probability("clipping", self.clipping, high_open=True)
        early = self.discovery + self.radius + self.clipping
        if early >= 1:
            raise ArgumentError("discovery + radius + clipping", early, "< 1: the release needs a share")


@dataclass(frozen=True)
class Budget:
    """The (ε, δ) a release may spend, and how its stages share it.

    ``seed`` makes the noise repeatable, for tests only: whoever knows the seed can take the noise off, so a seeded
    release promises nothing.

    >>> Budget(epsilon=1, delta=1e-6).split.discovery
    0.25
    """

    epsilon: float
    delta: float
    split: Split = Split()
    seed: int | None = None

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        probability("delta", self.delta, low_open=True, high_open=True)
        if self.seed is not None:
            at_least("seed", self.seed, 0)


@dataclass
class Ledger:
    """The budget of one release, handed out stage by stage and added up at the end."""

    budget: Budget
    discovers: bool
    chooses_radius: bool
    spent: list[Spent] = field(default_factory=list)
    _rounding: float = 0.0
    _coordinates: int = 0

    def __post_init__(self) -> None:
        self.epsilon, self.delta, self.split = self.budget.epsilon, self.budget.delta, self.budget.split
        if math.exp(min(self.epsilon, 700.0)) * MOST_WHOLE_NUMBERS * DRAW_DELTA > MARGIN * self.delta / 4:
            raise ArgumentError(
                "epsilon", self.epsilon, f"smaller: whole-number noise has no proof for delta {self.delta:g}"
            )
        kept = 1 - MARGIN
        self.mu = gaussian_mu(kept * self.epsilon, kept * (self.delta - self.threshold_delta))

    @property
    def threshold_delta(self) -> float:
        """The δ of :mod:`elementdp.histogram.discovery`."""
        return self.delta * self.split.threshold_delta if self.discovers else 0.0

    def mu_for(self, stage: str) -> float:
        """The μ of ``discovery``, ``radius``, ``clipping`` or ``release``; shares are of μ², which is what adds up."""
        shares = {
            "discovery": self.split.discovery if self.discovers else 0.0,
            "radius": self.split.radius if self.chooses_radius else 0.0,
            "clipping": self.split.clipping,
        }
        return self.mu * math.sqrt(shares.get(stage, 1 - sum(shares.values())))

    def pay(self, spent: Spent, *, grid_scale: float, coordinates: int) -> None:
        """Enter a stage that moved at most ``coordinates`` whole numbers, under noise of scale ``grid_scale``."""
        self.spent.append(spent)
        self._rounding += coordinates * rounding_epsilon(grid_scale)
        self._coordinates += coordinates

    def total_delta(self) -> float:
        """δ at the wanted ε of everything entered so far, by the sum in :mod:`elementdp.histogram.noise`."""
        mu = math.sqrt(sum(one.mu**2 for one in self.spent))
        tail = (1 + math.exp(min(self.epsilon, 700.0))) * self._coordinates * DRAW_DELTA
        noise = math.exp(self._rounding) * (gaussian_delta(self.epsilon - self._rounding, mu) + tail)
        return noise + sum(one.delta for one in self.spent)

    def check(self) -> None:
        """Refuse, before anything leaves, if the stages cost more than the (ε, δ) asked for."""
        if self._coordinates > MOST_WHOLE_NUMBERS:
            raise NoGuaranteeError(
                f"the release has {self._coordinates} counts, and its proof covers {MOST_WHOLE_NUMBERS:.0f} at most: "
                "give a shorter list of items"
            )
        drawn = (1 + math.exp(min(self.epsilon, 700.0))) * self._coordinates * DRAW_DELTA
        within = self._rounding <= MARGIN * self.epsilon and drawn <= MARGIN * self.delta
        if not within or self.total_delta() > self.delta:
            raise NoGuaranteeError(
                f"whole-number noise this small is not proved ({self.epsilon:g}, {self.delta:g})-private: "
                "ask for a smaller epsilon or a larger delta"
            )
