"""Section 3.2 and Appendix C: the privacy and the error of the projected histogram."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.sparse import csr_array
from scipy.special import ndtr
from scipy.stats import binom

from elementdp.companion.claims.checks.mechanisms import delta_by_quadrature
from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Fact, Finding, Gap, Role, printed, repaired
from elementdp.companion.theory.counting import paper_variance, project, rho_for
from elementdp.elements import Clusters, Multiset, Partition, element_sensitivity
from elementdp.privacy import gaussian_delta, gaussian_mu

TAIL_CONSTANT = 1 / 8
"""The C of the repaired tail bound; its proof is in the chapter."""
LOWER_CONSTANT, UPPER_CONSTANT = 0.98, 16.0
"""The constants of the repaired squared error."""
_USUAL = list(product((0.1, 1.0, 4.0), (1e-9, 1e-6, 0.1, 0.5)))  # (ε, δ) that people promise
Floats = NDArray[np.float64]


def brute_sensitivity(labels: list[int], rho: float, most: int, m: int | None = None) -> float:
    """es of the projection over all users with counts up to ``most`` (and m items in all, if given)."""
    clusters = Clusters.from_labels(labels)

    def projected(x: Multiset) -> Floats:
        row = csr_array([[x[j] for j in range(len(labels))]])  # type: ignore[index]
        return np.asarray(project(row, clusters, rho).toarray()[0])

    space = [dict(enumerate(x)) for x in product(range(most + 1), repeat=len(labels)) if m is None or sum(x) == m]
    return element_sensitivity(projected, space, Partition.from_key(lambda j: labels[j]))


def _ratio(sensitivity: float, factor: float, epsilon: float, delta: float) -> float:
    """Exact δ over asked δ; sensitivity and noise variance over σ² in units of ρ and ρ²."""
    return gaussian_delta(epsilon, sensitivity / math.sqrt(factor * paper_variance(epsilon, delta))) / delta


@check("histogram-privacy")
def histogram_privacy(effort: Effort, seed: int, factor: Callable[[int], float] = lambda words: 1.0) -> Finding:
    """Lemma 3.2 with noise variance factor(words of a cluster)·ρ²σ²/n²: one word and several, parts (i) and (ii)."""
    rho, facts = 2.0, []
    found = {1: brute_sensitivity([0, 1], rho, 4) / rho, 2: brute_sensitivity([0, 0], rho, 4) / rho}
    exactly_m = brute_sensitivity([0, 0, 1], rho, 3, m=3) / rho
    for words, es in found.items():
        cluster = f"{words} word{'s' * (words > 1)} a cluster"
        level = es**2 / (2 * factor(words))
        usual = {case: _ratio(es, factor(words), *case) for case in _USUAL}
        again = delta_by_quadrature(1.0, es / math.sqrt(factor(words) * paper_variance(1.0, 1e-6)))
        facts += [
            printed(
                f"{cluster}: brute force gives es = {es:.5g} ρ. (i) the exact divergence is {level:.4g} of ε.",
                level <= 1 + 1e-12,
                promised_delta=0.0,
            ),
            printed(
                f"{cluster}, (ii): the exact δ is up to {max(usual.values()):.3g} times the δ asked for in "
                f"{len(usual)} cases; at (1, 10⁻⁶) it is {1e-6 * usual[1.0, 1e-6]:.4g} (closed form), "
                f"{again:.4g} (quadrature).",
                max(usual.values()) <= 1,
                promised_delta=1e-9,
            ),
        ]
    edge = brentq(lambda x: paper_variance(1.0, math.exp(x)) * gaussian_mu(1.0, math.exp(x)) ** 2 - 2, -20, -1)
    doubled = max(_ratio(found[2], 2.0, *case) for case in _USUAL)
    facts.append(
        repaired(
            f"Noise variance 2ρ²σ²/n² in clusters of two or more words: exact δ at most {doubled:.3g} of the δ asked "
            f"for; es is √2 ρ also among users with exactly m items ({exactly_m:.5g} ρ). With ρ²σ²/n² part (ii) fails "
            f"at ε = 1 for every δ < {math.exp(edge):.3g}.",
            doubled <= 1 and math.isclose(found[2], math.sqrt(2)) and math.isclose(exactly_m, math.sqrt(2)),
        )
    )
    return Finding(
        tuple(facts),
        repair="(ii) holds as printed for one-word clusters (δ ≤ e^(-ε/4) if ε ≤ 1). For clusters of two or more "
        "words, user-level K = 1 among them, the noise variance must be 2ρ²σ²/n²: ‖x - y‖² ≤ ‖x‖² + ‖y‖² ≤ 2ρ² for "
        "non-negative x, y. (i) holds for both; one-word clusters need only half that variance.",
        gap=Gap.CONSTANT,
    )


@check("histogram-user")
def histogram_user(effort: Effort, seed: int, over_m: float = 1.0) -> Finding:
    """The text calls ρ = over_m·m the user-level sensitivity of a histogram of m words."""
    m, d = 3, 3
    users = [np.array(x, dtype=float) for x in product(range(m + 1), repeat=d) if sum(x) == m]
    gs = max(float(np.linalg.norm(x - y)) for x in users for y in users) / m
    usual = {case: _ratio(gs, over_m**2, *case) for case in _USUAL}
    right = max(_ratio(gs, 2.0, *case) for case in _USUAL)
    return Finding(
        (
            printed(
                f"Brute force over the {len(users)} users with exactly m = {m} of {d} words: the largest distance is "
                f"{gs:.5g} m, stated {over_m:.5g} m; with that noise the exact user-level δ is up to "
                f"{max(usual.values()):.3g} times the δ asked for in {len(usual)} cases.",
                gs <= over_m * (1 + 1e-12) and max(usual.values()) <= 1,
                promised_delta=1e-9,
            ),
            repaired(f"With √2 m it is at most {right:.3g} of it.", right <= 1 and math.isclose(gs, math.sqrt(2))),
        ),
        repair="The user-level sensitivity is √2·m: one user says m times one word, another m times another.",
        gap=Gap.CONSTANT,
    )


@dataclass(frozen=True)
class Projected:
    """Exact moments of one coordinate of a two-word cluster before and after the projection."""

    bias: float  # E[X_j - π(X)_j]
    variance: float
    raw_variance: float


def projected_law(m: int, p_j: float, p_l: float, rho: float) -> tuple[Floats, Floats, Floats]:
    """Weights, counts X_j and projected counts π(X)_j of Multinomial(m, (p_j, p_l, rest)); p_l = 0 is one word."""
    total, share = p_j + p_l, p_j / (p_j + p_l)
    y, x = np.meshgrid(np.arange(m + 1), np.arange(m + 1), indexing="ij")
    weight = binom.pmf(y, m, total) * binom.pmf(x, y, share)
    pi = x * np.minimum(1.0, rho / np.maximum(np.hypot(x, y - x), 1e-300))
    keep = weight > 0
    return weight[keep], x[keep].astype(float), pi[keep]


@cache
def projected_moments(m: int, p_j: float, p_l: float, rho: float) -> Projected:
    """Bias and variance by enumeration."""
    weight, x, pi = projected_law(m, p_j, p_l, rho)
    mean_x, mean_pi = float(weight @ x), float(weight @ pi)
    return Projected(mean_x - mean_pi, float(weight @ (pi - mean_pi) ** 2), float(weight @ (x - mean_x) ** 2))


@check("binomial-lemma")
def binomial_lemma(effort: Effort, seed: int, factors: tuple[float, float] = (2.0, 2.0)) -> Finding:
    """Lemma C.1: Σ_{i≥l} P(X≥i) over P(X≥l), and that over P(X=l), against the stated factors."""
    largest, tried = np.zeros(2), 0
    for m, p in product((3, 10, 40), np.linspace(0.005, 0.25, 30)):
        level = math.ceil(3 * m * p)
        if level <= m:
            pmf = binom.pmf(np.arange(m + 1), m, p)
            tails = np.cumsum(pmf[::-1])[::-1]
            largest = np.maximum(largest, [tails[level:].sum() / tails[level], tails[level] / pmf[level]])
            tried += 1
    text = f"The ratios are at most {largest[0]:.3g} and {largest[1]:.3g} in {tried} cases; stated {factors[0]:g} each."
    return Finding((printed(text, bool((largest <= factors).all())),))


@dataclass(frozen=True)
class BiasLemma:
    """A form of Lemma C.2: the level l(m, p, t), and the base b of the proof's step b^(-2 log m) ≤ m^(-2)."""

    level: Callable[[int, Floats, float], Floats]
    base: float


