"""What the page on asymptotics shows of Theorem 1: its problems, its grid, and the way to the limit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.style import INK, PALETTE, RULE
from elementdp.companion.theory.agreement import projections, simulation_error
from elementdp.companion.theory.iteration import NoisySteps, Scheme
from elementdp.companion.theory.linearised import finite_covariance, relative_gap
from elementdp.companion.theory.losses import FloatArray, Logistic, MarginLoss, PseudoHuber
from elementdp.companion.theory.models import Model, model_value
from elementdp.companion.theory.population import Population
from elementdp.companion.theory.theorem import GAMMAS, RADIUS, STEP_SIZES, LawCell, grid_settings, run_grid

COLOURS = [INK, *(PALETTE[name] for name in ("sky", "grey", "brown", "violet", "orange"))]
"""For step sizes, problems and lemmas. The first three are no promise's: elsewhere colours say what is promised."""
MARKERS = ["o", "s", "^", "D", "v", "x"]
_TICKS = ["½", "1", "2", "4"]


def over_limit(cell: LawCell, covariance: FloatArray | None = None) -> float:
    """The mean ratio, over directions, of a covariance (the simulated one) to the theorem's limit."""
    found = np.cov(cell.draws.T) if covariance is None else covariance
    return float(np.trace(np.linalg.solve(cell.limit, found)) / 2)


def problems_table(problems: Mapping[str, Population]) -> Exhibit:
    """Both problems by exact sums."""
    rows = []
    for name, problem in problems.items():
        h, s = problem.hessian(problem.optimum), problem.covariance(problem.optimum)
        pairs = [f"{a:.3g}, {b:.3g}" for a, b in (problem.optimum, np.linalg.eigvalsh(h), np.linalg.eigvalsh(s))]
        commutator = np.linalg.norm(h @ s - s @ h) / np.linalg.norm(h @ s)
        rows.append([name, len(problem.p), f"({pairs[0]})", pairs[1], pairs[2], f"{commutator:.2g}"])
    header = ("problem", "atoms", "θ*", "eigenvalues of H", "of Σ", "|HΣ − ΣH| / |HΣ|")
    return Exhibit(name="tab-problems", caption="The two problems, by exact sums", header=header, rows=rows)


def models_picture() -> Exhibit:
    """Three models of a loss built at one point."""
    at, here = np.linspace(-4.5, 3, 300), np.asarray(-3.0)
    figure, panels = plt.subplots(1, 2, figsize=(6, 3.2), sharey=True)
    shown: tuple[tuple[str, MarginLoss, float], ...] = (
        ("logistic", Logistic(), 1.0),
        ("pseudo-Huber", PseudoHuber(), 0.0),
    )
    for axes, (title, loss, label) in zip(panels, shown, strict=True):
        y = np.asarray(label)
        for model, colour, dash in zip(
            (Model.PROXIMAL, Model.TRUNCATED, Model.FIRST_ORDER), COLOURS, ("-", "--", ":"), strict=False
        ):
            axes.plot(at, model_value(model, loss, at, here, y), color=colour, linestyle=dash, label=model.value)
        axes.plot([-3], [float(loss.value(here, y))], "o", color=COLOURS[3])
        axes.set(title=title, xlabel="response xᵀθ", ylim=(-1.6, 4.6))
    panels[0].set_ylabel("loss")
    panels[0].legend(loc="lower left")
    return Exhibit(
        name="fig-aprox-models",
        figure=figure,
        alt="Three models of a loss built at one point: the loss itself, its tangent, and the tangent cut off at zero. "
        "All three touch at that point and none is above the loss.",
        caption="Three models built at the dot. The tangent falls below zero, as no loss does; the other two do not.",
    )


