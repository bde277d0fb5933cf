"""Going through the users in a fixed order: what is released, and why it needs no coins.

The users are put into B batches in a way that does not depend on their data, and step k sums over batch k mod B. In
units of ρ a step releases G_k + σ·Σ_j (C⁻¹)_{kj} Z_j: the sum G_k of the batch's vectors, each of norm at most 1, and
normal noise, independent from step to step if C = I.

**Theorem.** Let C be lower triangular and Toeplitz, and the entries of its first column decreasing and none negative.
Replace one element of one user, who may have any number of elements. Then the T releases are exactly as private as one
Gaussian release with μ = 2·‖Σ_e C[:, eB]‖/σ, where e = 0, …, E−1 and E = ⌈T/B⌉. With C = I that is μ = 2√E/σ.

*Proof.* (i) C is public and invertible, so the releases are as good as those of (CG)_k + σZ_k. Given what was released
before, this is a Gaussian release, and the two samples differ in its mean by d_k = Σ_j C_kj·D_j, where D_j is how the
sum of step j differs: zero in steps that do not see the user, of norm at most 2 in those that do, in a direction that
may depend on all releases before j. (ii) Let k_0 < k_1 < … be the steps that see the user: k_{e+1} ≥ k_e + B, so k_e ≥
eB. Write g(i, j) = Σ_k C_ki·C_kj, which for i ≤ j is Σ_{r < T−j} c_r·c_{r+j−i} with c the first column. Then Σ_k ‖d_k‖²
= Σ_{e,f} ⟨D_{k_e}, D_{k_f}⟩·g(k_e, k_f) ≤ 4·Σ_{e,f} g(k_e, k_f), since g ≥ 0. As c decreases, g(i, j) falls when j − i
grows and when j grows, so g(k_e, k_f) ≤ g(eB, fB); and Σ_{e,f} g(eB, fB) = ‖Σ_e C[:, eB]‖². (iii) So Σ_k ‖d_k‖² ≤
(μσ)² whatever was released. Spend what is left of it on one more release that shows nothing else: the loss is then that
of a Brownian motion stopped at time μ², whatever the d_k (its increments are independent of the past given d_k), and
dropping that last release lowers no privacy. (iv) Attained: a user of the first batch with all D at 2 in one
direction. ∎

The proof asks of the order only that the steps that see a user are at least B apart and at most E: any order that is
public, or random and independent of the data (given the order the theorem holds, and δ is convex in mixtures). With C =
I even B does not matter, only how often a user is seen: the order may be drawn anew in every epoch. Nothing is asked of
batches' sizes; a last, smaller one counts like the others. A T that is no multiple of B counts the epoch begun as whole
for C = I, and as far as it went otherwise: the sums end at T.

For a whole user with at most M elements the change in a step is 2M instead of 2. Adding or removing an element instead
of replacing it halves the change. Adding or removing a user is refused: it may move other users to other batches.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from elementdp.errors import ArgumentError, NoGuaranteeError, at_least, positive
from elementdp.privacy.correlation import LONGEST_CORRELATED, Correlation, visited
from elementdp.privacy.events import MOST_ELEMENTS, MOST_STEPS, SIGMAS
from elementdp.privacy.guarantee import Relation, Sampler, Unit

_ROUNDING = 1e-12  # by which a computed column of C may miss being decreasing


@dataclass(frozen=True)
class FixedOrder:
    """``steps`` adaptive releases of batch sums in a fixed order of ``batches`` batches, each with noise of ρσ.

    Args:
        sigma: the noise in units of ρ; with correlated noise that of the normal vectors Z which are combined.
        steps: the number T of steps.
        batches: the number B of batches; each is seen in every B-th step. One batch is every user in every step.
        unit: what is protected, an element of a user or a user.
        elements_per_user: a bound on the vectors any one user adds to a sum; only a whole user needs one.
        relation: how neighbouring samples differ in the unit.
        correlation: how the noise of different steps hangs together.

    Raises:
        ArgumentError: a value is out of the range for which the accountants are tested.
        NoGuaranteeError: nothing is proved of this correlation, or of this unit and relation.

    >>> run = FixedOrder(sigma=4.0, steps=500, batches=100)
    >>> run.epochs, run.mu  # 2√5/4
    (5, 1.118033988749895)
    """

    sigma: float
    steps: int
    batches: int = 1
    unit: Unit = Unit.ELEMENT
    elements_per_user: int | None = None
    relation: Relation = Relation.REPLACE
    correlation: Correlation = field(default_factory=Correlation)

    def __post_init__(self) -> None:
        for name, kind in (("unit", Unit), ("relation", Relation)):
            value = getattr(self, name)
            if value not in list(kind):
                raise ArgumentError(name, value, "one of " + ", ".join(kind))
            object.__setattr__(self, name, kind(value))
        positive("sigma", self.sigma)
        if not SIGMAS[0] <= self.sigma <= SIGMAS[1]:
            raise ArgumentError("sigma", self.sigma, f"between {SIGMAS[0]:g} and {SIGMAS[1]:g}")
        object.__setattr__(self, "sigma", float(self.sigma))
        most = MOST_STEPS if self.correlation == Correlation() else LONGEST_CORRELATED
        for name, limit in (("steps", most), ("batches", MOST_STEPS), ("elements_per_user", MOST_ELEMENTS)):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, at_least(name, value, 1))
                if value > limit:
                    raise ArgumentError(name, value, f"at most {limit:,}")
        self._refuse()

    def _refuse(self) -> None:
        """Refuse what the theorem does not cover."""
        if self.unit is Unit.USER and self.elements_per_user is None:
            raise NoGuaranteeError(
                "no guarantee is proved for unit user, sampler fixed-order, elements_per_user None: the sensitivity of "
                "a whole user is unbounded. Proved: unit element; unit user with elements_per_user given"
            )
        if self.unit is Unit.USER and self.relation is Relation.ADD_REMOVE:
            raise NoGuaranteeError(
                "no guarantee is proved for unit user, relation add-remove, sampler fixed-order: adding a user may "
                "move other users to other batches. Proved: relation replace; unit element"
            )
        if self.correlation != Correlation():
            column = self.correlation.column(self.steps)
            with np.errstate(invalid="ignore"):
                falls = column.min() >= -_ROUNDING and np.diff(column).max(initial=0.0) <= _ROUNDING
            if not falls:  # nor if an entry is not a number
                raise NoGuaranteeError(
                    "no guarantee is proved for this correlation: the inverse of its weights has to decrease and stay "
                    "at least zero. Proved: Correlation.inverse_root(bands), Correlation.optimised(…)"
                )

    @property
    def sampler(self) -> Sampler:
        """The order itself: nothing is drawn."""
        return Sampler.FIXED_ORDER

    @property
    def epochs(self) -> int:
        """E = ⌈T/B⌉: how often the users of the first batch are seen."""
        return -(-self.steps // self.batches)

    @property
    def change(self) -> float:
        """How far replacing, adding or removing the unit moves one sum, in units of ρ."""
        size = 1 if self.unit is Unit.ELEMENT else self.elements_per_user or 1
        return float(size if self.relation is Relation.ADD_REMOVE else 2 * size)

    @property
    def exposure(self) -> float:
        """‖Σ_e C[:, eB]‖: how much a unit change of every sum a user is in moves all T sums together."""
        if self.correlation == Correlation():
            return math.sqrt(self.epochs)
        return float(np.linalg.norm(visited(self.correlation.column(self.steps), self.batches)))

    @property
    def mu(self) -> float:
        """The run is as private as one Gaussian release with sensitivity/noise = μ."""
        return self.change * self.exposure / self.sigma
