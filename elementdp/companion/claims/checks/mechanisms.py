"""Section 2.1's conversion, the Gaussian mechanism (Equation 1) and the basic mechanisms (Equation 6)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar

from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Fact, Finding, Gap, Role, printed, repaired, tight
from elementdp.companion.theory.counting import GaussianMechanism, LaplaceMechanism, paper_variance
from elementdp.elements import Partition, element_sensitivity
from elementdp.privacy import Unit, gaussian_delta, gaussian_mu, mironov

SIZES = {Effort.SMOKE: 8, Effort.QUICK: 20, Effort.PAPER: 60}
Variance = Callable[[float, float], float]
"""The noise variance for (ε, δ) at sensitivity 1."""


def delta_by_quadrature(epsilon: float, mu: float) -> float:
    """∫ (φ(x-μ) - e^ε φ(x))₊ dx: the second route to every Gaussian δ on these pages."""
    start = epsilon / mu + mu / 2
    scale = math.sqrt(2 * math.pi)

    def gap(x: float) -> float:
        return (math.exp(-((x - mu) ** 2) / 2) - math.exp(epsilon - x * x / 2)) / scale

    stops = [start, start + 0.5, start + 2, start + 6, start + 40]
    return sum(float(quad(gap, a, b, epsabs=0, limit=200)[0]) for a, b in pairwise(stops))


def fixed_size_reading(m: int, items: int) -> Fact:
    """How every statement is read whose text fixes the number m of a user's items: one reading on all pages."""
    words = Partition.identity()
    users = [list(x) for x in combinations_with_replacement(range(items), m)]
    smallest = element_sensitivity(lambda x: np.array([float(j in x) for j in range(items)]), users, words)
    return Fact(
        Role.REMARK,
        f"The text fixes the number of a user's items. Among the {len(users)} users with exactly m = {m} of {items} "
        f"one-item elements no two are neighbours (brute force: sensitivity {smallest:g}), so there the statement is "
        "true and says nothing. As in Section 2 we read: any number of items up to m.",
        smallest == 0,
    )


def renyi_two_point(p: float, q: float, alpha: float) -> float:
    """D_α between coins that fall heads with probability p and q."""
    log_moment = np.logaddexp(
        alpha * math.log(p) + (1 - alpha) * math.log(q), alpha * math.log1p(-p) + (1 - alpha) * math.log1p(-q)
    )
    return float(log_moment) / (alpha - 1)


def tight_delta(epsilon: float, alpha: float, target: float) -> float:
    """The best closed-form δ at ``target`` for an (ε, α)-Rényi private mechanism (Canonne, Kamath & Steinke 2020)."""
    return math.exp((alpha - 1) * (epsilon - target + math.log1p(-1 / alpha))) / alpha


def worst_two_point(epsilon: float, alpha: float, target: float) -> float:
    """The largest δ at ``target`` of two coins with D_α ≤ ε: a lower bound on any conversion."""

    def advantage(log_q: float) -> float:
        q = math.exp(log_q)
        ceiling = 1 - 1e-12
        if renyi_two_point(ceiling, q, alpha) <= epsilon:
            return ceiling - math.exp(target) * q
        log_p = brentq(
            lambda x: renyi_two_point(math.exp(x), q, alpha) - epsilon, log_q + 1e-12, math.log(ceiling), xtol=1e-15
        )
        return math.exp(log_p) - math.exp(target) * q

    grid = np.linspace(-target - 30, -target - 1e-3, 100)
    best = grid[int(np.argmax([advantage(x) for x in grid]))]
    step = float(grid[1] - grid[0])
    found = minimize_scalar(lambda x: -advantage(x), bounds=(best - step, min(best + step, -1e-6)), method="bounded")
    return float(-found.fun)


@check("rdp-to-dp")
def rdp_to_dp(effort: Effort, seed: int, conversion: Callable[[float, float, float], float] = mironov) -> Finding:
    """(ε, α)-Rényi ⇒ (ε', δ): the worst coins and Gaussians against the ε' a conversion names."""
    smoke = effort is Effort.SMOKE
    cases = list(
        product(
            (2.0, 10.0) if smoke else (1.5, 2.0, 4.0, 10.0, 50.0), (0.1, 1.0), (1e-6,) if smoke else (1e-8, 1e-4, 0.1)
        )
    )
    ratios = np.array(
        [_conversion_ratios(conversion(epsilon, alpha, x), *case) for case in cases for alpha, epsilon, x in [case]]
    )
    coins, gauss, best = ratios.max(axis=0)
    alpha, epsilon, lost = 10.0, 1.0, 1e-6
    named = conversion(epsilon, alpha, lost)
    known = epsilon + math.log(1 / lost) / (alpha - 1) + math.log1p(-1 / alpha) - math.log(alpha) / (alpha - 1)
    return Finding(
        (
            printed(
                f"In {len(cases)} cases the worst pair of coins with D_α = ε, and the Gaussian pair, have true δ at "
                f"most "
                f"{coins:.3g} and {gauss:.3g} times the δ the conversion names; the best closed form has {best:.3g}.",
                max(coins, gauss) <= 1,
                promised_delta=1e-6,
            ),
            tight(
                f"At α = {alpha:g}, ε = {epsilon:g}, δ = {lost:g} the stated ε' is {named:.4g}, the best closed form's "
                f"{known:.4g}.",
                named <= 1.01 * known,
            ),
        )
    )