@dataclass(frozen=True, eq=False)
class SimulatedGrid:
    """The simulated cells of both problems at one n."""

    problems: Mapping[str, Population]
    cells: Mapping[str, list[LawCell]]
    n: int
    replications: int

    @classmethod
    def simulate(
        cls, problems: Mapping[str, Population], n: int, replications: int, rng: np.random.Generator
    ) -> "SimulatedGrid":
        """Every (γ, β, σ) for each problem."""
        cells = {name: run_grid(problem, n, replications, rng) for name, problem in problems.items()}
        return cls(problems, cells, n, replications)

    @property
    def updates(self) -> int:
        """How many steps the simulation made."""
        return len(self.problems) * self.replications * len(grid_settings()) * round(max(GAMMAS) * self.n)

    def at(self, name: str, gamma: float, beta: float, sigma: float) -> LawCell:
        """One cell."""
        return next(c for c in self.cells[name] if (c.gamma, c.setting.beta, c.setting.sigma) == (gamma, beta, sigma))

    def parts(self, beta: float = 0.75, sigma: float = 2.0) -> Exhibit:
        """The three parts of the limiting variance against the number of passes, and what the runs had."""
        figure, panels = plt.subplots(1, 2, figsize=(6, 4.0), sharey=True)
        names, looks = (
            ("the sample", "the draws from it", "the noise"),
            ((RULE, ""), (PALETTE["grey"], "//"), (INK, "..")),
        )
        places, band, rows = np.arange(len(GAMMAS)), simulation_error(self.replications) / np.sqrt(2), []
        for axes, (name, problem) in zip(panels, self.problems.items(), strict=True):
            best = np.linalg.inv(problem.sandwich(problem.covariance(problem.optimum)))
            noise = sigma**2 * float(np.trace(best @ problem.sandwich(np.eye(problem.dimension)))) / problem.dimension
            parts = [np.ones(len(GAMMAS)), 1 / np.array(GAMMAS), noise / np.array(GAMMAS)]
            for i, (colour, hatch) in enumerate(looks):
                style = {"color": colour, "alpha": 0.55, "hatch": hatch, "width": 0.62, "edgecolor": INK}
                axes.bar(places, parts[i], bottom=sum(parts[:i]), label=names[i], **style)
            cells = [self.at(name, gamma, beta, sigma) for gamma in GAMMAS]
            seen = [float(np.trace(best @ np.cov(c.draws.T))) / problem.dimension for c in cells]
            bars = [band * value for value in seen]
            axes.errorbar(places, seen, yerr=bars, color=INK, marker="o", ls="none", capsize=3, label="simulated")
            axes.set(title=name, xlabel="passes over the data, γ", xticks=places, xticklabels=_TICKS)
            rows += [(name, _TICKS[i], *(float(part[i]) for part in parts), seen[i]) for i in range(len(GAMMAS))]
        panels[0].set_ylabel("variance / best possible")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return Exhibit(
            name="fig-parts",
            figure=figure,
            alt="Stacked bars of the variance against passes for both problems: the sample's part stays 1, those of "
            "draws and noise shrink like one over the passes; dots of simulated runs lie near the tops.",
            caption="More passes shrink the parts that come from draws and from noise, and never the sample's. "
            f"Variance over that of the best estimator; β = {beta:g}, σ = {sigma:g}. Bars: the limit of Theorem 1. "
            f"Dots: {self.replications} runs each with n = {self.n}, and their 99% simulation error.",
            header=("problem", "passes γ", *names, "simulated in all"),
            rows=rows,
        )

    def cloud(self) -> Exhibit:
        """Scaled errors of the robust problem, with the ellipse of the theorem and the best possible one."""
        figure, panels = plt.subplots(1, 2, figsize=(6, 3.6), sharex=True, sharey=True)
        robust, held, radius = self.problems["robust"], [], stats.chi2.isf(0.05, 2)
        best = robust.sandwich(robust.covariance(robust.optimum))
        for axes, gamma in zip(panels, (0.5, 4.0), strict=True):
            cell = self.at("robust", gamma, 0.75, 2.0)
            axes.plot(*cell.draws[:300].T, ".", color=PALETTE["sky"], alpha=0.45, markersize=3)
            axes.plot(*_ellipse(cell.limit), color=INK, label="95% by Theorem 1")
            axes.plot(*_ellipse(best), color=PALETTE["grey"], linestyle="--", label="95%, best possible")
            axes.set(title=f"γ = {gamma:g}", xlabel="√n (θ̄₁ − θ₁*)")
            lengths = np.einsum("ra,ab,rb->r", cell.draws, np.linalg.inv(cell.limit), cell.draws)
            held.append(float(np.mean(lengths < radius)))
        panels[0].set_ylabel("√n (θ̄₂ − θ₂*)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return Exhibit(
            name="fig-cloud",
            figure=figure,
            alt="Clouds of scaled errors of the robust problem for gamma one half and four with the theorem's 95% "
            "ellipse, "
            f"which holds {held[0]:.0%} and {held[1]:.0%} of the runs, and the dashed ellipse of the best covariance.",
            caption="The solid ellipse should hold 95% of the dots; it holds "
            f"{held[0]:.1%} (left) and {held[1]:.1%} (right). Scaled errors of independent runs, robust problem, "
            "σ = 2, β = 0.75. Dashed: the ellipse of the best possible method.",
            numbers={"asy-held-few": f"{held[0]:.0%}", "asy-held-many": f"{held[1]:.0%}"},
        )

    def ratios(self, level: float) -> Exhibit:
        """Simulated over limiting variance in every cell, the linearised prediction, and the tests' counts."""
        figure, panels = plt.subplots(1, 2, figsize=(6, 3.6), sharey=True)
        band = simulation_error(self.replications)
        for axes, (name, cells) in zip(panels, self.cells.items(), strict=True):
            axes.axhspan(1 - band, 1 + band, color=PALETTE["grey"], alpha=0.25, linewidth=0)
            for beta, shift, colour, marker in zip(STEP_SIZES, (-0.13, 0.0, 0.13), COLOURS, MARKERS, strict=False):
                some = [c for c in cells if c.setting.beta == beta]
                x = [np.log2(c.gamma) + shift + 0.05 * (c.setting.sigma - 1) for c in some]
                axes.plot(x, [over_limit(c) for c in some], marker, color=colour, markersize=4, label=f"β = {beta:g}")
                axes.plot(x, [over_limit(c, c.finite) for c in some], "_", color=colour, markersize=9)
            axes.set(title=name, xlabel="γ", xticks=np.log2(GAMMAS), xticklabels=_TICKS)
        panels[0].set_ylabel("variance / limit of Theorem 1")
        panels[1].legend()
        every = [(c, over_limit(c), over_limit(c, c.finite)) for cells in self.cells.values() for c in cells]
        farthest, counts = max(every, key=lambda row: row[2]), self._kept(level)
        count, finite, limit = sum(r[1] for r in counts), sum(r[2] for r in counts), sum(r[3] for r in counts)
        spread = "; ".join(
            f"at gamma {g:g} simulated {_span(r[1] for r in every if r[0].gamma == g)}, linearised "
            f"{_span(r[2] for r in every if r[0].gamma == g)}"
            for g in (min(GAMMAS), max(GAMMAS))
        )
        return Exhibit(
            name="fig-grid",
            figure=figure,
            alt="Ratio of simulated to limiting variance in all cells, and the linearised prediction as a dash: "
            f"{spread}. Grey band: simulation error of {band:.0%}.",
            caption=f"The linearised law (dashes) fits in {finite} of {count} cells, the limit (1) in {limit}. Dots: "
            f"simulated variance over the limit, three σ side by side, n = {self.n}. Grey: 99% simulation error of one "
            f"dot, ±{band:.0%}; all dots of a panel share their samples, so they err together.",
            header=("problem", "cells", "linearised law kept", "limit kept", "normality kept"),
            rows=counts,
            fold=f"Tests at level {level:g} per column and problem",
            numbers={
                "asy-above": sum(row[2] > 1 for row in every),
                "asy-far-ratio": f"{farthest[2]:.2f}",
                "asy-far-gamma": f"{farthest[0].gamma:g}",
                "asy-far-beta": f"{farthest[0].setting.beta:g}",
                "asy-cells": count,
                "asy-kept-finite": finite,
                "asy-kept-limit": limit,
                "asy-level": f"{level:g}",
            },
        )

    def _kept(self, level: float) -> list[tuple[str, int, int, int, int]]:
        """For each problem: cells, and how many pass each test."""
        rows = []
        for name, cells in self.cells.items():
            bar = level / len(cells)
            finite = sum(c.against_finite.pvalue > bar for c in cells)
            limit = sum(c.against_limit.pvalue > bar for c in cells)
            rows.append((name, len(cells), finite, limit, sum(c.normality > bar for c in cells)))
        return rows

    def quantiles(self) -> Exhibit:
        """Quantile plots of eight projections in the hardest corner of the grid."""
        figure, panels = plt.subplots(1, 2, figsize=(6, 3.2), sharex=True, sharey=True)
        theory = stats.norm.ppf((np.arange(self.replications) + 0.5) / self.replications)
        off, middle = 0.0, np.abs(theory) <= 2
        for axes, name in zip(panels, self.cells, strict=True):
            for gamma, colour, dash in ((0.5, COLOURS[1], "--"), (4.0, COLOURS[0], "-")):
                cell = self.at(name, gamma, 0.9, 2.0)
                root = np.linalg.inv(np.linalg.cholesky(cell.finite))
                seen = np.sort(projections((cell.draws - cell.draws.mean(axis=0)) @ root.T), axis=0)
                off = max(off, float(np.abs(seen - theory[:, None])[middle].max()))
                lines = axes.plot(theory, seen, color=colour, linestyle=dash, linewidth=0.8)
                lines[0].set_label(f"γ = {gamma:g}")
            axes.plot([-3.2, 3.2], [-3.2, 3.2], color=PALETTE["grey"], linestyle=":")
            axes.set(title=name, xlabel="normal quantile")
        panels[0].set_ylabel("quantile of the runs")
        panels[0].legend()
        return Exhibit(
            name="fig-qq",
            figure=figure,
            alt="Quantile plots of eight projections for two values of gamma in both problems, at the hardest cell, "
            "beta "
            f"0.9 and sigma 2; between the quantiles −2 and 2 no line is farther than {off:.2f} from the diagonal.",
            caption=f"Between −2 and 2 the runs are normal to within {off:.2f}, in the hardest corner of the grid "
            "(β = 0.9, σ = 2). Eight projections per line style, standardised by the linearised law.",
            numbers={"asy-off": f"{off:.2f}"},
        )

    def efficiency(self) -> Exhibit:
        """Without noise: the variance over that of the best estimator against the number of passes."""
        figure, axes = plt.subplots()
        gammas, band = np.geomspace(0.4, 5, 60), simulation_error(self.replications) / np.sqrt(2)
        axes.plot(gammas, 1 + 1 / gammas, color=PALETTE["grey"], linestyle="--", label="1 + 1/γ")
        seen: dict[str, list[float]] = {}
        for (name, problem), colour, marker in zip(self.problems.items(), COLOURS, MARKERS, strict=False):
            base = np.linalg.inv(problem.sandwich(problem.covariance(problem.optimum)))
            quiet = [self.at(name, gamma, min(STEP_SIZES), 0.0) for gamma in GAMMAS]
            seen[name] = [float(np.trace(base @ np.cov(c.draws.T)) / 2) for c in quiet]
            bars = [band * value for value in seen[name]]
            axes.errorbar(GAMMAS, seen[name], yerr=bars, color=colour, marker=marker, ls="none", capsize=3, label=name)
        axes.set(xscale="log", xlabel="passes over the data, γ", ylabel="variance / best possible")
        axes.set_xticks(GAMMAS, _TICKS)
        axes.minorticks_off()
        axes.legend()
        told = ", ".join(
            f"{v:.2f} at gamma {g:g} ({1 + 1 / g:.2f})" for g, v in zip(GAMMAS, seen["robust"], strict=True)
        )
        return Exhibit(
            name="fig-efficiency",
            figure=figure,
            alt="Variance relative to the optimum against the number of passes, beside the curve one plus one over "
            f"gamma. Robust problem, curve in brackets: {told}.",
            caption="Without noise the simulated variance follows the curve 1 + 1/γ; σ = 0, "
            f"β = {min(STEP_SIZES):g}, bars are 99% simulation error.",
            numbers={"asy-one-pass": f"{seen['robust'][GAMMAS.index(1.0)]:.2f}"},
        )


