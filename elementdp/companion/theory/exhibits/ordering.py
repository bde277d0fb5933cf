"""What the page on heavy hitters shows."""

import math
from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.style import LOOKS, PALETTE, PRINTED, REPAIRED, plain_ticks
from elementdp.companion.theory.counting import indicator_sensitivity, ordering_loss, unit_sigma
from elementdp.companion.theory.ordering import expected_ordering_losses, misorder_probability
from elementdp.privacy import Unit

UNITS = {Unit.USER: LOOKS["user"], Unit.ELEMENT: LOOKS["element, pairs sampled"]}
LEAST = 0.01
"""Ratios below this are drawn here, as triangles that point down."""


def grouped_zipf(d: int, groups: int = 20) -> NDArray[np.float64]:
    """Zipf-like probabilities of d items in groups of equally likely ones, as equal in size as d allows."""
    levels = 1 / (np.arange(groups) + 5.0)
    p = levels[np.arange(d) * groups // d]
    return np.asarray(p / p.sum())


def losses(p: NDArray[np.float64], n: int, m: int, repeats: int, rng: np.random.Generator) -> Exhibit:
    """Mis-ordered pairs against γ at both levels: computed, and in simulated samples."""
    gammas = np.linspace(0.0002, 0.006, 9)
    figure, axes = plt.subplots()
    rows, inside, marked = [], 0, 0
    for unit, look in UNITS.items():
        sigma = indicator_sensitivity(unit, m, p.size) * unit_sigma(1.0, 1e-6)
        predicted = np.array(expected_ordering_losses(p, n, m, sigma, gammas.tolist()))
        seen = np.empty((repeats, len(gammas)))
        for one in range(repeats):
            users = (rng.multinomial(m, p, size=n) > 0).sum(axis=0)
            noisy = users + rng.normal(scale=sigma, size=p.size)
            seen[one] = [ordering_loss(noisy, p, gamma) for gamma in gammas]
        measured, spread = seen.mean(axis=0), 2 * seen.std(axis=0, ddof=1) / math.sqrt(repeats)
        axes.plot(gammas, predicted, look.dash, color=look.colour, label=f"{unit}-level")
        axes.errorbar(gammas, measured, yerr=spread, color=look.colour, ls="none", marker=look.marker, capsize=3)
        there = predicted > 0  # with no pair that far apart there is nothing to predict
        inside += int((np.abs(measured - predicted) <= spread)[there].sum())
        marked += int(there.sum())
        rows += [(str(unit), *row) for row in zip(gammas.tolist(), predicted.tolist(), measured.tolist(), strict=True)]
    axes.set(xlabel="separation γ", ylabel="mis-ordered pairs", yscale="log", ylim=(0.5, None))
    axes.legend()
    return Exhibit(
        name="fig-ordering-loss",
        figure=figure,
        alt=f"Expected mis-ordered pairs against γ on a log scale: at the smallest γ {rows[0][2]:.3g} at user level "
        f"and {rows[len(gammas)][2]:.3g} at element level. {inside} of {marked} measured markers are within two "
        "standard errors of the predicted lines.",
        caption=f"At every separation, user-level noise puts more pairs in the wrong order. Lines: computed pair by "
        f"pair. Markers: mean of {repeats} simulated samples, ± 2 standard errors "
        f"(n = {n}, m = {m}, d = {p.size}, ε = 1, δ = 10⁻⁶).",
        header=("level", "γ", "computed", "simulated"),
        rows=rows,
    )


def loss_ratios(sizes: Sequence[int], ratios: Mapping[str, Sequence[float]], n: int) -> Exhibit:
    """The exact loss over the promised t², at the printed and at the repaired γ, against the items of a user."""
    figure, axes = plt.subplots()
    for name, look in (("printed", PRINTED), ("repaired", REPAIRED)):
        drawn, low = np.maximum(ratios[name], LEAST), max(ratios[name]) < LEAST
        label = f"at the {name} γ" + (f" (below {LEAST:g})" if low else "")
        axes.loglog(sizes, drawn, look.dash, color=look.colour, marker="v" if low else look.marker, label=label)
    axes.axhline(1, color=PALETTE["grey"], lw=1, ls=(0, (1, 1)))
    axes.set(xlabel="items per user m", ylabel="exact loss / t²", ylim=(LEAST / 2, 30))
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.legend(loc="lower right", bbox_to_anchor=(1, 0.12))
    printed, repaired = ratios["printed"], ratios["repaired"]
    return Exhibit(
        name="fig-gamma-ratio",
        figure=figure,
        alt=f"Exact loss over t² against m: at the printed γ it goes from {printed[0]:.2g} to {printed[-1]:.2g}; at "
        f"the repaired γ it is at most {max(repaired):.1g}.",
        caption=f"At the printed γ the exact loss is up to {max(printed):.1f} times the promised t², and above 1 the "
        f"proposition is false. At the repaired γ no ratio is above {max(repaired):.1g}. Two groups of equally likely "
        f"items are exactly γ apart; n = {n}, no noise, t = d/e².",
        numbers={"worst-ratio": f"{printed[-1]:.1f}"},
    )


def needed_gap(p: float, n: int, m: int, sigma: float) -> float:
    """The gap around p at which two items are mis-ordered with probability 5 %; NaN if even an empty one would be."""

    def excess(gap: float) -> float:
        return misorder_probability(p + gap / 2, p - gap / 2, n, m, sigma) - 0.05

    high = 2 * p * (1 - 1e-9)
    return float(brentq(excess, 1e-9, high)) if excess(high) < 0 else math.nan


def needed_gaps(p: float, n: int, user_counts: Sequence[int], item_counts: Sequence[int]) -> Exhibit:
    """The smallest gap that is put in the right order, against m and against n, at each level of privacy."""
    noise, middle = unit_sigma(1.0, 1e-6), item_counts[len(item_counts) // 2]
    scales: dict[str, Callable[[int], float]] = {
        "no privacy": lambda _: 0.0,
        "element": lambda _: noise,
        "user": lambda m: noise * math.sqrt(2 * m),
    }
    looks = {"no privacy": LOOKS["non-private"], "element": UNITS[Unit.ELEMENT], "user": UNITS[Unit.USER]}
    figure, panels = plt.subplots(1, 2, figsize=(6.0, 3.5), sharey=True)
    rows, over = [], {}
    for label, scale in scales.items():
        settings = [[(n, m) for m in item_counts], [(users, middle) for users in user_counts]]
        gaps = [[needed_gap(p, users, m, scale(m)) / p for users, m in part] for part in settings]
        for panel, ticks, values in zip(panels, (item_counts, user_counts), gaps, strict=True):
            look = looks[label]
            panel.loglog(ticks, values, look.dash, color=look.colour, marker=look.marker, label=label)
            panel.set_xticks(ticks, [str(tick) for tick in ticks])
            panel.minorticks_off()
        rows += [(label, *setting, gap) for part, found in zip(settings, gaps, strict=True)
                 for setting, gap in zip(part, found, strict=True)]  # fmt: skip
        over[label] = gaps[1]
    panels[0].set(xlabel="items per user m", ylabel="needed gap / p", title=f"n = {n}")
    panels[1].set(xlabel="users n", title=f"m = {middle}")
    plain_ticks(panels[0].yaxis)
    panels[1].tick_params(axis="x", rotation=45)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    said = {label: _times(over[label], over["no privacy"]) for label in ("element", "user")}
    return Exhibit(
        name="fig-needed-gap",
        figure=figure,
        alt="Relative gap needed to order two items, against m and against n. Over the gap without privacy, from the "
        f"fewest to the most users at which it exists: {said['element']} at element level, {said['user']} at user "
        "level.",
        caption=f"On the right, element level needs {said['element']} the gap without privacy, and user level "
        f"{said['user']}. The gap is the smallest that is put in the right order with probability 95 %, computed "
        f"exactly for items of probability near {p:.2g}; ε = 1, δ = 10⁻⁶. Where a point is missing, not even an empty "
        "item can be told apart.",
        header=("level", "n", "m", "needed gap / p"),
        rows=rows,
        numbers={f"gap-{label}": text for label, text in said.items()},
    )


def _times(gaps: Sequence[float], least: Sequence[float]) -> str:
    """The first and the last finite ratio in words."""
    ratios = [gap / one for gap, one in zip(gaps, least, strict=True) if math.isfinite(gap)]
    return f"{ratios[0]:.2f} to {ratios[-1]:.2f} times" if ratios else "no finite number of times"
