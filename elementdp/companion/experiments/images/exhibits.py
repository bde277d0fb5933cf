"""What both image pages show of their runs, each with its caption and numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.bars import BARS_SAY, PAPER_BAR, Z_95
from elementdp.companion.experiments.images.advantage import Advantage, rates_tried
from elementdp.companion.experiments.images.drawing import Value, called, draw, draw_legend_curves
from elementdp.companion.experiments.images.photo_set import PhotoSet
from elementdp.companion.experiments.images.plans import Legend
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.variants import Accounting
from elementdp.companion.experiments.recorded import Recorded
from elementdp.companion.experiments.sentence import Sentence, sentence_row, tally
from elementdp.companion.style import LOOKS, PALETTE

BELOW = 8.0
"""How many points below the worst end an axis of accuracies begins."""


def legend_curves(
    results: Sequence[RunResult], legend: Legend, counted: Mapping[str, Accounting], size: str
) -> dict[str, list[RunResult]]:
    """The curves of a legend, in its order, as far as they were run; ``size`` is what varies beside ε and k."""
    found: dict[str, list[RunResult]] = {}
    for what, epsilon, k, last in legend:
        some = [
            one
            for one in results
            if (one.accounting, one.epsilon, one.k, getattr(one, size)) == (counted[what], epsilon, k, last)
            and (what == "non-private" or one.unit == what)
        ]
        level = "" if what == "non-private" else f"-level, ε = {epsilon:g}"
        place = f"{k}/{last}" if size == "clusters" else f"{k}/100, n = {last:,}"
        if some:
            found[f"{what}{level}, {place}"] = some
    return found


def paper_figure(panels: Mapping[str, Mapping[str, Sequence[RunResult]]], value: Value, ylabel: str) -> Figure:
    """One of the paper's figures, panel under panel: as it was printed, then with every ε a true one."""
    drawing, axes = plt.subplots(len(panels), 1, figsize=(6.0, 6.6 * len(panels)), sharey=True, squeeze=False)
    for axis, (title, curves) in zip(axes.flat, panels.items(), strict=True):
        draw_legend_curves(axis, curves, value)
        axis.set(xlabel="iteration", ylabel=ylabel, title=title)
        axis.xaxis.set_major_locator(MaxNLocator(5))
        axis.xaxis.set_major_formatter("{x:,.0f}")
        columns = 2 if max(map(len, curves)) < 34 else 1
        axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=columns, frameon=False)
    return drawing


def training_curves(results: Sequence[RunResult], title: str, best: int, *, passes: bool) -> tuple[Figure, str]:
    """Best accuracy so far against iterations, or against passes where rates differ; and the figure in words."""
    drawing, axis = plt.subplots(figsize=(6.0, 4.4))
    for one in results:
        draw(axis, one, one.passes if passes else one.iterations, [100 * value for value in one.best])
    axis.set(
        xlabel="times a user was drawn, on average" if passes else "iteration",
        ylabel=f"best top-{best} accuracy so far (%)",
        title=title,
    )
    axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.18), frameon=False)
    ends = ", ".join(f"{called(one)} {100 * one.reached:.1f} %" for one in results)
    return drawing, f"Training curves; best top-{best} accuracy at the end: {ends}."