def _ellipse(covariance: FloatArray) -> FloatArray:
    """The 95 % ellipse of a centred normal law in the plane."""
    angle = np.linspace(0, 2 * np.pi, 200)
    values, vectors = np.linalg.eigh(covariance)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    return np.asarray(vectors @ (np.sqrt(stats.chi2.isf(0.05, 2) * values)[:, None] * circle))


def _span(values: Iterable[float]) -> str:
    found = list(values)
    return f"{min(found):.2f} to {max(found):.2f}"


def models_table(problem: Population, n: int, replications: int, rng: np.random.Generator) -> Exhibit:
    """The same limit for every model of the loss."""
    rows, found = [], []
    for model in Model:
        setting, scheme = [NoisySteps(STEP_SIZES[0.75], 0.75, 0.5)], Scheme(model, RADIUS)
        (cell,) = run_grid(problem, n, replications, rng, settings=setting, gammas=(1.0,), scheme=scheme)
        found.append(over_limit(cell))
        rows.append([model.value, found[-1], cell.against_finite.pvalue, cell.normality, cell.shift])
    return Exhibit(
        name="tab-models",
        caption=f"Every model has {_span(found)} times the variance of the one limit. Robust problem, n = k = {n}, "
        f"β = 0.75, σ = ½, {replications} runs "
        f"(±{simulation_error(replications):.0%})",
        header=("model", "variance / limit", "p, covariance", "p, normality", "bias in sd"),
        rows=rows,
        numbers={"asy-models": _span(found)},
    )