PRINTED_BIAS_LEMMA = BiasLemma(lambda m, p, t: 3 * m * p + 3 * math.log(m) + t, 2.0)
"""Lemma C.2 as printed, natural logarithm."""


def bias_lemma_ratio(lemma: BiasLemma, m: int, p: Floats, t: float) -> float:
    """The largest P(X = ⌈l⌉)/(p 2^-t)."""
    level = np.ceil(lemma.level(m, p, t))
    return float(np.exp(binom.logpmf(level, m, p) - np.log(p) + t * math.log(2)).max())


@check("bias-lemma")
def bias_lemma(effort: Effort, seed: int, lemma: BiasLemma = PRINTED_BIAS_LEMMA) -> Finding:
    """Lemma C.2, and the step of its proof that needs the right logarithm."""
    sizes = (3, 4, 5, 30, 300) if effort is Effort.SMOKE else (3, 4, 5, 8, 30, 100, 1000, 10_000)
    ps = np.geomspace(1e-9, 0.34, 400)
    worst = max(bias_lemma_ratio(lemma, m, ps, t) for m in sizes for t in (0.0, 0.3, 1.0, 4.0))
    step = lemma.base ** (-2 * math.log(10)) / 0.01
    falls = max(
        float(((m - j) / (j + 1) * p / (1 - p)).max())
        for m, p in product((5, 30, 300), (0.001, 0.05, 0.2, 0.3))
        if (j := np.arange(math.ceil(3 * m * p), m)).size
    )
    return Finding(
        (
            printed(
                f"P(X = ⌈l⌉) is at most {worst:.3g} of p 2^-t in {len(sizes) * 4 * ps.size} cases, natural logarithm.",
                worst <= 1,
            ),
            printed(f"The proof's {lemma.base:g}^(-2 log m) is {step:.3g} times m^(-2) at m = 10.", step <= 1),
            repaired(
                f"Beyond 3mp successive probabilities fall by a factor of at most {falls:.4g} ≤ 1/3, and 3^(-2 log m) "
                f"is {3 ** (-2 * math.log(10)) / 0.01:.3g} times m^(-2).",
                falls <= 1 / 3 and 3 ** (-2 * math.log(10)) <= 0.01,
            ),
        ),
        repair="The lemma stands with the natural logarithm; its proof needs the factor 1/3 where it uses 1/2.",
        gap=Gap.WORDING,
    )


