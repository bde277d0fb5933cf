"""Random allocation: each (user, element) pair enters one random step of each epoch. What is released, and a proof.

The steps are cut into epochs of B. In each epoch every pair draws one of the B steps, uniformly and independently of
all other pairs, epochs and data, and nobody sees where it went. In units of ρ a step releases the sum of the vectors
that drew it, each of norm at most 1, and noise N(0, σ²I). The vectors may depend on all releases before.

**Theorem.** Replace one element of one user, who may have any number of elements. Then E epochs are exactly as private
as E independent copies of the pair P = (1/B)·Σ_i N(e_i, σ²I) and Q = (1/B)·Σ_i N(−e_i, σ²I) on ℝ^B. If the element is
removed or added instead, Q = N(0, σ²I), in both directions.

*Proof.* (i) Condition on where all other pairs go, which does not depend on the changed element, and on the epochs
before. By joint convexity of the hockey-stick divergence this can only raise it. Let y_1, …, y_B be the epoch's
releases less the known vectors, and E_0 the mean if the changed element were not there: then the y_i are noise. If it
is x_i in step i, given the past, and drew step i, the density is L_i = exp(⟨x_i, y_i⟩/σ² − ‖x_i‖²/2σ²) times that; L′_i
is the same for the other sample's x′_i. So for each γ > 0

    H_γ = (1/B)·E_0(Σ_i W_i)₊   with   W_i = L_i − γ·L′_i.

(ii) Given the past, E_0(W_i − c)₊ is largest for x_i = v, x′_i = −v with ‖v‖ = 1, for *every* real c. For c ≥ 0 it is
the largest N(x)(S) − c·N(0)(S) − γ·N(x′)(S) over sets S. Let p = N(x)(S). By Neyman and Pearson N(y)(S) ≥ Φ(Φ⁻¹(p) −
‖y−x‖/σ), and the distances of x to 0 and x′ are at most 1 and 2; on the line, with x = 1, x′ = −1, *one* half-line
attains both bounds at once. For c < 0, E_0(W − c)₊ = 1 − γ − c + E_0(c − W)₊, and E_0(c − W)₊ is γ times the largest
N(x′)(S) − (|c|/γ)·N(0)(S) − (1/γ)·N(x)(S): the same with the two samples exchanged. (iii) W_i has mean 1 − γ whatever
x_i and x′_i, so (ii) says that W* = W(v, −v) is the largest in the convex order. For a convex f the mean E f(s + W_B)
given the past is at most g(s) = E f(s + W*), and g is convex: replace W_B by W*, then W_{B−1}, …, then W_1, all
independent. So H_γ is at most that of (P, Q), for every γ, and Q, P are as far apart in the other direction. (iv) Such
domination is kept by adaptive composition (Zhu, Dong & Wang 2022), so E copies dominate E epochs. (v) Attained: x_i = v
and x′_i = −v in every step. For an element that is removed W = L − γ, and L is largest in the convex order for ‖x‖ = 1;
for one that is added, W = 1 − γL. ∎

An epoch of which only r steps were made has (1/B)·E_0(Σ_{i≤r} W_i + (B−r)(1−γ))₊ by the same proof. A run that ends
within its first epoch is counted so; in later ones the epoch begun counts as whole, which is what dropping releases
allows. Given the coins a pair is seen once an epoch, so the fixed order's μ = 2√E/σ is an upper bound too
(:mod:`elementdp.privacy.fixed_order`), and the smaller of both is promised.

Batches of fixed sizes are something else: there the others' places depend on how many pairs there are. For a whole user
with several elements, which may meet in one step, nothing is proved here. The add-remove pair is that of Feldman &
Shenfeld (2025) and of balls and bins (Chua et al. 2025); for replacement we know of no other proof.
"""

from dataclasses import dataclass

from elementdp.errors import NoGuaranteeError, one_of
from elementdp.privacy._engine.epochs import Epoch
from elementdp.privacy.fixed_order import FixedOrder
from elementdp.privacy.guarantee import Relation, Sampler, Unit


@dataclass(frozen=True)
class RandomAllocation:
    """``steps`` adaptive releases in epochs of ``batches``; each pair enters one random step of each epoch.

    Args:
        sigma: the noise in units of ρ.
        steps: the number T of steps.
        batches: the number B of steps of an epoch.
        unit: what is protected: an element of a user, or a user with one vector.
        elements_per_user: a bound on the vectors any one user has; an element needs none.
        relation: how neighbouring samples differ in the unit.

    Raises:
        ArgumentError: a value is out of the range for which the accountants are tested.
        NoGuaranteeError: a whole user with several vectors.

    >>> RandomAllocation(sigma=4.0, steps=500, batches=100).epochs
    5
    """

    sigma: float
    steps: int
    batches: int = 1
    unit: Unit = Unit.ELEMENT
    elements_per_user: int | None = None
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        most = 1 if self.elements_per_user is None else self.elements_per_user
        checked = FixedOrder(self.sigma, self.steps, self.batches, self.unit, most)  # the ranges are the same
        for name in ("sigma", "steps", "batches", "unit"):
            object.__setattr__(self, name, getattr(checked, name))
        object.__setattr__(self, "relation", Relation(one_of("relation", self.relation, Relation)))
        if self.unit is Unit.USER and self.elements_per_user != 1:
            raise NoGuaranteeError(
                f"no guarantee is proved for unit user, sampler allocated-pairs, elements_per_user "
                f"{self.elements_per_user}: several vectors of a user may meet in one step. Proved: unit element; unit "
                "user with elements_per_user 1; sampler poisson-pairs with elements_per_user given"
            )

    @property
    def sampler(self) -> Sampler:
        """Each pair in one random step of each epoch."""
        return Sampler.ALLOCATED_PAIRS

    @property
    def epochs(self) -> int:
        """⌈T/B⌉, the epoch begun included."""
        return -(-self.steps // self.batches)

    @property
    def order(self) -> FixedOrder:
        """The run if everybody saw where pairs go: for one vector a pair, a fixed order is as good."""
        return FixedOrder(self.sigma, self.steps, self.batches, relation=self.relation)

    @property
    def epoch(self) -> Epoch:
        """One epoch, as far as it went if there was only one."""
        made = min(self.steps, self.batches)
        return Epoch(self.sigma, self.batches, made, self.relation is Relation.REPLACE)