def _conversion_ratios(target: float, alpha: float, epsilon: float, lost: float) -> tuple[float, float, float]:
    """True δ at ``target`` over δ, for the worst coins and for a Gaussian, and the best closed form's."""
    coins = worst_two_point(epsilon, alpha, target)
    gauss = gaussian_delta(target, math.sqrt(2 * epsilon / alpha))
    return coins / lost, gauss / lost, tight_delta(epsilon, alpha, target) / lost


def cautious_variance(epsilon: float, delta: float) -> float:
    """Equation (1) with the 1/ε term kept for every ε, as Appendix A derives it."""
    return 1 / epsilon + 2 * math.log(1 / delta) / epsilon**2


@check("gaussian-mech")
def gaussian_mech(effort: Effort, seed: int, variance: Variance = paper_variance) -> Finding:
    """A variance formula against the exact Gaussian curve, for every ε and δ up to 1."""
    size = SIZES[effort]

    def excess(epsilon: float, delta: float) -> float:
        return gaussian_delta(epsilon, variance(epsilon, delta) ** -0.5) / delta

    large = [(e, d) for e in np.geomspace(1.0001, 50, size) for d in np.geomspace(1e-15, 0.999, size)]
    usual = [(e, d) for e in np.geomspace(1e-3, 1, size) for d in np.geomspace(1e-15, 0.7, size)]
    beyond = [(e, d) for e in (0.5, 1.0) for d in np.linspace(0.75, 0.9999, 10 * size)]
    worst = [max(excess(*case) for case in group) for group in (large, usual, beyond)]
    failing = min((d for e, d in beyond if e == 1 and excess(e, d) > 1), default=1.0)
    mu = variance(1.0, 0.99) ** -0.5
    waste = variance(1.0, 1e-6) * gaussian_mu(1.0, 1e-6) ** 2
    return Finding(
        (
            printed(
                f"ε > 1: the exact δ is at most {worst[0]:.4g} of the δ asked for at {len(large)} points (ε to 50, δ "
                "to 0.999).",
                worst[0] <= 1,
                promised_delta=1e-15,
            ),
            printed(
                f"ε ≤ 1, δ ≤ 0.7: at most {worst[1]:.4g} of it at {len(usual)} points.",
                worst[1] <= 1,
                promised_delta=1e-15,
            ),
            printed(
                f"ε ≤ 1, δ from 0.75 to 1: at most {worst[2]:.4g} of it; at ε = 1 the least failing δ of the grid is "
                f"{failing:.4g}; δ = 0.99 gives {gaussian_delta(1.0, mu):.6g} (closed form) and "
                f"{delta_by_quadrature(1.0, mu):.6g} (quadrature).",
                worst[2] <= 1,
                promised_delta=0.75,
            ),
            tight(
                f"At ε = 1, δ = 10⁻⁶ the stated variance is {waste:.3g} times what the exact curve needs.", waste < 1.05
            ),
            *_repaired_gaussian(size),
        ),
        repair="For ε ≤ 1 ask δ ≤ e^(-ε/4) (any δ ≤ 0.77 will do): with s² = 2 log(1/δ) and μ = ε/s, s ≥ μ/2 and "
        "δ(ε; μ) ≤ Φ(μ/2 - s) ≤ ½ exp(-(s - μ/2)²/2) ≤ ½ e^(ε/2) δ < δ. Or keep the 1/ε term for every ε. "
        "Least noise: invert the exact curve.",
        gap=Gap.ASSUMPTION,
    )


