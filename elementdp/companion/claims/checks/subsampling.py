"""Amplification by sampling users: the exact counterexamples, the attack, and the repair by sampling pairs."""

import itertools
import math
from fractions import Fraction

import numpy as np
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from elementdp.audit.experiment import audit
from elementdp.audit.finite import worst_odds
from elementdp.audit.mixtures import (
    Mixture,
    leading_coefficient,
    pair_sampled,
    renyi,
    user_sampled,
)
from elementdp.audit.sampled import (
    Mechanism,
    Sample,
    claimed_odds,
    fixed_users,
    identity_odds,
    identity_pair,
    leaky,
    poisson_pairs,
    poisson_users,
    respond_to_all,
    show_size,
    subsampled,
    worst_case,
    worst_delta,
)
from elementdp.companion.claims import Effort, Fact, Finding, Gap, Role, check
from elementdp.companion.claims.verdict import CheckError
from elementdp.privacy.accountant import account
from elementdp.privacy.digits import rounded_up
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.guarantee import Sampler
from elementdp.privacy.renyi import printed_renyi

_VALUES = (None, 0, 1)


@check("subsampling")
def subsampling(effort: Effort, seed: int) -> Finding:
    """corollary:subsampling, both parts."""
    odds, half = Fraction(3), Fraction(1, 2)
    printed = claimed_odds(odds, half)
    size = _odds_at(subsampled(show_size(odds), poisson_users(half)), ((0,),), ((1,),))
    deepest = 3 if effort is Effort.SMOKE else 5
    poisson, fixed = [], []
    for elements in range(1, deepest + 1):
        one, other = identity_pair(elements)
        poisson.append(
            _odds_at(subsampled(respond_to_all(odds), poisson_users(half, emptied=True)), one[:1], other[:1])
        )
        fixed.append(_odds_at(subsampled(respond_to_all(odds), fixed_users(1)), one, other))
    closed = [identity_odds(odds, elements, half) for elements in range(1, deepest + 1)]
    if not poisson == fixed == closed:
        raise CheckError(f"enumeration and closed form disagree: {poisson}, {fixed}, {closed}")
    samples = list(itertools.product(itertools.product(_VALUES, repeat=2), repeat=1 if effort is Effort.SMOKE else 2))
    base = respond_to_all(odds)
    pairs = worst_case(subsampled(base, poisson_pairs(half)), samples, _VALUES)
    users = worst_case(subsampled(base, poisson_users(half, emptied=True)), samples, _VALUES)
    leak = Fraction(1, 100)
    single: list[Sample] = [((a, b),) for a, b in itertools.product(_VALUES, repeat=2)]
    leaked = worst_delta(subsampled(leaky(base, leak), poisson_pairs(half)), single, _VALUES, printed)
    shown = worst_delta(subsampled(leaky(base, leak), poisson_users(half)), single, _VALUES, odds)
    assert pairs is not None and users is not None
    return Finding(
        facts=(
            Fact(
                Role.PRINTED,
                f"(i) q = 1/2, one user with one element, e^ε = {odds}, a mechanism that shows the size of its sample: "
                f"the ratio is {size}, printed at most {printed}.",
                size <= printed,
            ),
            Fact(
                Role.PRINTED,
                f"(i) q = 1/2, one user with K elements, size hidden: exact ratios for K = 1, …, {deepest} are "
                f"{_listed(poisson)}, equal to the closed form (1-q+q e^(Kε))/(1-q+q e^((K-1)ε)); printed {printed}.",
                max(poisson) <= printed,
            ),
            Fact(
                Role.PRINTED,
                f"(ii) one of two users drawn, K elements each, all but one tell the users apart: exact ratios "
                f"{_listed(fixed)}; printed {printed}.",
                max(fixed) <= printed,
            ),
            Fact(
                Role.PRINTED,
                f"With one element a user (K = 1) and the size hidden the printed ratio {printed} is met exactly "
                f"({poisson[0]} and {fixed[0]}).",
                poisson[0] == fixed[0] == printed,
            ),
            Fact(
                Role.REPAIRED,
                f"Sampling (user, element) pairs: over {len(samples)} samples and their neighbours the worst ratio is "
                f"{pairs}, the printed {printed}; with δ = {leak} the exact δ is {leaked} ≤ qδ = {half * leak}.",
                pairs <= printed and leaked <= half * leak,
            ),
            Fact(
                Role.REPAIRED,
                f"Sampling users keeps (ε, qδ) and no more: worst ratio {users} ≤ {odds} on the same samples; "
                f"δ at ε is {shown} = qδ for a mechanism that leaks with probability {leak}.",
                users <= odds and shown == half * leak,
            ),
        ),
        repair="Draw each (user, element) pair independently with probability q and leave users who lose data in the "
        "sample: the result is (log(1+q(e^ε-1)), qδ)-element private. Sampling users gives (ε, qδ) and, for users "
        "with many elements, nothing better.",
        gap=Gap.SUBSTANCE,
    )


