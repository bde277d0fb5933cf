"""Is it better to sample users or to go through them in a fixed order? What is proved, at equal work.

Sample users at rate q for T steps, or see each E = qT times. For an element of a user with any number of elements the
first has δ_U(ε) = E[g(j)] with j ~ Bin(T, q) (:mod:`elementdp.privacy._engine.participation`), the second δ_F(ε) =
g(E), where g(t) is the δ of a Gaussian release with μ² = w(t) = (change/σ)²·t. Both have the same mean number of
visits, so which is smaller is a matter of how g bends (Jensen).

**Lemma.** dδ/dμ = φ(ε/μ − μ/2), the normal density. So dδ/dw = φ(ε/μ − μ/2)/(2μ), whose logarithm has the derivative
ε²/(2w²) − 1/8 − 1/(2w) in w: δ is convex in w up to w* = 2(√(1+ε²) − 1) and concave from there on.

*Proof.* e^ε·φ(ε/μ + μ/2) = φ(ε/μ − μ/2); of the four terms of dδ/dμ two cancel and two add up. ∎

**Theorem.** (a) If w(E) ≤ w* and the tangent of g at E is at most g(T) at T, then δ_F(ε) ≤ δ_U(ε): the fixed order is
better. (b) If δ_F(ε) ≥ (μ/2)·φ(ε/μ − μ/2) with μ² = w(E), then δ_U(ε) ≤ δ_F(ε): sampling users is better.

*Proof.* (a) Up to w* the tangent is below g, since g is convex; beyond, g is concave and minus the tangent it is at
least 0 at both ends, so it is between them. Take the mean over j of g(j) ≥ g(E) + g′(E)(j − E). (b) This says that the
tangent at E is at least g(0) = 0 at 0. Then E is beyond w* (where g is convex its tangents are below 0 at 0), so the
tangent is above g from w* on, and as both its ends are above, on the convex part too. Take the mean. ∎

So where δ is small for the noise, the fixed order wins, and where it is large, sampling does: at ε = 0 always, since
then w* = 0. Between the two nothing is proved, but both curves are computed exactly.
"""

import math

from elementdp.errors import ArgumentError, nonnegative
from elementdp.privacy.curves import gaussian_delta
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.guarantee import Relation, Sampler, Unit


def turning_point(epsilon: float) -> float:
    """The μ² up to which the δ(ε) of a Gaussian release is convex in μ², and from which on it is concave."""
    return 2 * (math.hypot(1.0, nonnegative("epsilon", epsilon)) - 1)


def proved_better(users: SubsampledGaussian, epsilon: float) -> Sampler | None:
    """Which of both the theorem says has the smaller δ at ``epsilon``; None where it says nothing.

    ``users`` is the run that samples users, who may have any number of elements.
    """
    if users.sampler not in (Sampler.POISSON_USERS, Sampler.FIXED_USERS) or users.unit is not Unit.ELEMENT:
        raise ArgumentError("users", f"{users.sampler}, {users.unit}", "a run that samples users and protects elements")
    change = 2.0 if users.relation is Relation.REPLACE else 1.0
    last = change**2 * users.steps / users.sigma**2
    here = users.q * last
    mu = math.sqrt(here)
    slope = math.exp(-0.5 * (epsilon / mu - mu / 2) ** 2) / math.sqrt(2 * math.pi) / (2 * mu)
    ordered = gaussian_delta(epsilon, mu)
    if ordered >= here * slope > 0:  # both are zero where they are too small for floating point, which says nothing
        return users.sampler
    if here <= turning_point(epsilon) and ordered + slope * (last - here) < gaussian_delta(epsilon, math.sqrt(last)):
        return Sampler.FIXED_ORDER
    return None
