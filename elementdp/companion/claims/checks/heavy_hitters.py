"""Section 3.1 and Appendix B: the privacy of counting users per item, the ordering loss, and its bound."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import multinomial

from elementdp.companion.claims.checks.mechanisms import (
    Variance,
    cautious_variance,
    delta_by_quadrature,
    fixed_size_reading,
)
from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Finding, Gap, printed, repaired, tight
from elementdp.companion.theory.counting import paper_variance, unit_sigma
from elementdp.companion.theory.ordering import (
    expected_ordering_loss,
    misorder_probability,
    misorder_probability_by_conditioning,
    presence,
    printed_gamma,
    repaired_gamma,
)
from elementdp.elements import Multiset, Partition, element_sensitivity, global_sensitivity
from elementdp.privacy import gaussian_delta, gaussian_mu

_USUAL = list(product((0.1, 1.0, 4.0), (1e-9, 1e-6, 0.1, 0.5)))  # (ε, δ) that people promise


def users_with(m: int, d: int) -> list[dict[int, int]]:
    """Every histogram over d items with at most m items in all."""
    return [dict(enumerate(x)) for x in product(range(m + 1), repeat=d) if sum(x) <= m]


def indicators(x: Multiset) -> list[float]:
    """1(x)."""
    return [float(count > 0) for count in x.values()]  # type: ignore[union-attr]


@dataclass(frozen=True)
class CountingNoise:
    """A form of Lemma 3.1: the variance for (ε, α)-Rényi privacy, and that for (ε, δ)."""

    renyi: Callable[[float, float], float]
    approximate: Variance


PRINTED_COUNTING = CountingNoise(lambda epsilon, alpha: alpha / epsilon, paper_variance)
"""Lemma 3.1 as printed."""
EXACT_COUNTING = CountingNoise(lambda epsilon, alpha: alpha / (2 * epsilon), cautious_variance)
"""What is enough: half the Rényi variance, and the 1/ε term kept for every ε."""


@check("heavy-hitters-privacy")
def heavy_hitters_privacy(effort: Effort, seed: int, noise: CountingNoise = PRINTED_COUNTING) -> Finding:
    """Lemma 3.1: es = 1 by brute force; both parts by the exact curves."""
    m, d = 2, 4
    es = element_sensitivity(indicators, users_with(m, d), Partition.identity())
    levels = {(e, a): a * es**2 / (2 * noise.renyi(e, a)) / e for e in (0.1, 0.3, 2.0) for a in (1.5, 5.0, 50.0)}
    usual = {case: _ratio(noise.approximate, es, *case) for case in _USUAL}
    near_one = _ratio(noise.approximate, es, 1.0, 0.99)
    kept = max(_ratio(EXACT_COUNTING.approximate, es, *case) for case in [*_USUAL, (1.0, 0.99)])
    return Finding(
        (
            printed(f"Brute force, m = {m}, d = {d}, users with at most m items: es(1(·)) = {es:g}.", es == 1),
            printed(
                f"(i) the exact Rényi divergence α/(2σ²) is at most {max(levels.values()):.3g} of ε in {len(levels)} "
                "cases.",
                max(levels.values()) <= 1 + 1e-12,
                promised_delta=0.0,
            ),
            tight(
                f"(i) and at least {min(levels.values()):.3g} of it: half the printed variance is enough.",
                math.isclose(min(levels.values()), 1),
            ),
            printed(
                f"(ii) δ ≤ 0.5: exact δ at most {max(usual.values()):.3g} of the δ asked for in {len(usual)} cases.",
                max(usual.values()) <= 1,
                promised_delta=1e-9,
            ),
            printed(
                f"(ii) ε = 1, δ = 0.99: exact δ {near_one * 0.99:.6g} (the gap of Equation 1).",
                near_one <= 1,
                promised_delta=0.99,
            ),
            repaired(
                f"With the 1/ε term kept for every ε exact δ is at most {kept:.3g} of the δ asked for, δ = 0.99 "
                "included.",
                kept <= 1,
            ),
            fixed_size_reading(m, d),
        ),
        repair="(ii) needs δ ≤ e^(-ε/4) if ε ≤ 1, or the 1/ε term for every ε; (i) holds with half the variance, "
        "σ² = α/(2ε).",
        gap=Gap.ASSUMPTION,
    )


def _ratio(variance: Variance, sensitivity: float, epsilon: float, delta: float) -> float:
    """Exact δ over asked δ with noise of this variance."""
    return gaussian_delta(epsilon, sensitivity / math.sqrt(variance(epsilon, delta))) / delta


@check("heavy-hitters-user")
def heavy_hitters_user(effort: Effort, seed: int, factor: Callable[[int], float] = float) -> Finding:
    """σ²_std = factor(m)·(…), printed with the factor m, where the squared global sensitivity is 2m."""
    m, d = 2, 4
    gs = global_sensitivity(indicators, users_with(m, d))
    narrow = global_sensitivity(indicators, users_with(m, 3))

    def scaled(epsilon: float, delta: float, by: float = factor(m)) -> float:
        return by * paper_variance(epsilon, delta)

    usual = {case: _ratio(scaled, gs, *case) for case in _USUAL}
    doubled = {case: _ratio(lambda e, x: scaled(e, x, 2.0 * m), gs, *case) for case in _USUAL}
    epsilon, delta = 1.0, 1e-6
    mu = gs / math.sqrt(scaled(epsilon, delta))
    edge = brentq(lambda x: paper_variance(1.0, math.exp(x)) * gaussian_mu(1.0, math.exp(x)) ** 2 - 2, -20, -1)
    return Finding(
        (
            printed(
                f"Brute force, m = {m}, d = {d}: gs(1(·))² = {gs**2:.4g} = 2m.",
                math.isclose(gs**2, 2 * m),
            ),
            printed(
                "Two users without a common item are √(2m) apart: the exact user-level δ is up to "
                f"{max(usual.values()):.3g} times the δ asked for in {len(usual)} cases; at ε = 1, δ = 10⁻⁶ it is "
                f"{gaussian_delta(epsilon, mu):.4g} (closed form), {delta_by_quadrature(epsilon, mu):.4g} "
                f"(quadrature). With the factor m it is too large at ε = 1 for every δ < {math.exp(edge):.3g}.",
                max(usual.values()) <= 1,
                promised_delta=delta,
            ),
            repaired(
                f"With 2m the exact user-level δ is at most {max(doubled.values()):.3g} of the δ asked for. For d < 2m "
                f"even min(2m, d) is enough: brute force at d = 3 gives gs² = {narrow**2:.4g}.",
                max(doubled.values()) <= 1 and math.isclose(narrow**2, 3),
            ),
        ),
        repair="σ²_std = min(2m, d)·(1{ε>1}/ε + 2 log(1/δ)/ε²), with δ ≤ e^(-ε/4) if ε ≤ 1.",
        gap=Gap.CONSTANT,
    )


def ordering_chances(p: NDArray[np.float64], n: int, m: int) -> tuple[float, float]:
    """P(Ĥ₁ > Ĥ₂) and P(Ĥ₁ < Ĥ₂) without noise for d = 2, by enumerating every sample."""
    users = [(k, m - k) for k in range(m + 1)]
    weight = [float(multinomial.pmf(x, m, p)) for x in users]
    right = wrong = 0.0
    for sample in product(range(len(users)), repeat=n):
        gap = sum((users[i][0] > 0) - (users[i][1] > 0) for i in sample)
        mass = math.prod(weight[i] for i in sample)
        right, wrong = right + mass * (gap > 0), wrong + mass * (gap < 0)
    return right, wrong


@check("heavy-hitters-loss")
def heavy_hitters_loss(effort: Effort, seed: int, counted: Callable[[float, float], bool] = operator.gt) -> Finding:
    """Equation (8) counts pairs for which ``counted(Ĥ_j, Ĥ_l)`` although p_j ≥ p_l: is that a loss?"""
    p, sizes = np.array([0.99, 0.01]), (2, 4)
    chances = [ordering_chances(p, n, 2) for n in sizes]
    losses = [right if counted(1, 0) else wrong for right, wrong in chances]
    again = misorder_probability(0.99 - 1e-15, 0.01, sizes[-1], 2, 0.0)
    return Finding(
        (
            printed(
                f"d = 2, p = (0.99, 0.01), m = 2, no noise, all samples enumerated: the loss of the better and better "
                f"estimate for n = {sizes[0]} and {sizes[1]} is {losses[0]:.4g} and {losses[1]:.4g}; a loss should "
                f"fall.",
                losses[1] < losses[0] < 0.5,
            ),
            repaired(
                f"With Ĥ_j < Ĥ_l it is {chances[-1][1]:.3g} (enumeration) or {again:.3g} (convolution): the text's "
                "mis-ordered pairs, and what the proof bounds.",
                math.isclose(chances[-1][1], again, rel_tol=1e-6) and again < 1e-3,
            ),
        ),
        repair="L_order = E Σ_{j<l} 1{p_j - p_l ≥ γ} 1{Ĥ_j < Ĥ_l}.",
        gap=Gap.WORDING,
    )


Separation = Callable[[int, int, int, float, float, float], float]
"""γ as a function of n, m, d, t, σ and p₁."""


def two_levels(
    n: int, m: int, items: int, sigma: float, log: float, bound: Separation
) -> tuple[NDArray[np.float64], float, float]:
    """Half of 2·items probabilities high, half low, exactly γ apart; returns p, γ and t = d e^(-log)."""
    d, t = 2 * items, 2 * items * math.exp(-log)

    def excess(high: float) -> float:
        return 2 * high - 1 / items - bound(n, m, d, t, sigma, high)

    high = float(brentq(excess, 0.5 / items, 1 / items))
    return np.repeat([high, 1 / items - high], items), 2 * high - 1 / items, t


@check("heavy-hitters-utility")
def heavy_hitters_utility(effort: Effort, seed: int, bound: Separation = printed_gamma) -> Finding:
    """Proposition 1: the exact expected loss at the stated γ."""
    noise = unit_sigma(1.0, 1e-6)
    cases = [(5000, 50, 100, 0.0), (5000, 50, 100, noise), (20_000, 20, 100, 30.0), (20_000, 3, 50, noise)]
    hard = [(5000, 50, 51, 0.0), (5000, 50, 51, noise)]
    if effort is not Effort.SMOKE:
        hard += [(100_000, 1000, 1001, 0.0), (100_000, 1000, 1001, noise)]
    facts = [printed(*_loss_at(bound, *case)) for case in [*hard, *cases] if _applies(bound, *case)]
    facts += [repaired(*_loss_at(repaired_gamma, *case)) for case in cases]
    return Finding(
        tuple(facts),
        repair="γ ≥ max{(32/(nm)) L, (8σ/(nm)) √L, √(384/5) √(p₁/(nm)) √L} with L = log(d/t). The noise term is "
        "√2 times the printed one, and the sampling term more than √m times. So element level wins over user level "
        "where p₁ ≪ 1/(ε²n), not where p₁ ≪ √(m/n).",
        gap=Gap.SUBSTANCE,
    )


def _applies(bound: Separation, n: int, m: int, items: int, sigma: float) -> bool:
    """Whether two levels γ apart exist with p₁ ≤ 1/(2m), as the proposition asks."""
    d, highest = 2 * items, min(1 / items, 0.5 / m)
    return 2 * highest - 1 / items >= bound(n, m, d, d * math.exp(-2), sigma, highest)


def _loss_at(bound: Separation, n: int, m: int, items: int, sigma: float) -> tuple[str, bool]:
    """The exact loss of two levels that are exactly γ apart, by two routes, against t²."""
    p, gamma, t = two_levels(n, m, items, sigma, 2.0, bound)
    loss = expected_ordering_loss(p, n, m, sigma, gamma * (1 - 1e-9))
    again = items**2 * misorder_probability_by_conditioning(p[0], p[-1], n, m, sigma)
    text = (
        f"n = {n}, m = {m}, d = {2 * items}, σ = {sigma:.3g}, t = d/e²: half the items have p = {p[0]:.6g} ≤ 1/(2m), "
        f"half {p[-1]:.6g}, γ = {gamma:.4g} apart. Exact loss {loss:.4g} (convolution), {again:.4g} (conditioning), "
        f"t² = {t * t:.4g}."
    )
    return text, p[0] <= 0.5 / m and max(loss, again) <= t * t


Moment = Callable[[float, float, float], float]


@check("indicator-lemma")
def indicator_lemma(effort: Effort, seed: int, together: Moment = lambda q_j, q_l, q_jl: q_j + q_l - q_jl) -> Finding:
    """Lemma B.1: E[Y_j Y_l] and the variance of Y_j - Y_l, by enumerating every user."""
    off, worst, tried = 0.0, 0.0, 0
    for m, (p_j, p_l) in product((1, 2, 5), ((0.4, 0.1), (0.05, 0.01), (0.3, 0.3), (0.6, 0.4))):
        chance = {"jl": 0.0, "j": 0.0, "l": 0.0}
        for a, b in product(range(m + 1), repeat=2):
            if a + b <= m:
                mass = float(multinomial.pmf((a, b, m - a - b), m, (p_j, p_l, max(0.0, 1 - p_j - p_l))))
                chance["jl"] += mass * (a > 0 and b > 0)
                chance["j"] += mass * (a > 0)
                chance["l"] += mass * (b > 0)
        q = presence(p_j, m), presence(p_l, m), presence(min(p_j + p_l, 1 - 1e-15), m)
        off = max(off, abs(chance["jl"] - together(*q)), abs(chance["j"] - q[0]))
        variance = q[0] + q[1] - 2 * chance["jl"] - (q[0] - q[1]) ** 2
        worst, tried = max(worst, variance / (q[0] + q[1])), tried + 1
    return Finding(
        (
            printed(f"E[Y_j] and E[Y_j Y_l] agree with enumeration to {off:.1g} in {tried} cases.", off < 1e-9),
            printed(f"var(Y_j - Y_l) is at most {worst:.3g} of q_j + q_l.", worst <= 1),
        )
    )


Tail = Callable[[int, float, float, float, float], float]


def printed_tail(n: int, q_i: float, q_j: float, v: float, sigma: float) -> float:
    """Lemma B.2's bound on the chance to mis-order."""
    gap = q_i - q_j
    return math.exp(-min(5 * n * gap**2 / (12 * v + 20 * sigma**2 / n), n * gap / 8))


@check("order-lemma")
def order_lemma(effort: Effort, seed: int, bound: Tail = printed_tail) -> Finding:
    """Lemma B.2 against the exact chance, on a grid."""
    worst, tried = 0.0, 0
    levels = ((0.4, 0.1), (0.05, 0.01), (0.02, 0.019), (0.3, 0.3))
    sizes = (5, 40) if effort is Effort.SMOKE else (5, 40, 400, 2000)
    for n, m, (p_i, p_j), sigma in product(sizes, (1, 3, 20), levels, (0.0, 1.0, 10.0)):
        q_i, q_j, q_ij = presence(p_i, m), presence(p_j, m), presence(p_i + p_j, m)
        v = q_i + q_j - 2 * (q_i + q_j - q_ij) - (q_i - q_j) ** 2
        told = bound(n, q_i, q_j, v, sigma)
        if told > 1e-10:  # below, the convolution's own rounding would be compared
            worst, tried = max(worst, misorder_probability(p_i, p_j, n, m, sigma) / told), tried + 1
    text = f"The exact chance to mis-order is at most {worst:.3g} of the stated bound in {tried} cases."
    return Finding((printed(text, worst <= 1),))
