"""Corollaries 2.4 and 2.5 and what follows them: exact counterexamples, the attack, and the repair by pairs."""

import inspect
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from elementdp.audit.attack import attack
from elementdp.audit.experiment import Audited, audit
from elementdp.audit.finite import worst_odds
from elementdp.audit.mixtures import Mixture, leading_coefficient, pair_sampled, renyi, user_sampled
from elementdp.audit.sampled import (
    Mechanism,
    Sample,
    Subsampler,
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
from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import CheckError, Fact, Finding, Gap, printed, repaired, tight
from elementdp.companion.theory.symmetrised import composed_epsilon
from elementdp.privacy import Sampler, SubsampledGaussian, account, printed_renyi, rounded_up

_VALUES = (None, 0, 1)
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Amplification:
    """A form of Corollary 2.4: who is drawn with probability q, whether m of n users may be drawn, and the e^ε' then.

    ``hidden`` is the same sampler where nobody sees how many were drawn.
    """

    sampler: Callable[[Fraction], Subsampler]
    hidden: Callable[[Fraction], Subsampler]
    fixed_size: bool
    odds: Callable[[Fraction, Fraction], Fraction] = claimed_odds


SAMPLED_USERS = Amplification(poisson_users, lambda q: poisson_users(q, emptied=True), fixed_size=True)
"""Corollary 2.4 as printed."""
SAMPLED_PAIRS = Amplification(poisson_pairs, poisson_pairs, fixed_size=False)
"""The repair: a coin for each (user, element) pair."""


def exact_ratios(elements: int, odds: Fraction, hidden: Callable[[Fraction], Subsampler]) -> list[Fraction]:
    """The worst likelihood ratio for a user with 1, …, ``elements`` elements of which all but one are known; q = ½."""
    base = respond_to_all(odds)
    pairs = (identity_pair(k) for k in range(1, elements + 1))
    return [_odds_at(subsampled(base, hidden(_HALF)), one[:1], other[:1]) for one, other in pairs]


def fixed_size_ratios(elements: int, odds: Fraction) -> list[Fraction]:
    """The same when one of two users is drawn."""
    drawn = subsampled(respond_to_all(odds), fixed_users(1))
    return [_odds_at(drawn, *identity_pair(k)) for k in range(1, elements + 1)]


@check("subsampling")
def subsampling(effort: Effort, seed: int, statement: Amplification = SAMPLED_USERS) -> Finding:
    """Corollary 2.4, both parts."""
    odds, deepest = Fraction(3), 3 if effort is Effort.SMOKE else 5
    stated = statement.odds(odds, _HALF)
    size = _odds_at(subsampled(show_size(odds), statement.sampler(_HALF)), ((0,),), ((1,),))
    poisson = exact_ratios(deepest, odds, statement.hidden)
    facts = [
        printed(
            f"(i) q = 1/2, one user with one element, e^ε = {odds}, a mechanism that shows the size of its sample: "
            f"the ratio is {size}, stated at most {stated}.",
            size <= stated,
            promised_delta=0.0,
        ),
        printed(
            f"(i) q = 1/2, one user with K elements, size hidden: exact ratios for K = 1, …, {deepest} are "
            f"{_listed(poisson)}; stated {stated}.",
            max(poisson) <= stated,
            promised_delta=0.0,
        ),
        tight(f"With one element a user the stated {stated} is attained ({poisson[0]}).", poisson[0] == stated),
    ]
    if statement.fixed_size:
        fixed = fixed_size_ratios(deepest, odds)
        text = f"(ii) one of two users drawn, K elements each: exact ratios {_listed(fixed)}; stated {stated}."
        facts.append(printed(text, max(fixed) <= stated, promised_delta=0.0))
    return Finding(
        (*facts, *_what_sampling_gives(effort, odds)),
        repair="Draw each (user, element) pair independently with probability q and leave users who lose data in the "
        "sample: the result is (log(1+q(e^ε-1)), qδ)-element private. Sampling users gives (ε, qδ) and, for users "
        "with many elements, nothing better.",
        gap=Gap.SUBSTANCE,
    )


def _what_sampling_gives(effort: Effort, odds: Fraction) -> list[Fact]:
    """The repaired corollary for pairs, and what is left for users, over all small samples and their neighbours."""
    amplified, base, leak = claimed_odds(odds, _HALF), respond_to_all(odds), Fraction(1, 100)
    samples = list(itertools.product(itertools.product(_VALUES, repeat=2), repeat=1 if effort is Effort.SMOKE else 2))
    single: list[Sample] = [((a, b),) for a, b in itertools.product(_VALUES, repeat=2)]
    pairs = worst_case(subsampled(base, poisson_pairs(_HALF)), samples, _VALUES)
    users = worst_case(subsampled(base, poisson_users(_HALF, emptied=True)), samples, _VALUES)
    leaked = worst_delta(subsampled(leaky(base, leak), poisson_pairs(_HALF)), single, _VALUES, amplified)
    shown = worst_delta(subsampled(leaky(base, leak), poisson_users(_HALF)), single, _VALUES, odds)
    deepest = 3 if effort is Effort.SMOKE else 5
    enumerated = exact_ratios(deepest, odds, SAMPLED_USERS.hidden)
    closed = [identity_odds(odds, k, _HALF) for k in range(1, deepest + 1)]
    return [
        repaired(
            f"Sampling (user, element) pairs: over {len(samples)} samples and their neighbours the worst ratio is "
            f"{pairs}, stated {amplified}; with δ = {leak} the exact δ is {leaked} ≤ qδ = {_HALF * leak}.",
            pairs is not None and pairs <= amplified and leaked <= _HALF * leak,
        ),
        repaired(
            f"Sampling users keeps (ε, qδ) and no more: worst ratio {users} ≤ {odds} on the same samples; "
            f"δ at ε is {shown} = qδ for a mechanism that leaks with probability {leak}; the ratios for K elements "
            "equal the closed form (1-q+q e^(Kε))/(1-q+q e^((K-1)ε)).",
            users is not None and users <= odds and shown == _HALF * leak and enumerated == closed,
        ),
    ]


def _odds_at(mechanism: Mechanism, one: Sample, other: Sample) -> Fraction:
    odds = worst_odds(mechanism(one), mechanism(other))
    if odds is None:
        raise CheckError("an outcome is possible under one of two neighbours only")
    return odds


def _listed(values: list[Fraction]) -> str:
    return ", ".join(str(value) for value in values)


ATTACKED = SubsampledGaussian(Sampler.POISSON_USERS, sigma=2.0, q=0.05, steps=20)
"""The run that is attacked."""
ATTACK_DELTA = 1e-4
CONFIDENCE = f"{100 * inspect.signature(attack).parameters['confidence'].default:g} %"
"""Of each bound the attack proves."""
ATTACK_TRIALS = {Effort.SMOKE: 8_000, Effort.QUICK: 100_000, Effort.PAPER: 1_000_000}
"""Attacked runs under each of two neighbouring samples."""


@cache
def attacked(effort: Effort, seed: int) -> tuple[Audited, ...]:
    """The attack on sampled users and on sampled pairs: the page and the ledger show the same numbers."""
    run, rng = ATTACKED, np.random.default_rng(seed)
    return tuple(audit(run.q, run.sigma, run.steps, ATTACK_DELTA, trials=ATTACK_TRIALS[effort], rng=rng))


Step = Callable[[float, float, int, float], Mixture]
"""What one step shows: rate q, noise σ, number of known other elements (each +1), secret element."""


def by_user(q: float, sigma: float, others: int, secret: float) -> Mixture:
    """One coin for the user: the other elements come along."""
    return user_sampled(q, sigma, others, secret)


def by_pair(q: float, sigma: float, others: int, secret: float) -> Mixture:
    """A coin for each element."""
    return pair_sampled(q, sigma, (1.0,) * others, secret)


@dataclass(frozen=True)
class SumStatement:
    """A form of Corollary 2.5: how a step is sampled, whether fixed-size sampling is covered, and the Rényi level."""

    step: Step
    fixed_size: bool
    level: Callable[[float, float, float], float] = printed_renyi


USER_SAMPLED_SUM = SumStatement(by_user, fixed_size=True)
"""Corollary 2.5 as printed."""
PAIR_SAMPLED_SUM = SumStatement(by_pair, fixed_size=False)
"""The repair."""


@check("moments-accountant")
def moments_accountant(effort: Effort, seed: int, statement: SumStatement = USER_SAMPLED_SUM) -> Finding:
    """Corollary 2.5, and the attack on it."""
    q, sigma, order = 0.01, 4.0, 8.0
    stated = statement.level(order, q, sigma)
    found = {
        k: renyi(statement.step(q, sigma, k - 1, 1), statement.step(q, sigma, k - 1, -1), order) for k in (1, 2, 5, 8)
    }
    single = max(
        renyi(statement.step(q, sigma, 0, a), statement.step(q, sigma, 0, b), order)
        for a, b in itertools.product(np.linspace(-1, 1, 5), repeat=2)
    )
    facts = [
        printed(
            f"One element a user, Poisson: at q = {q:g}, σ = {sigma:g}, α = {order:g} the largest ε_α of 25 "
            f"replacements is {single:.5g}, stated {stated:.5g}.",
            single <= stated * (1 + 1e-6),
            promised_delta=0.0,
        ),
        tight(f"The stated ε_α is attained: {single / stated:.6g} of it.", math.isclose(single, stated, rel_tol=1e-6)),
        printed(
            "Users with k elements, the other k-1 adding up: ε_α is "
            + ", ".join(f"{value:.4g} (k = {k})" for k, value in found.items())
            + f"; stated {stated:.4g} for all.",
            max(found.values()) <= stated * (1 + 1e-6),
            promised_delta=0.0,
        ),
    ]
    if statement.fixed_size:
        facts += [_fixed_size(q, sigma, order, stated), _attack_fact(effort, seed)]
    return Finding(
        (*facts, *_repaired_sum(effort, seed)),
        repair="Sample (user, element) pairs: then the printed ε_α is right and attained. For sampled users T steps "
        "have δ(ε) = E δ_Gauss(ε; 2√j/σ), j ~ Bin(T, q): exact for users with many elements; with at most M elements T "
        "steps lie between the products of the pair (1-q)N(0)+qN(M), (1-q)N(0)+qN(M-2) and of its symmetrised form.",
        gap=Gap.SUBSTANCE,
    )


def _fixed_size(q: float, sigma: float, order: float, stated: float) -> Fact:
    """m of n users drawn: an absent user is replaced by another one, who can point the other way."""
    drawn, never = Mixture((0.0, 2.0), (1 - q, q), sigma), Mixture((0.0,), (1.0,), sigma)
    fixed = renyi(drawn, never, order)
    return printed(
        f"Fixed-size sampling, one element a user: the pair (1-q)N(0)+qN(2) against N(0) occurs and has "
        f"ε_α = {fixed:.5g}, stated {stated:.5g}.",
        fixed <= stated,
        promised_delta=0.0,
    )


def _attack_fact(effort: Effort, seed: int) -> Fact:
    run, found = ATTACKED, attacked(effort, seed)
    return printed(
        f"Attack on T = {run.steps} user-sampled steps (q = {run.q:g}, σ = {run.sigma:g}, δ = {ATTACK_DELTA:g}, "
        f"{ATTACK_TRIALS[effort]:,} runs a side): with {CONFIDENCE} confidence each, ε is at least "
        + ", ".join(f"{row.users:.3g} (k = {row.elements})" for row in found)
        + f"; the corollary gives {found[0].claimed:.4g}.",
        all(row.users <= row.claimed for row in found),
        promised_delta=ATTACK_DELTA,
    )


def fixed_size_epsilon_by_peer(run: SubsampledGaussian, delta: float) -> float:
    """ε of T steps of (1-q)N(0)+qN(2) against N(0), by another library: adding or removing a record of norm 2."""
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    loss = from_gaussian_mechanism(run.sigma, sensitivity=2.0, sampling_prob=run.q)
    return float(loss.self_compose(run.steps).get_epsilon_for_delta(delta))


def _repaired_sum(effort: Effort, seed: int) -> list[Fact]:
    """Pairs: the printed level whatever the others add. Users and fixed size: our band against attack and peer."""
    rng, (q, sigma, order) = np.random.default_rng([seed, 1]), (0.01, 4.0, 8.0)
    stated, found = printed_renyi(order, q, sigma), attacked(effort, seed)
    tried = [tuple(rng.uniform(-1, 1, 4)) for _ in range(5 if effort is Effort.SMOKE else 25)]
    worst = max(
        renyi(pair_sampled(q, sigma, others, 1), pair_sampled(q, sigma, others, -1), order) / stated for others in tried
    )
    many = SubsampledGaussian(Sampler.FIXED_USERS, sigma=sigma, q=q, steps=1000, elements_per_user=1)
    promised, peer = account(many, 1e-5), fixed_size_epsilon_by_peer(many, 1e-5)
    symmetrised = composed_epsilon(q, sigma, 2.0, many.steps, 1e-5)
    unbounded = account(ATTACKED, ATTACK_DELTA)
    return [
        repaired(
            f"Pair sampling: whatever four other elements add ({len(tried)} choices), ε_α is at most {worst:.6g} times "
            f"the printed; the same attack proves at most {max(row.pairs for row in found):.3g}, below "
            f"{found[0].claimed:.4g}.",
            worst <= 1 + 1e-9 and all(row.pairs <= row.claimed for row in found),
        ),
        repaired(
            "User sampling: our ε is "
            + ", ".join(f"{rounded_up(row.promised_users.up, 4)} (k = {row.elements})" for row in found)
            + f", {rounded_up(unbounded.up, 4)} for any k, never below the attack.",
            all(row.users <= row.promised_users.up for row in found) and found[-1].users <= unbounded.up,
        ),
        repaired(
            f"Fixed size, one element a user, T = {many.steps}, δ = 1e-05: the adversary above has ε = {peer:.4g} "
            f"(counted by dp-accounting); our band is {promised:.4g}.",
            promised.low <= peer * (1 + 1e-3) and peer <= promised.up,
        ),
        repaired(
            f"The symmetrised pair of the same step, rebuilt from the chapter's text, has ε = {symmetrised:.4g} after "
            f"T steps, our upper bound is {promised.up:.4g}.",
            math.isclose(symmetrised, promised.up, rel_tol=1e-3),
        ),
    ]


def printed_coefficient(sigma: float) -> float:
    """1/σ², the printed coefficient of αq²."""
    return 1 / sigma**2


@check("moments-display")
def moments_display(effort: Effort, seed: int, coefficient: Callable[[float], float] = printed_coefficient) -> Finding:
    """The display after Corollary 2.5: ε_α/(αq²) of the printed pair as q → 0."""
    order, rates = 8.0, (1e-3, 1e-4)
    rows = [(sigma, [printed_renyi(order, q, sigma) / (order * q**2) for q in rates]) for sigma in (2.0, 4.0, 8.0)]
    worst = max(measured[-1] / coefficient(sigma) for sigma, measured in rows)
    off = max(abs(measured[-1] / leading_coefficient(sigma) - 1) for sigma, measured in rows)
    shown = "; ".join(f"σ = {s:g}: {m[-1]:.5g}, stated {coefficient(s):.5g}" for s, m in rows)
    return Finding(
        (
            printed(
                f"ε_α/(αq²) of the printed pair at q = {rates[-1]:g}, α = {order:g}: {shown}; up to {worst:.4g} times.",
                worst <= 1 + 1e-2,
                promised_delta=0.0,
            ),
            repaired(f"It tends to 2 sinh(1/σ²), within {off:.1g} at q = {rates[-1]:g} for three σ.", off < 1e-2),
        ),
        repair="The leading term is 2 sinh(1/σ²)αq² ≈ 2αq²/σ²: a replacement shifts by 2, not by 1.",
        gap=Gap.CONSTANT,
    )


@check("moments-rule")
def moments_rule(effort: Effort, seed: int, sampler: Sampler = Sampler.POISSON_USERS) -> Finding:
    """The rule: fix ε, δ and q²T, so that σ is fixed, and let q → 0; for several c₁, with the true ε."""
    epsilon, delta, fixed = 1.0, 1e-5, 1.0
    constants = (4.0, 16.0) if effort is Effort.SMOKE else (4.0, 16.0, 64.0)
    users = {c: _rule_epsilons(Sampler.POISSON_USERS, c, epsilon, delta, fixed) for c in constants}
    pairs = {c: _rule_epsilons(Sampler.POISSON_PAIRS, c, epsilon, delta, fixed) for c in constants}
    tried = users if sampler is Sampler.POISSON_USERS else pairs
    return Finding(
        (
            printed(
                f"ε = {epsilon:g}, δ = {delta:g}, q²T = {fixed:g}, σ² = c₁q²T log(1/δ)/ε², {sampler.words}: the true ε "
                "at q = 0.1, 0.01, 0.001 is "
                + "; ".join(f"c₁ = {c:g}: " + ", ".join(f"{e:.3g}" for e in row) for c, row in tried.items())
                + ". For a constant c₁ to do it would have to stay below 1 for some row as q → 0.",
                any(row[-1] <= epsilon and row[-1] <= 1.05 * row[0] for row in tried.values()),
                promised_delta=delta,
            ),
            repaired(
                "With pairs sampled one constant does for every q: c₁ = "
                + "; ".join(f"{c:g} gives at most {max(row):.3g}" for c, row in pairs.items())
                + ".",
                any(max(row) <= epsilon for row in pairs.values()),
            ),
        ),
        repair="For sampled pairs the rule holds. For sampled users σ² ≥ c₁qT log(1/δ)/ε²: q, not q².",
        gap=Gap.SUBSTANCE,
    )


def _rule_epsilons(sampler: Sampler, c1: float, epsilon: float, delta: float, fixed: float) -> list[float]:
    """The true ε of runs that follow the rule with this c₁, as q falls; a lower bound for users, an upper for pairs."""
    sigma = math.sqrt(c1 * fixed * math.log(1 / delta)) / epsilon
    runs = [SubsampledGaussian(sampler, sigma=sigma, q=q, steps=round(fixed / q**2)) for q in (0.1, 0.01, 0.001)]
    bands = [account(run, delta) for run in runs]
    return [band.low if sampler is Sampler.POISSON_USERS else band.up for band in bands]
