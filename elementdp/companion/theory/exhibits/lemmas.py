"""What the page on asymptotics shows of the proof: the lemmas' rates, the recursion, and the multipliers."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.theory.exhibits.limits import COLOURS, MARKERS
from elementdp.companion.theory.iteration import NoisySteps
from elementdp.companion.theory.lemmas import LemmaErrors, contraction, predicted_rates
from elementdp.companion.theory.linearised import matrix_error
from elementdp.companion.theory.models import Model, aprox
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
    figure, axes = plt.subplots(figsize=(6, 4.4))
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
    axes.legend(ncols=2, fontsize=9, loc="center left", bbox_to_anchor=(0.0, 0.4))
    last = measured[sizes[-1]]
    return Exhibit(
        name="fig-lemmas",
        figure=figure,
        alt=f"Six curves on log axes, {falling} of them falling from the first size to the last, each beside a dotted "
        "line with the predicted slope.",
        caption=f"The lemmas (β = {setting.beta:g}, σ = {setting.sigma:g}, proximal model, projected after the noise); "
        "dotted: the rate of the proof, logarithms aside.",
        header=("term", "in the paper", "predicted power of k", "measured"),
        rows=rows,
        fold="The powers of k",
        numbers={
            "lemma-minus": f"{last.residual:.0e}",
            "lemma-plus": f"{last.residual_printed:.2g}",
            "lemma-moved": f"{last.projected:.1%}",
        },
    )


def recursion_picture(problem: Population, steps: int, rng: np.random.Generator, loud: float = 12.0) -> Exhibit:
    """Squared distances of runs from θ̂ against the recursion unrolled, as printed and repaired."""
    setting, centre, runs = NoisySteps(0.2, 0.75, loud), problem.optimum, 400
    c0 = contraction(problem, RADIUS - float(np.linalg.norm(centre)), 2 * RADIUS)
    lipschitz = float(problem.p @ (problem.x**2).sum(axis=1))
    theta = np.tile(centre[:, None], (1, runs))
    actual, printed, repaired = np.zeros(steps), np.zeros(steps), np.zeros(steps)
    atoms = rng.choice(len(problem.p), size=(steps, runs), p=problem.p)
    for k, alpha in enumerate(setting.step_sizes(steps)[:-1]):
        x, y = problem.x[atoms[k]].T, problem.y[atoms[k]]
        theta = aprox(Model.FIRST_ORDER, problem.loss, theta, x, y, alpha, RADIUS)
        theta -= alpha * loud * rng.standard_normal(theta.shape)
        actual[k + 1] = ((theta - centre[:, None]) ** 2).sum(axis=0).mean()
        printed[k + 1] = (1 - c0 * alpha) * printed[k] + alpha**2 * lipschitz
        repaired[k + 1] = (1 - c0 * alpha) * repaired[k] + alpha**2 * (2 * lipschitz + 2 * loud**2)
    above, below = float(np.mean(actual[1:] > printed[1:])), float(np.mean(actual[1:] <= repaired[1:]))
    figure, axes = plt.subplots()
    for values, colour, dash, label in (
        (repaired, COLOURS[2], "-.", "bound, repaired"),
        (actual, COLOURS[0], "-", "mean over runs"),
        (printed, COLOURS[1], "--", "bound, as printed"),
    ):
        axes.loglog(np.arange(2, steps + 1), values[1:], color=colour, linestyle=dash, label=label)
    axes.set(xlabel="step k", ylabel="squared distance from θ̂")
    axes.legend()
    return Exhibit(
        name="fig-recursion",
        figure=figure,
        alt="Squared distance of the iterates against the unrolled recursion: the mean lies above the printed bound in "
        f"{above:.0%} of the steps and within the repaired one in {below:.0%}.",
        caption=f"The recursion unrolled from θ₁ = θ̂, with σ = {loud:g} and c₀ = λ min{{1, r/D}} = {c0:.3g} in both "
        f"bounds. "
        f"The mean is above the printed bound in {above:.0%} of the steps. (The population stands for the sample, so "
        f"the "
        "bound's constants are exact.)",
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
        caption=f"Variance of the multiplier sum in units of Σ, n = {n}",
        header=("γ", "√(n/k): exact", "simulated", "√(k/n): exact", "simulated"),
        rows=rows,
    )