def repeated_curves(
    groups: Sequence[Sequence[RunResult]], best: int, rate: float, base: float = 0.0
) -> tuple[Figure, str]:
    """Best accuracy so far of several variants, with the paper's bands over repetitions; and the figure in words.

    Rates differ, so the horizontal axis counts iterations of equal work: those of a run at ``rate``. With a ``base``
    the curves are differences to that accuracy, as in the paper's Figure 5.
    """
    drawing, axis = plt.subplots(figsize=(6.0, 5.4))
    for some in groups:
        values = 100 * (np.array([one.best for one in some]) - base)
        spread = PAPER_BAR * values.std(axis=0, ddof=1) / math.sqrt(len(some)) if len(some) > 1 else None
        x = [passes / rate for passes in some[0].passes]
        bar = None if spread is None else spread.tolist()
        draw(axis, some[0], x, values.mean(axis=0).tolist(), bar)
    axis.set(
        xlabel=f"iterations' worth of work, at q = {rate:g}",
        ylabel=f"top-{best} accuracy − non-private (points)" if base else f"best top-{best} accuracy so far (%)",
        title=f"ε = {min(one.epsilon for some in groups for one in some):g}, {groups[0][0].k}/{groups[0][0].clusters}",
    )
    axis.xaxis.set_major_locator(MaxNLocator(4))
    axis.xaxis.set_major_formatter("{x:,.0f}")
    if not base:  # a curve begins far below where it ends, and the ends are what is compared
        axis.set_ylim(bottom=100 * min(one.reached for some in groups for one in some) - BELOW)
    if base:
        axis.axhline(0, color=LOOKS["non-private"].colour, linewidth=1)
    axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.15), frameon=False)
    ends = ", ".join(
        f"{called(some[0])} {100 * sum(one.reached for one in some) / len(some):.1f} %, repetitions: {len(some)}"
        for some in groups
    )
    return drawing, f"Training curves; best top-{best} accuracy at the end: {ends}."


def live_run(results: Sequence[RunResult], best: int, photos: PhotoSet, name: str, *, passes: bool) -> Exhibit:
    """The curves of a run made for a page: one setting of it, the first repetition; the table has all."""
    private = next(one for one in results if one.private)
    setting = (private.k, private.clusters, private.users, 0)
    shown = [
        one
        for one in results
        if (one.k, one.clusters, one.users, one.repetition) == setting and one.epsilon in (private.epsilon, math.inf)
    ]
    where = f"ε = {private.epsilon:g}, {private.k}/{private.clusters}, n = {private.users:,}, T = {private.steps:,}"
    drawing, alt = training_curves(shown, where, best, passes=passes)
    table = settings_table(results, best, private.steps)
    caption = f"Made for this page. Data: {photos.label}."
    return replace(table, caption=caption, name=f"fig-{name}-live", figure=drawing, alt=alt)


def gains_figure(gains: Mapping[str, Sequence[Advantage]], label: str) -> Figure:
    """A row for each setting: how far element level with pairs sampled is ahead of user level, with its 95 % bar."""
    rows = [(group, row) for group, some in gains.items() for row in some]
    drawing, axis = plt.subplots(figsize=(6.0, 1.2 + 0.34 * len(rows)))
    marks = "DosP^"
    for number, group in enumerate(gains):
        chosen = [(place, row) for place, (which, row) in enumerate(rows) if which == group]
        axis.errorbar(
            [100 * row.gain for _, row in chosen],
            [place for place, _ in chosen],
            xerr=[100 * Z_95 * row.standard_error for _, row in chosen],
            fmt=marks[number % len(marks)],
            color=LOOKS["element, pairs sampled"].colour,
            capsize=3,
            label=group,
            mfc="none" if number % 2 else None,
        )
    axis.axvline(0, color=PALETTE["grey"], linewidth=1)
    axis.set_yticks(
        range(len(rows)), [f"ε = {row.epsilon:g}, {row.k}/{row.clusters}{_users(row, rows)}" for _, row in rows]
    )
    axis.set(xlabel=label, ylim=(len(rows) - 0.5, -0.5))
    axis.margins(x=0.1)  # a number at the very end of the axis would be cut
    if len(gains) > 1:
        drawing.legend(loc="outside lower center", ncols=2)
    return drawing


def _users(row: Advantage, rows: Sequence[tuple[str, Advantage]]) -> str:
    return f", n = {row.users:,}" if len({other.users for _, other in rows}) > 1 else ""