def _repaired_gaussian(size: int) -> list[Fact]:
    """Both repairs of Equation (1), on grids."""
    proved = [
        (e, d)
        for e in np.geomspace(1e-3, 1, size)
        for d in [*np.geomspace(1e-15, math.exp(-e / 4), size)[:-1], math.exp(-e / 4)]
    ]
    worst = max(gaussian_delta(e, paper_variance(e, d) ** -0.5) / d for e, d in proved)
    kept = max(
        gaussian_delta(e, cautious_variance(e, d) ** -0.5) / d
        for e in np.geomspace(1e-3, 50, size)
        for d in np.linspace(0.01, 0.999, size)
    )
    alpha = max(
        abs((1 + 2 * math.log(1 / d) / e) / (2 * cautious_variance(e, d)) + e / 2 - e)
        for e, d in product((0.1, 1.0, 10.0), (1e-9, 0.1, 0.9))
    )
    return [
        repaired(
            f"For ε ≤ 1 and δ ≤ e^(-ε/4): exact δ over asked δ is at most {worst:.4g} on {len(proved)} "
            f"points, below the ½e^(1/2) = {0.5 * math.exp(0.5):.4g} of the proof.",
            worst <= 0.5 * math.exp(0.5),
        ),
        repaired(
            f"With the 1/ε term kept for every ε: at most {kept:.4g} on {size**2} points, δ to 0.999; the appendix's "
            f"α = 1 + 2 log(1/δ)/ε gives ε back to within {alpha:.1g}.",
            kept <= 1 and alpha < 1e-9,
        ),
    ]


@dataclass(frozen=True)
class BasicNoise:
    """A form of Equation (6): the noise's scale over es(f) for n users, and the Gaussian variance for (ε, δ)."""

    scale: Callable[[int], float]
    variance: Variance = paper_variance


PRINTED_NOISE = BasicNoise(lambda n: 1.0)
"""Equation (6) as printed: noise scaled to es(f) whatever n."""
AVERAGED_NOISE = BasicNoise(lambda n: 1 / n, cautious_variance)
"""The repair: noise scaled to es(f)/n."""


@check("basic-mech")
def basic_mech(effort: Effort, seed: int, noise: BasicNoise = PRINTED_NOISE) -> Finding:
    """Noise added to an average over n users of a function with es(f) = 1."""
    epsilon, sizes = 1.0, (1, 10, 1000)
    laplace = {n: LaplaceMechanism(1 / n, noise.scale(n) / epsilon, Unit.ELEMENT).guarantee().epsilon for n in sizes}
    outputs = np.linspace(-5, 5, 2001)
    on_a_grid = max(np.abs(np.abs(outputs - 1 / n) - np.abs(outputs)).max() * epsilon / noise.scale(n) for n in sizes)
    usual = {case: _gaussian_ratio(noise, *case) for case in product(sizes, (0.1, 1.0, 3.0), (1e-9, 1e-3, 0.5))}
    near_one = _gaussian_ratio(noise, 1, 1.0, 0.99)
    averaged = max(_gaussian_ratio(AVERAGED_NOISE, *case) for case in usual)
    return Finding(
        (
            printed(
                f"Laplace noise, ε = {epsilon:g}: exact ε for n = 1, 10, 1000 is "
                + ", ".join(f"{value:.3g}" for value in laplace.values())
                + f" (largest log likelihood ratio on a grid {on_a_grid:.3g}).",
                max(laplace.values()) <= epsilon * (1 + 1e-12) and on_a_grid <= epsilon * (1 + 1e-9),
                promised_delta=0.0,
            ),
            printed(
                f"Gaussian noise, δ ≤ 0.5: exact δ is at most {max(usual.values()):.3g} of the δ asked for in "
                f"{len(usual)} cases.",
                max(usual.values()) <= 1,
                promised_delta=1e-9,
            ),
            printed(
                f"Gaussian noise, n = 1, ε = 1, δ = 0.99: exact δ {near_one * 0.99:.6g} (the gap of Equation 1).",
                near_one <= 1,
                promised_delta=0.99,
            ),
            tight(
                f"An average moves by es(f)/n; the stated Laplace noise is {epsilon / laplace[10]:.4g} times what n = "
                f"10 needs and {epsilon / laplace[1000]:.4g} times what n = 1000 needs.",
                math.isclose(laplace[1000], epsilon),
            ),
            repaired(
                f"Noise scaled to es(f)/n, 1/ε term kept: exact δ at most {averaged:.3g} of the δ asked for in "
                f"{len(usual)} cases.",
                averaged <= 1,
            ),
            fixed_size_reading(3, 3),
        ),
        repair="Scale the noise to es(f)/n: as printed it is private and n times larger than needed. Gaussian noise "
        "for ε ≤ 1 needs δ ≤ e^(-ε/4).",
        gap=Gap.ASSUMPTION,
    )


def _gaussian_ratio(noise: BasicNoise, n: int, epsilon: float, delta: float) -> float:
    """Exact δ over asked δ of the Gaussian branch for n users."""
    sigma = noise.scale(n) * math.sqrt(noise.variance(epsilon, delta))
    return GaussianMechanism(1 / n, sigma, Unit.ELEMENT).delta(epsilon) / delta
