"""Which pair of distributions is the worst one step of the subsampled sum can show, with the proof.

**Setting.** Units of ρ; noise N(0, σ²I). Condition on everything that does not depend on the changed unit (who else
takes part; for fixed-size sampling also the user v who takes the empty place). By joint convexity of the hockey-stick
divergence H_γ(P‖Q) = sup_S P(S) − γQ(S) this conditioning can only raise it. What remains, in ℝ^d, is

    P = (1−q)·N(0) + q·N(x)   against   Q = (1−q)·N(0) + q·N(x').

**Lemma (one half-space beats all sets).** If ‖x‖ ≤ s (the *swing*) and ‖x−x'‖ ≤ c (the *change*), then for all γ ≥ 1
H_γ(P‖Q) ≤ H_γ(A‖B) with, on the line, A = (1−q)N(0)+qN(s) and B = (1−q)N(0)+qN(s−c).

*Proof.* P(S) − γQ(S) = q·[N(x)(S) − κ·N(0)(S) − γ·N(x')(S)] with κ = (γ−1)(1−q)/q ≥ 0. Let p = N(x)(S). By Neyman and
Pearson N(y)(S) ≥ Φ(Φ⁻¹(p) − ‖y−x‖/σ), which falls as ‖y−x‖ grows; so N(0)(S) ≥ Φ(Φ⁻¹(p) − s/σ) and N(x')(S) ≥
Φ(Φ⁻¹(p) − c/σ). On the line, with x at s, the origin at distance s and x' at distance c on the same side of it, *one*
half-line S' with N(s)(S') = p attains all three at once. Hence P(S) − γQ(S) ≤ A(S') − γB(S') ≤ H_γ(A‖B). ∎

For γ < 1, H_γ(P‖Q) = 1 − γ + γ·H_{1/γ}(Q‖P), and the lemma applies to the exchanged pair. So the curve max(H_γ(A‖B),
H_γ(B‖A)) dominates every pair in both directions, for every γ; it is the curve of a pair itself (it is convex: a
maximum of convex curves), the *symmetrised* pair. Adaptive composition keeps domination for all γ (Zhu, Dong & Wang
2022; the argument of ``lattice``, given the outputs so far), so T steps are dominated by its T-fold product. If c =
2s the reflection x → −x exchanges A and B and the symmetrised pair is (A, B): the printed one, and it is attained.
Otherwise one step is still exact, and T steps are known between the T-fold products of (A, B), (B, A) (adversaries
that exist) and that of the symmetrised pair.

| run | swing | change |
|---|---|---|
| Poisson pairs, element replaced | 1 | 2 |
| Poisson users with ≤ M elements, element replaced | M | 2 |
| Poisson users with ≤ M elements, user replaced | M | 2M |
| fixed-size users with ≤ M elements: the place of u goes to some v, so the sums differ by y_u − y_v | 2M | 2 or 2M |
| added or removed instead of replaced | same | half |

(For pair sampling the changed element's own coin is the only randomness left, which is why M does not enter.) If M is
unbounded the swing is infinite, participation shows, and :mod:`elementdp.privacy._engine.participation` is exact.

**Added or removed alone.** With s = c the sample without the unit gives Q = N(0) exactly, and which of the two
samples has it is fixed for the whole run; the same argument, with one distance only, shows that (A, B) dominates in
one direction and (B, A) in the other, for every γ. No symmetrising is needed, and the answer is the larger of two.

**A whole user under pair sampling.** Let w_j be the chance that j of the user's M coins show, p = 1 − w_0. Split both
mixtures by the set of shown coins, the same for both samples; given a set of j ≥ 1, the lemma's proof bounds N(y)(S)
− κN(0)(S) − γN(y')(S) with s = j, c = 2j, and the weighted sum of these bounds is the curve of: draw j from w given j
≥ 1 and show it, then run the printed pair with shift j at rate p. The adversary with all vectors at ±1 gives the
lower bound.

Related: Lebeda et al. 2405.20769 (replacement under Poisson and fixed-size sampling, direction matters), Schuchardt
et al. 2403.04867 (dominating pairs by conditioning), Balle, Barthe & Gaboardi 2018 (advanced joint convexity).
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

from elementdp.errors import NoGuaranteeError
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.guarantee import Relation, Sampler, Unit


class Knowledge(Enum):
    """How the answer for a run is known."""

    GAUSSIAN = auto()  # no sampling: one Gaussian of μ = change·√T/σ
    REVEALED = auto()  # unbounded elements: participation shows; exact
    PAIR = auto()  # the pair (A, B) is symmetric; exact
    DIRECTED = auto()  # added or removed: (A, B) and (B, A), whichever is worse; exact
    SYMMETRISED = auto()  # between explicit adversaries and the symmetrised pair
    COUNTED = auto()  # a whole user under pair sampling: between the binomial pair and the pair with the count shown


@dataclass(frozen=True)
class WorstCase:
    """The worst case of one step: swing s and change c of the lemma, in units of ρ, and how it is known."""

    knowledge: Knowledge
    swing: float
    change: float


def worst_case(event: SubsampledGaussian) -> WorstCase:
    """The worst case of one step of ``event``; raises :class:`NoGuaranteeError` where nothing is proved."""
    bound = event.elements_per_user
    if event.unit is Unit.USER and bound is None:
        others = [replace(event, elements_per_user=1), replace(event, unit=Unit.ELEMENT)]
        raise NoGuaranteeError(_refusal(event, "the sensitivity of a whole user is unbounded", others))
    if event.sampler is Sampler.FIXED_USERS and event.unit is Unit.USER and event.relation is Relation.ADD_REMOVE:
        others = [replace(event, relation=Relation.REPLACE), replace(event, sampler=Sampler.POISSON_USERS)]
        raise NoGuaranteeError(
            _refusal(event, "adding a user changes n, and with it every other user's chance", others)
        )
    size = 1 if event.unit is Unit.ELEMENT else bound or 1
    change = float(size if event.relation is Relation.ADD_REMOVE else 2 * size)
    if event.q == 1:
        return WorstCase(Knowledge.GAUSSIAN, change, change)
    if event.sampler is Sampler.POISSON_PAIRS:
        swing = float(size)
        if size > 1:
            return WorstCase(Knowledge.COUNTED, swing, change)
    elif bound is None:
        return WorstCase(Knowledge.REVEALED, float("inf"), change)
    else:
        swing = float(2 * bound if event.sampler is Sampler.FIXED_USERS else bound)
    if change == 2 * swing:
        return WorstCase(Knowledge.PAIR, swing, change)
    if event.relation is Relation.ADD_REMOVE and change == swing:
        return WorstCase(Knowledge.DIRECTED, swing, change)
    return WorstCase(Knowledge.SYMMETRISED, swing, change)


def _refusal(event: SubsampledGaussian, why: str, others: list[SubsampledGaussian]) -> str:
    known = "; ".join(
        f"unit {other.unit}, relation {other.relation}, sampler {other.sampler}"
        + (", with elements_per_user given" if other.elements_per_user is not None else "")
        for other in others
    )
    return (
        f"no guarantee is proved for unit {event.unit}, relation {event.relation}, sampler {event.sampler}, "
        f"elements_per_user {event.elements_per_user}: {why}. Proved: {known}"
    )