GAIN_HEADER = (
    "rate",
    "ε",
    "k/K",
    "n",
    "element, pairs sampled (%)",
    "element, users sampled (%)",
    "user level (%)",
    "gain (points)",
    f"± ({BARS_SAY[1:]})",
)


def gain_rows(gains: Mapping[str, Sequence[Advantage]]) -> list[tuple[object, ...]]:
    """The gains as rows of a table."""
    return [
        (
            group,
            row.epsilon,
            f"{row.k}/{row.clusters}",
            f"{row.users:,}",
            100 * row.element,
            100 * row.sampled if math.isfinite(row.sampled) else "–",
            100 * row.user,
            100 * row.gain,
            100 * Z_95 * row.standard_error,
        )
        for group, some in gains.items()
        for row in some
    ]


def rates_exhibit(results: Sequence[RunResult], passes: float, best: int, run: Recorded, name: str) -> Exhibit:
    """What tuning the rate saw, as a heat map: held-out accuracy of every variant at every rate for equal work."""
    rows = rates_tried(results, passes)
    frame = pd.DataFrame(
        {"variant": f"{kind}, {size}", "q": f"{rate:g}", "accuracy": first} for kind, size, rate, _, first, _ in rows
    )
    order = sorted(frame["q"].unique(), key=float)
    grid = frame.pivot(index="variant", columns="q", values="accuracy").reindex(columns=order)
    # seaborn sets the names upright before it lays them flat; they have to fit both ways.
    drawing, axis = plt.subplots(figsize=(6.0, max(3.6, 1.3 + 0.42 * len(grid))))
    sns.heatmap(grid, annot=True, fmt=".1f", cmap="crest", cbar=False, linewidths=1, ax=axis)
    axis.set(xlabel="sampling rate q", ylabel="")
    taken = {(one.kind, one.k): one.q for one in results}
    words = "; ".join(f"{kind}, k = {k}: q = {rate:g}" for (kind, k), rate in taken.items())
    return Exhibit(
        name=f"fig-{name}-rates",
        caption=f"The search took rates from q = {min(taken.values()):g} to {max(taken.values()):g}: held-out "
        f"top-{best} accuracy (%) of every variant at every rate tried, for equal work. A blank was not tried: the "
        f"search had turned round before. From the {run.label}.",
        figure=drawing,
        alt=f"A heat map of held-out accuracies by variant and sampling rate. Rates taken: {words}.",
        header=("variant", "k/K", "q", "T", "rates compared (%)", "step size tuned by whole runs (%)"),
        rows=rows,
    )


def said_and_found(sentences: Sequence[Sentence], section: str, name: str) -> Exhibit:
    """The paper's sentences and ours against the recorded runs."""
    return Exhibit(
        name=f"tab-{name}-sentences",
        caption=f"{tally(sentences)} Sentences of Section {section}, and ours at the same true ε, against the recorded "
        "runs",
        header=("who says", "sentence", "is it so?", "what decides it"),
        rows=[sentence_row(one) for one in sentences],
    )


def settings_table(results: Sequence[RunResult], best: int, steps: int) -> Exhibit:
    """Every recorded result with its noise and what was tuned."""
    return Exhibit(
        caption=f"All recorded variants, T = {steps:,}",
        header=("variant", "k/K", "n", "ε in the legend", "true ε", "σ", "ρ", "α", f"best top-{best} (%)"),
        rows=[
            (
                one.kind,
                f"{one.k}/{one.clusters}",
                f"{one.users:,}",
                f"{one.epsilon:g}" if one.private else "–",
                f"{one.true:.3g}" if one.private else "–",
                one.sigma,
                one.rho if one.private else "–",
                one.step,
                100 * one.reached,
            )
            for one in results
        ],
    )


def sampled_loses(gains: Sequence[Advantage]) -> tuple[int, int]:
    """In how many settings element level with whole users sampled is clearly behind user level, and of how many."""
    both = [row for row in gains if math.isfinite(row.sampled)]
    return sum(row.sampled_loses for row in both), len(both)
