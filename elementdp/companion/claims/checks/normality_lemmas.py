"""Appendix D: the good event, the recursion lemma, and the four lemmas whose errors vanish."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from elementdp.companion.claims.checks.normality import lemma_curves
from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Fact, Finding, Gap, printed, repaired
from elementdp.companion.theory.iteration import NoisySteps
from elementdp.companion.theory.lemmas import contraction, one_step_distance, predicted_rates
from elementdp.companion.theory.linearised import matrix_error
from elementdp.companion.theory.population import logistic_population
from elementdp.companion.theory.theorem import RADIUS, STEP_SIZES

_BETA = 0.75
_NOISES = (1.0, 6.0, 20.0)
_POINTS = {Effort.SMOKE: 100, Effort.QUICK: 1000, Effort.PAPER: 10_000}


def bad_row_floor(n: np.ndarray | float) -> np.ndarray:
    """A lower bound on the chance that row n is bad when P(L² > w) = w^(-3/2): one term alone exceeds 2n E[L²]."""
    size = np.asarray(n, dtype=float)
    return np.asarray(-np.expm1(size * np.log1p(-((6 * size) ** -1.5))))


def bad_row_ceiling(n: float) -> float:
    """An upper bound on the same chance: some term above n^0.9, or the truncated mean is off by E[L²] = 3."""
    cut = float(n) ** 0.9
    return float(n * cut**-1.5 + 3 * math.sqrt(cut) / (n * 3**2))


@check("good-event")
def good_event(effort: Effort, seed: int, eventually: bool = True) -> Finding:
    """A triangular array of independent rows with E[L²] < ∞: are all rows good from some n on?"""
    ends = (10**3, 10**5, 10**7)
    blocks = [np.arange(a, b, dtype=float) for a, b in ((1, 10**3), (10**3, 10**5), (10**5, 10**7))]
    total = np.cumsum([float(bad_row_floor(block).sum()) for block in blocks])
    ceiling = [bad_row_ceiling(float(n)) for n in ends]
    rare = (
        "each row is good with probability tending to 1: a row is bad with probability at most "
        + ", ".join(f"{c:.2g} (n = {n:.0e})" for n, c in zip(ends, ceiling, strict=True)),
        ceiling[-1] < ceiling[1] < ceiling[0] < 1,
    )
    always = (
        "L² with P(L² > w) = w^(-3/2), so E[L²] = 3: the chances that row n has (1/n)ΣL² > 2E[L²] add up to at least "
        + ", ".join(f"{t:.3g} (n ≤ {n:.0e})" for n, t in zip(ends, total, strict=True))
        + ", like √n. Rows are independent, so infinitely many are bad (Borel and Cantelli) and no N is finite.",
        bool(total[2] <= 1.1 * total[1]),
    )
    return Finding(
        (printed(*(always if eventually else rare)), repaired(*rare)),
        repair="Say that the event has probability tending to 1, which is all that the theorem needs; or let the rows "
        "be the first n terms of one sequence, where the strong law applies.",
        gap=Gap.ASSUMPTION,
    )


@dataclass(frozen=True)
class Recursion:
    """A form of the recursion lemma: the factor of α²E[L₀²], and whether the noise's α²σ²tr(Σ_Z) is there."""

    factor: float
    noise: bool


@check("recursion-lemma")
def recursion_lemma(effort: Effort, seed: int, stated: Recursion = Recursion(1.0, noise=False)) -> Finding:  # noqa: B008
    """Lemma D.1 on the population as the sample, exactly, at points all over Θ; L₀(x) = |x| for the logistic loss."""
    worst_printed, tried, c0 = _recursion_ratio(effort, seed, stated)
    worst_repaired, _, _ = _recursion_ratio(effort, seed, Recursion(2.0, noise=True))
    curves = lemma_curves(effort, seed)
    setting = NoisySteps(STEP_SIZES[_BETA], _BETA)
    scaled = [found.distance / (setting.step_sizes(k)[-1] * math.log(k)) for k, found in curves.items()]
    return Finding(
        (
            printed(
                f"one step from {tried} points of Θ (θ̂ among them), α = 0.05, σ = 1, 6, 20: the exact mean of the "
                f"next squared "
                f"distance is up to {worst_printed:.3g} times the stated bound (c₀ = {c0:.3g} = λ min{{1, r/D}}).",
                worst_printed <= 1,
            ),
            printed(
                "E[δ²_k]/(α_k log k) at k = "
                + ", ".join(map(str, curves))
                + " is "
                + ", ".join(f"{value:.3g}" for value in scaled)
                + ": bounded.",
                max(scaled[1:]) <= scaled[0],
            ),
            repaired(
                f"with α²σ²tr(Σ_Z) and the factor 2 that the proof's own last step gives it is at most "
                f"{worst_repaired:.3g} of the bound at the same points.",
                worst_repaired <= 1,
            ),
        ),
        repair="E[δ²_{k+1}] ≤ (1 - c₀α_k) δ²_k + 2α²_k E[L₀²] + α²_k σ² tr(Σ_Z), with c₀ = λ min{1, r/D}: λ the least "
        "curvature within r of θ̂, D the diameter of Θ.",
        gap=Gap.ASSUMPTION,
    )