def error_tail(n: int, m: int, p: float, rho: int, sigma: float, u: float) -> float:
    """P(|M_j - mp| ≥ u) for a one-word cluster, exactly: n-fold convolution of min(X, ρ), then noise ρσ/n."""
    one = binom.pmf(np.arange(m + 1), m, p)
    if rho < m:
        one = np.r_[one[:rho], one[rho:].sum()]
    law: Floats = np.ones(1)
    for _ in range(n):
        law = fftconvolve(law, one)
    return _noisy_tail(law, np.arange(law.size) / n - m * p, rho * sigma / n, u)


def projected_tail(n: int, m: int, p_j: float, p_l: float, rho: float, sigma: float, u: float) -> float:
    """The same for a word in a two-word cluster, by listing all n users' projected counts (n at most 3)."""
    weight, _, pi = projected_law(m, p_j, p_l, rho)
    values, where = np.unique(np.round(pi, 12), return_inverse=True)
    one: Floats = np.bincount(where, weight).astype(float)
    law, total = one, values
    for _ in range(n - 1):
        law, total = np.outer(law, one).ravel(), np.add.outer(total, values).ravel()
    return _noisy_tail(law, total / n - m * p_j, rho * sigma / n, u)


def _noisy_tail(law: Floats, gap: Floats, sd: float, u: float) -> float:
    """P(|gap + N(0, sd²)| ≥ u)."""
    if sd == 0:
        return float(law[np.abs(gap) >= u - 1e-12].sum())
    return float(law @ (ndtr((gap - u) / sd) + ndtr((-gap - u) / sd)))


