"""What the page on asymptotics shows of the proof: the lemmas' rates, the recursion, and the multipliers."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.style import INK, PRINTED, REPAIRED
from elementdp.companion.theory.exhibits.limits import COLOURS, MARKERS
from elementdp.companion.theory.iteration import NoisySteps
from elementdp.companion.theory.lemmas import LemmaErrors, one_step_distance, predicted_rates
from elementdp.companion.theory.linearised import matrix_error
from elementdp.companion.theory.multiplier import multiplier_covariance, multiplier_draws
from elementdp.companion.theory.population import Population
from elementdp.companion.theory.theorem import GAMMAS, RADIUS

_LABELS = {
    "distance": ("1: E|θₖ−θ̂|²", "Lemma D.1"),
    "remainder": ("2: remainder R", "Lemma D.2"),
    "local": ("3: local errors ζ", "Lemma D.3"),
    "model": ("4: model errors ε", "Lemma D.4"),
    "matrix": ("5: matrices A", "Lemma D.5"),
    "projection": ("6: projection e", "added by the repair"),
}


def lemma_curves(problem: Population, setting: NoisySteps, measured: Mapping[int, LemmaErrors]) -> Exhibit:
    """Each lemma's quantity against k, beside the rate of its proof."""
    sizes, wanted = list(measured), predicted_rates(setting.beta)
    figure, axes = plt.subplots(figsize=(6, 5.0))
    rows, falling = [], 0
    for (name, (label, where)), colour, marker in zip(_LABELS.items(), COLOURS, MARKERS, strict=True):
        # Only H and Σ enter the fifth: no need to simulate.
        exact = name == "matrix"
        values = [matrix_error(problem, k, setting) if exact else getattr(measured[k], name) for k in sizes]
        rate = float(np.log(values[-1] / values[-2]) / np.log(sizes[-1] / sizes[-2]))
        rows.append((label, where, wanted[name], rate))
        falling += int(values[-1] < values[0])
        axes.loglog(sizes, values, color=colour, marker=marker, linestyle="-", label=label)
        guide = values[-1] * (np.array(sizes) / sizes[-1]) ** wanted[name]
        axes.loglog(sizes, guide, color=colour, linestyle=":")
    axes.set(xlabel="steps k = n", ylabel="size of the term")
    axes.set_xticks(sizes, [str(k) for k in sizes])
    axes.minorticks_off()
    figure.legend(ncols=2, loc="outside lower center")
    last = measured[sizes[-1]]
    return Exhibit(
        name="fig-lemmas",
        figure=figure,
        alt=f"Six curves on log axes, {falling} of them falling from the first size to the last, each beside a dotted "
        "line with the predicted slope.",
        caption=f"{falling} of the {len(rows)} terms that the lemmas bound fall from the first size to the last. "
        f"Dotted: the rate of the proof, logarithms aside; β = {setting.beta:g}, σ = {setting.sigma:g}, proximal "
        "model, projected after the noise.",
        header=("term", "in the paper", "predicted power of k", "measured"),
        rows=rows,
        fold="The powers of k",
        numbers={
            "lemma-minus": f"{last.residual:.0e}",
            "lemma-plus": f"{last.residual_printed:.2g}",
            "lemma-moved": f"{last.projected:.1%}",
        },
    )


def recursion_picture(problem: Population, alpha: float = 0.05) -> Exhibit:
    """One step from θ̂, exactly: the mean squared distance it leads to against the noise, and both bounds."""
    levels, centre = np.linspace(0, 12, 49), problem.optimum
    lipschitz = float(problem.p @ (problem.x**2).sum(axis=1))
    actual = np.array([one_step_distance(problem, centre, centre, alpha, sigma, RADIUS) for sigma in levels])
    printed = np.full_like(levels, alpha**2 * lipschitz)
    repaired = alpha**2 * (2 * lipschitz + problem.dimension * levels**2)
    beyond = float(levels[np.argmax(actual > printed)])
    figure, axes = plt.subplots(figsize=(6, 3.4))
    for values, colour, dash, label in (
        (repaired, REPAIRED.colour, "-", "bound, repaired"),
        (actual, INK, "-.", "exact mean"),
        (printed, PRINTED.colour, "--", "bound, as printed"),
    ):
        axes.plot(levels, values, color=colour, linestyle=dash, label=label)
    axes.set(xlabel="noise σ", ylabel="squared distance from θ̂", ylim=(0, None))
    axes.legend()
    return Exhibit(
        name="fig-recursion",
        figure=figure,
        alt=f"Mean squared distance from θ̂ after one step from there, against σ. It passes the printed bound, which "
        f"is flat, at σ = {beyond:g}, and stays below the repaired one for every σ shown.",
        caption=f"From σ = {beyond:g} on the exact mean is above the printed bound; the repaired bound holds. One step "
        f"of size α = {alpha:g} from θ_k = θ̂, where c₀ plays no part; exact sums over the logistic problem, whose "
        "population stands for the sample.",
        numbers={"asy-beyond": f"{beyond:g}"},
    )


def multiplier_table(problem: Population, rng: np.random.Generator, n: int = 400) -> Exhibit:
    """The variance of the multiplier sum with either scaling, in units of Σ."""
    scatter, rows = np.trace(problem.covariance(problem.optimum)), []
    for gamma in GAMMAS:
        row: list[object] = [f"{gamma:g}"]
        for power in (1, -1):
            draws, _ = multiplier_draws(problem, n, round(n * gamma), power, 4000, rng)
            exact = multiplier_covariance(problem, n, round(n * gamma), power)
            row += [float(np.trace(exact) / scatter), float(np.trace(np.cov(draws.T)) / scatter)]
        rows.append(row)
    return Exhibit(
        name="tab-multipliers",
        caption=f"Only the scaling by √(n/k) gives Σ at every γ. Variance of the multiplier sum in units of Σ, n = {n}",
        header=("γ", "√(n/k): exact", "simulated", "√(k/n): exact", "simulated"),
        rows=rows,
    )