def _recursion_ratio(effort: Effort, seed: int, stated: Recursion) -> tuple[float, int, float]:
    """The largest exact mean over its bound, the number of points, and c₀, which no point had a say in."""
    population, alpha = logistic_population(), 0.05
    centre = population.optimum
    reach = RADIUS - float(np.linalg.norm(centre))
    c0 = contraction(population, reach, 2 * RADIUS)
    lipschitz = float(population.p @ (population.x**2).sum(axis=1))
    extra = {
        sigma: alpha**2 * (stated.factor * lipschitz + stated.noise * sigma**2 * population.dimension)
        for sigma in _NOISES
    }
    rng = np.random.default_rng([seed, 7])
    length = RADIUS * np.sqrt(rng.random(_POINTS[effort]))
    angle = 2 * np.pi * rng.random(_POINTS[effort])
    points = [centre, *(np.stack([np.cos(angle), np.sin(angle)], axis=1) * length[:, None])]
    ratios = [
        one_step_distance(population, point, centre, alpha, sigma, RADIUS)
        / ((1 - c0 * alpha) * float((point - centre) @ (point - centre)) + extra[sigma])
        for point in points
        for sigma in _NOISES
    ]
    return max(ratios), len(points), c0


_LOUD = 3.0  # noise that makes the projection after it act


def vanishing(effort: Effort, seed: int, name: str, divided_by: float, sigma: float = 0.5) -> Fact:
    """Whether a sum of errors divided by k^divided_by falls at every size, at half the proof's rate or faster."""
    curves = lemma_curves(effort, seed, sigma)
    sizes = list(curves)
    setting = NoisySteps(STEP_SIZES[_BETA], _BETA, sigma)
    values = [
        matrix_error(logistic_population(), k, setting) if name == "matrix" else getattr(curves[k], name) for k in sizes
    ]  # the fifth lemma depends on H and Σ only: no simulation
    values = [value * k ** (0.5 - divided_by) for k, value in zip(sizes, values, strict=True)]
    rate = math.log(values[-1] / values[0]) / math.log(sizes[-1] / sizes[0])
    proved = predicted_rates(_BETA)[name]
    return printed(
        f"from k = {sizes[0]} to {sizes[-1]} (β = 0.75, σ = {sigma:g}, proximal model, projected after the noise) the "
        f"sum over k^{divided_by:g} goes from {values[0]:.3g} to {values[-1]:.3g}, like k^{rate:.2f}; the proof gives "
        f"k^{proved:.2f}.",
        all(b < a for a, b in pairwise(values)) and rate <= proved / 2,
    )


@check("remainder-lemma")
def remainder_lemma(effort: Effort, seed: int, divided_by: float = 0.5) -> Finding:
    """Lemma D.2."""
    return Finding((vanishing(effort, seed, "remainder", divided_by),))


@check("local-lemma")
def local_lemma(effort: Effort, seed: int, divided_by: float = 0.5) -> Finding:
    """Lemma D.3."""
    return Finding((vanishing(effort, seed, "local", divided_by),))


@check("model-lemma")
def model_lemma(effort: Effort, seed: int, divided_by: float = 0.5) -> Finding:
    """Lemma D.4, and the lemma that the projection after the noise adds (the repair of Theorem 1)."""
    found = list(lemma_curves(effort, seed, _LOUD).values())[-1]
    added = vanishing(effort, seed, "projection", 0.5, _LOUD)
    return Finding(
        (
            vanishing(effort, seed, "model", divided_by),
            repaired(f"what the projection after the noise takes off: {added.text}", added.holds),
            repaired(
                f"it moved {found.projected:.1%} of the steps and took off at most {found.over_bound:.4g} of the noise "
                "itself, as the proof says.",
                found.projected > 0 and found.over_bound <= 1 + 1e-12,
            ),
        )
    )


@check("matrix-lemma")
def matrix_lemma(effort: Effort, seed: int, divided_by: float = 0.5) -> Finding:
    """Lemma D.5."""
    return Finding((vanishing(effort, seed, "matrix", divided_by),))