def overflow(m_floor: int) -> float:
    """A bound on E[X_j² 1{Y>ρ}]/(mp_j) over all p and m ≥ m_floor, by size biasing and Chernoff: see the chapter."""

    def chernoff(mean: float, level: float) -> float:
        return math.exp(-mean + level * (1 + math.log(mean / level))) if mean < level else 1.0

    slack = 3 * math.log(m_floor)
    means: list[float] = np.geomspace(1e-6, 100, 4000).tolist()
    return max(chernoff(mean, 3 * mean + slack - 1) + mean * chernoff(mean, 3 * mean + slack - 2) for mean in means)


@dataclass(frozen=True)
class ErrorBounds:
    """A form of Proposition 2: the factor before the exponential tail, and the word's share of the lower bound."""

    sides: float
    lower: Callable[[float], float]


PRINTED_ERROR = ErrorBounds(1.0, lambda p: 1.0)
"""Proposition 2 as printed."""
REPAIRED_ERROR = ErrorBounds(2.0, lambda p: 1 - p)
"""With two sides, and without sampling error for a word that everybody says."""


@check("histogram-utility")
def histogram_utility(effort: Effort, seed: int, bounds: ErrorBounds = PRINTED_ERROR) -> Finding:
    """Proposition 2: bias, tail, and both sides of the squared error, all by exact enumeration."""
    return Finding(
        (
            _bias_fact(effort),
            _tail_fact(bounds),
            _lower_fact(bounds),
            _projection_remark(effort),
            _repaired_tail(effort),
            _repaired_error(effort),
        ),
        repair="P(|M_j - mp_j| ≥ 2^(2-t) q_j + u) ≤ 2 exp(-min{nu²/(mp_j), n²u²/(σ²ρ²), nu/ρ}/8), and "
        "0.98·[mp_j(1-p_j)/n + σ²ρ²/n²] ≤ E|M_j - mp_j|² ≤ 16·[4^(-t) q_j² + mp_j/n + σ²ρ²/n²]. The bias part stands "
        "with 3 log m, natural logarithm: E(Y-ρ)₊ replaces mP(Y>ρ).",
        gap=Gap.CONSTANT,
    )


def _moments(effort: Effort) -> list[tuple[int, float, float, Projected]]:
    """(m, P(c), share of the word, moments) wherever the proposition's ρ at t = 0 projects."""
    sizes = (5, 30) if effort is Effort.SMOKE else (5, 8, 30, 100)
    return [
        (m, float(p), r, projected_moments(m, float(p) * r, float(p) * (1 - r), rho_for(float(p), m, 0.0)))
        for m, p, r in product(sizes, np.geomspace(1e-4, 0.3, 8), (0.1, 0.5, 1.0))
        if rho_for(float(p), m, 0.0) < m
    ]


def _bias_fact(effort: Effort) -> Fact:
    moments = _moments(effort)
    worst = max(x.bias / (4 * p) for _, p, _, x in moments)
    return printed(f"The bias is at most {worst:.2g} of 2^(2-t) P(c) at t = 0 in {len(moments)} cases.", worst <= 1)