def approach(
    problem: Population, sizes: Sequence[int], replications: int, linear_sizes: Sequence[int], rng: np.random.Generator
) -> Exhibit:
    """How covariance and bias come to their limits as n = k grows."""
    quiet = grid_settings((0.5,))
    cells = {n: run_grid(problem, n, replications, rng, settings=quiet, gammas=(1.0,)) for n in sizes}
    figure, panels = plt.subplots(1, 2, figsize=(6, 4.0))
    rates, biases = {}, {}
    for i, setting in enumerate(quiet):
        limit, dash = problem.limit_covariance(1.0, setting.sigma), ["-", "--", "-."][i]
        linear = [relative_gap(finite_covariance(problem, n, n, setting), limit) for n in linear_sizes]
        shifts = [cells[n][i].shift for n in sizes]
        panels[0].loglog(linear_sizes, linear, color=COLOURS[i], linestyle=dash)
        panels[0].loglog(
            sizes,
            [abs(over_limit(cells[n][i]) - 1) for n in sizes],
            MARKERS[i],
            color=COLOURS[i],
            label=f"β = {setting.beta:g}",
        )
        panels[1].errorbar(
            sizes,
            shifts,
            yerr=2 / np.sqrt(replications),
            color=COLOURS[i],
            marker=MARKERS[i],
            linestyle=dash,
            capsize=3,
        )
        ends = [np.log(linear[j + 1] / linear[j]) / np.log(linear_sizes[j + 1] / linear_sizes[j]) for j in (0, -2)]
        rates[setting.beta], biases[setting.beta] = ends, (shifts[0], shifts[-1])
    panels[0].axhline(simulation_error(replications) / np.sqrt(2), color=PALETTE["grey"], linestyle=":")
    panels[0].set(title="covariance", xlabel="n = k", ylabel="relative distance from the limit")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    panels[1].axhline(np.sqrt(2 / replications), color=PALETTE["grey"], linestyle=":")
    panels[1].set(xscale="log", ylim=(0, None), title="bias", xlabel="n = k", ylabel="|mean of √n(θ̄−θ*)|, in sd")
    panels[1].set_xticks(sizes, [f"{n:g}" for n in sizes], rotation=45)
    panels[1].minorticks_off()
    told = "; ".join(f"β = {b:g}: {early:.2f}, then {late:.2f} ({b - 1:.2f})" for b, (early, late) in rates.items())
    shifted = ", ".join(f"{low:.2f} to {high:.2f} for beta {b:g}" for b, (low, high) in biases.items())
    return Exhibit(
        name="fig-approach",
        figure=figure,
        alt="Left: the relative distance of the covariance from its limit against n. Right: the bias in standard "
        f"deviations, from the smallest to the largest n: {shifted}, each within {2 / np.sqrt(replications):.2f}.",
        caption="Small β leaves a bias, large β a wrong covariance, and both fade slowly. Logistic problem, γ = 1, "
        "σ = ½. Lines on the left: linearised law, exact. Marks: simulation. Right: bars are two standard errors; the "
        "proof bounds the bias by n^(1/2−β) up to logarithms. Below the dotted lines there is only simulation error.",
        numbers={"asy-rates": told},
    )


def timid_table(problem: Population, sizes: Sequence[int], replications: int, rng: np.random.Generator) -> Exhibit:
    """The same theorem with α₀ and with a third of it."""
    pair = [NoisySteps(STEP_SIZES[0.9] / shrink, 0.9, 2.0) for shrink in (1, 3)]
    rows = [
        [n, float(cell.setting.alpha), over_limit(cell), cell.shift]
        for n in sizes
        for cell in run_grid(problem, n, replications, rng, settings=pair, gammas=(1.0,))
    ]
    return Exhibit(
        name="tab-timid",
        caption=f"With a third of our α₀ the variance is {rows[1][2]:.2g} and {rows[3][2]:.2g} times the same limit. "
        "Logistic problem, β = 0.9, σ = 2.",
        header=("n = k", "α₀", "variance / limit", "bias in sd"),
        rows=rows,
        numbers={"timid-n": f"{sizes[0]:,}", "timid-small": f"{rows[1][2]:.2g}", "timid": f"{rows[3][2]:.2g}"},
    )