def _odds_at(mechanism: Mechanism, one: Sample, other: Sample) -> Fraction:
    odds = worst_odds(mechanism(one), mechanism(other))
    assert odds is not None
    return odds


def _listed(values: list[Fraction]) -> str:
    return ", ".join(str(value) for value in values)


_ATTACKED = SubsampledGaussian(Sampler.POISSON_USERS, sigma=2.0, q=0.05, steps=20)
_DELTA = 1e-4
_TRIALS = {Effort.SMOKE: 8_000, Effort.QUICK: 60_000, Effort.PAPER: 1_000_000}


def _users(q: float, sigma: float, others: float) -> tuple[Mixture, Mixture]:
    """One user-sampled step when the secret element is +1 or -1 and the user's other elements add ``others``."""
    return user_sampled(q, sigma, others, 1), user_sampled(q, sigma, others, -1)


def _fixed_size_adversary(run: SubsampledGaussian, delta: float) -> float:
    """ε of T steps of (1-q)N(0)+qN(2) against N(0), by another library: adding or removing a record of norm 2."""
    loss = from_gaussian_mechanism(run.sigma, sensitivity=2.0, sampling_prob=run.q)
    return float(loss.self_compose(run.steps).get_epsilon_for_delta(delta))


@check("moments-accountant")
def moments_accountant(effort: Effort, seed: int) -> Finding:
    """corollary:momentacc, the display after it, and the attack."""
    rng = np.random.default_rng(seed)
    q, sigma, order = 0.01, 4.0, 8.0
    printed = printed_renyi(order, q, sigma)
    apart = abs(renyi(*_users(q, sigma, 0), order) / printed - 1)
    single = max(
        renyi(pair_sampled(q, sigma, (), a), pair_sampled(q, sigma, (), b), order)
        for a, b in itertools.product(np.linspace(-1, 1, 5), repeat=2)
    )
    with_others = {k: renyi(*_users(q, sigma, k - 1), order) for k in (2, 8, 30)}
    limit = math.log1p(q * math.expm1(2 * order * (order - 1) / sigma**2)) / (order - 1)
    small = 1e-4
    measured = printed_renyi(order, small, sigma) / (order * small**2)
    drawn, never = Mixture((0.0, 2.0), (1 - q, q), sigma), Mixture((0.0,), (1.0,), sigma)
    fixed = renyi(drawn, never, order)
    many = SubsampledGaussian(Sampler.FIXED_USERS, sigma=sigma, q=q, steps=1000, elements_per_user=1)
    promised, peer = account(many, 1e-5), _fixed_size_adversary(many, 1e-5)
    repaired = max(
        renyi(pair_sampled(q, sigma, others, 1), pair_sampled(q, sigma, others, -1), order) / printed
        for others in (tuple(rng.uniform(-1, 1, 4)) for _ in range(5 if effort is Effort.SMOKE else 25))
    )
    run = _ATTACKED
    found = audit(run.q, run.sigma, run.steps, _DELTA, trials=_TRIALS[effort], rng=rng)
    claim, unbounded = found[0].claimed, account(run, _DELTA)
    return Finding(
        facts=(
            Fact(
                Role.PRINTED,
                f"One element a user, Poisson: at q = {q:g}, σ = {sigma:g}, α = {order:g} no replacement on a grid "
                f"exceeds the printed ε_α = {printed:.5g} (largest {single:.5g}; two routes agree to {apart:.1g}).",
                single <= printed * (1 + 1e-9) and apart < 1e-6,
            ),
            Fact(
                Role.PRINTED,
                "Users with k elements, the other k-1 adding up: ε_α is "
                + ", ".join(f"{value:.4g} (k = {k})" for k, value in with_others.items())
                + f", {limit:.4g} as k → ∞; printed {printed:.4g} for all.",
                max(with_others.values()) <= printed,
            ),
            Fact(
                Role.PRINTED,
                f"The display: ε_α/(αq²) → 2 sinh(1/σ²) = {leading_coefficient(sigma):.5g} as q → 0 "
                f"(at q = {small:g}: {measured:.5g}); printed at most 1/σ² = {1 / sigma**2:.5g}, too small by a factor "
                f"{leading_coefficient(sigma) * sigma**2:.4g} even for the printed pair.",
                measured <= (1 + 1e-3) / sigma**2
                or not math.isclose(measured, leading_coefficient(sigma), rel_tol=1e-2),
            ),
            Fact(
                Role.PRINTED,
                f"Fixed-size sampling, one element a user: the pair (1-q)N(0)+qN(2) against N(0) occurs and has "
                f"ε_α = {fixed:.5g}, printed {printed:.5g}.",
                fixed <= printed,
            ),
            Fact(
                Role.PRINTED,
                f"Attack on T = {run.steps} user-sampled steps (q = {run.q:g}, σ = {run.sigma:g}, δ = {_DELTA:g}): "
                "with 99.9 % confidence each, ε is at least "
                + ", ".join(f"{row.users:.3g} (k = {row.elements})" for row in found)
                + f"; printed {claim:.4g}.",
                all(row.users <= claim for row in found),
            ),
            Fact(
                Role.REPAIRED,
                f"Pair sampling: whatever four other elements add, ε_α is at most {repaired:.6g} times the printed; "
                f"the same attack proves at most {max(row.pairs for row in found):.3g}, below {claim:.4g}.",
                repaired <= 1 + 1e-9 and all(row.pairs <= claim for row in found),
            ),
            Fact(
                Role.REPAIRED,
                "User sampling: our ε is "
                + ", ".join(f"{rounded_up(row.promised_users.up, 4)} (k = {row.elements})" for row in found)
                + f", {rounded_up(unbounded.up, 4)} for any k, never below the attack.",
                all(row.users <= row.promised_users.up for row in found) and found[-1].users <= unbounded.up,
            ),
            Fact(
                Role.REPAIRED,
                f"Fixed size, one element a user, T = {many.steps}, δ = 1e-05: the adversary above has ε = {peer:.4g} "
                f"(counted by dp-accounting); our band is {promised:.4g}.",
                promised.low <= peer * (1 + 1e-3) and peer <= promised.up,
            ),
        ),
        repair="Sample (user, element) pairs: then the printed ε_α is right and attained, with leading term "
        "2 sinh(1/σ²)αq² ≈ 2αq²/σ². For sampled users T steps have δ(ε) = E δ_Gauss(ε; 2√j/σ), j ~ Bin(T, q): exact "
        "for users with many elements; with at most M elements one step has the pair "
        "(1-q)N(0)+qN(M), (1-q)N(0)+qN(M-2), and T steps lie between its product and that of its symmetrised form.",
        gap=Gap.SUBSTANCE,
    )