def _tail_fact(bounds: ErrorBounds) -> Fact:
    """|X - 3/2| ≥ 1/2 always: with almost no noise the probability is almost 1, and no C may push the bound below."""
    inside = float(ndtr((0.4 - 0.5) / 0.003))
    rough = error_tail(1, 3, 0.5, 3, 0.001, 0.4)
    least = min(0.4**2 / 1.5, 0.4 / 3, (0.4 / 0.003) ** 2)
    forced = (math.log(bounds.sides) - math.log1p(-inside)) / least
    return printed(
        "Tail: n = 1, m = ρ = 3, p_j = 1/2, σ = 0.001, u = 0.4: |X - 3/2| ≥ 1/2 always, so the probability is 1 - "
        f"{inside:.1g} (convolution: {rough:.10g}) and the bound {bounds.sides:g}·exp(-C·…) needs C ≤ {forced:.2g}; "
        "the printed one leaves no C > 0 as σ → 0.",
        forced > 1e-6,
    )


def _lower_fact(bounds: ErrorBounds) -> Fact:
    n, p, sigma = 10**6, 1 - 1e-6, 1.0
    exact = 3 * p * (1 - p) / n + (sigma * 3 / n) ** 2
    bracket = 3 * p * bounds.lower(p) / n + (sigma * 3 / n) ** 2
    return printed(
        f"Lower bound: m = ρ = 3, p_j = 1 - 10⁻⁶, σ = 1, n = 10⁶: exact squared error {exact:.3g}, bracket "
        f"{bracket:.3g}, so C₀ ≤ {exact / bracket:.1g}; the printed one leaves no C₀ > 0 as p_j → 1 and n → ∞.",
        exact / bracket > 1e-4,
    )


def _projection_remark(effort: Effort) -> Fact:
    wild = projected_moments(10, 0.3, 0.7, 7.25)
    upper = max(x.variance / x.raw_variance for *_, x in _moments(effort))
    return Fact(
        Role.REMARK,
        "The proof's “projections reduce variance” is false coordinate by coordinate: m = 10, p = (0.3, 0.7), ρ = 7.25 "
        f"gives var π(X)₁ = {wild.variance:.4g} > var X₁ = {wild.raw_variance:.4g}. With the proposition's own ρ the "
        f"ratio was at most {upper:.6g}.",
        wild.variance > wild.raw_variance,
    )


def _exponent(n: int, u: float, mean: float, rho: float, sigma: float) -> float:
    noise = (n * u / (sigma * rho)) ** 2 if sigma else math.inf
    return min(n * u * u / mean, noise, n * u / rho)


def _repaired_tail(effort: Effort) -> Fact:
    """2 exp(-…/8) where nothing is projected, and where one- and two-word clusters are."""
    worst, tried, cut = 0.0, 0, 0
    for n, m, p, sigma in product((1, 5, 40), (5, 12), (0.02, 0.3, 0.9), (0.0, 0.5, 5.0)):
        rho = min(math.ceil(rho_for(p, m, 0.0)), m)
        bias = projected_moments(m, p, 0.0, rho).bias
        for u in m * p * np.array([0.05, 0.3, 1.0, 3.0]):
            bound = 2 * math.exp(-TAIL_CONSTANT * _exponent(n, u, m * p, rho, sigma))
            worst, tried = max(worst, error_tail(n, m, p, rho, sigma, bias + u) / bound), tried + 1
    sizes = (1, 2) if effort is Effort.SMOKE else (1, 2, 3)
    for n, m, p, share, sigma in product(sizes, (12, 20), (0.01, 0.05, 0.1), (0.3, 0.7), (0.0, 1.0)):
        radius = rho_for(p, m, 0.0)
        if radius < m:
            bias = projected_moments(m, p * share, p * (1 - share), radius).bias
            for u in (0.1 * m * p, m * p, 3 * m * p, radius):
                bound = 2 * math.exp(-TAIL_CONSTANT * _exponent(n, u, m * p * share, radius, sigma))
                tail = projected_tail(n, m, p * share, p * (1 - share), radius, sigma, bias + u)
                worst, cut = max(worst, tail / bound), cut + 1
    return repaired(
        f"P(…) ≤ 2 exp(-min{{…}}/8): exact tails are at most {worst:.3g} of it in {tried} cases of one-word clusters "
        f"and {cut} of two-word clusters whose counts are projected.",
        worst <= 1 and cut > 0,
    )


def _repaired_error(effort: Effort) -> Fact:
    """Both constants of the squared error: on exact cases, and 0.98 by the proof's own η."""
    moments, eta = _moments(effort), overflow(5)
    lower, upper = math.inf, 0.0
    for (m, p, r, x), n, sigma in product(moments, (1, 10, 1000), (0.0, 0.5, 5.0)):
        noise = (sigma * rho_for(p, m, 0.0) / n) ** 2
        error = x.bias**2 + x.variance / n + noise
        lower = min(lower, error / (m * p * r * (1 - p * r) / n + noise))
        upper = max(upper, error / (m * p * r / n + noise))
    proved = (1 - 1.5 * eta) ** 2
    return repaired(
        f"Squared error over its lower bracket with mp_j(1-p_j) is at least {lower:.4g}, over its upper one at most "
        f"{upper:.4g}, in {9 * len(moments)} exact cases (stated {LOWER_CONSTANT:g} and {UPPER_CONSTANT:g}); the "
        f"proof's η is {eta:.4g} and gives at least {proved:.4g} of var X_j.",
        lower >= LOWER_CONSTANT and upper <= UPPER_CONSTANT and proved >= LOWER_CONSTANT,
    )


Bracket = Callable[[int, float, int], float]
"""What multiplies σ²/n² in the display: a function of m, P(c) and n."""


def printed_bracket(m: int, share: float, n: int) -> float:
    """m²P(c)² + log²m + log²n."""
    return (m * share) ** 2 + math.log(m) ** 2 + math.log(n) ** 2


@check("histogram-rate")
def histogram_rate(effort: Effort, seed: int, bracket: Bracket = printed_bracket) -> Finding:
    """The display after Proposition 2: the exact squared error with t = log n over its maximum."""
    worst, tried = 0.0, 0
    sizes = (10, 40) if effort is Effort.SMOKE else (10, 40, 100)
    for m, p, r, n, sigma in product(
        sizes, (1e-6, 1e-4, 0.01, 0.1, 0.3), (0.1, 1.0), (2, 10, 10**3, 10**6, 10**9), (0.0, 1e-3, 1.0, 10.0)
    ):
        rho = min(rho_for(p, m, math.log(n)), m)
        x = projected_moments(m, p * r, p * (1 - r), rho)
        allowed = max(m * p * r / n, (sigma / n) ** 2 * bracket(m, p, n))
        worst = max(worst, (x.bias**2 + x.variance / n + (sigma * rho / n) ** 2) / allowed)
        tried += 1
    rare = max(1000 * 1e-12 / 10**6, (1e-3 / 10**6) ** 2 * printed_bracket(1000, 0.01, 10**6))
    follows = 4 ** -math.log(10**6) * 0.01**2 / rare
    return Finding(
        (
            printed(
                f"The exact squared error is at most {worst:.3g} times the display's maximum in {tried} cases "
                "(n to 10⁹, σ from 0 to 10): an O(1).",
                worst <= 30,  # ρ² ≤ 27[m²P² + log²m + log²n], and the other terms add at most 3
            ),
            Fact(
                Role.REMARK,
                "Proposition 2 alone does not give it: at m = 1000, P(c) = 0.01, p_j = 10⁻¹², n = 10⁶, σ = 0.001 its "
                f"bias term 4^(-t) P(c)² is {follows:.3g} times the display. It would with t = log₂ n and mσ ≥ 1. The "
                "binomial tail falls by 1/3 a step, so the bias is smaller than the proposition says and no condition "
                "is needed.",
                follows > 1,
            ),
        )
    )
