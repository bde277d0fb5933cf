"""How the word histograms' errors are drawn: user level and elements in their colours, finer elements darker."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from elementdp.companion.experiments.words.figure import WordsPoint
from elementdp.companion.experiments.words.histogram import Sensitivity
from elementdp.companion.style import LOOKS, PALETTE

_MARKERS = "v^sPXD"
_DASHES = ("-.", ":", "--", (0, (5, 1, 1, 1)), (0, (3, 1)), "-")
_LOOKS = {
    Sensitivity.PRINTED: (LOOKS["user, as printed"], LOOKS["element, as printed"]),
    Sensitivity.RIGHT: (LOOKS["user"], LOOKS["element, pairs sampled"]),
}


def partitions_of(points: Sequence[WordsPoint]) -> list[int]:
    """The numbers of elements, ascending."""
    return sorted({point.clusters for point in points})


def draw_errors(axis: Axes, points: Sequence[WordsPoint], sensitivity: Sensitivity, zero: float) -> None:
    """Error ratio against ε, a curve a partition, with the paper's bars; dotted: answering zero for every word."""
    counts = partitions_of(points)
    for number, count in enumerate(counts):
        row = [p for p in points if (p.clusters, p.sensitivity, p.choice) == (count, sensitivity, "validation")]
        row.sort(key=lambda p: p.epsilon)
        place = len(_MARKERS) - len(counts) + number if number else 0
        look = _LOOKS[sensitivity][count > 1]
        label = "1 (user level)" if count == 1 else f"{count:,}" + (" (each word)" if count == counts[-1] else "")
        axis.errorbar(
            [p.epsilon for p in row],
            [p.ratio for p in row],
            [p.bar for p in row],
            color=look.colour,
            alpha=0.5 + 0.5 * number / (len(counts) - 1) if count > 1 else 1.0,
            linestyle=_DASHES[place],
            marker=_MARKERS[place],
            capsize=2,
            label=label,
        )
    axis.axhline(zero, color=PALETTE["grey"], linewidth=1, linestyle=":")
    axis.set(xscale="log", yscale="log")
    plain_ticks(axis)


def plain_ticks(axis: Axes) -> None:
    """Numbers written out instead of powers: 1 and 3 of every decade where there are few decades, else 1."""
    for side, (low, high) in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
        side.set_major_locator(LogLocator(subs=(1, 3) if high < 1e3 * low else (1,)))
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
        side.set_minor_formatter(NullFormatter())


def figure_two(rows: Sequence[tuple[str, Sequence[WordsPoint], float]]) -> Figure:
    """The paper's Figure 2: a row a corpus (name, points, ratio of answering zero), as printed and with right noise."""
    drawing, axes = plt.subplots(
        len(rows), 2, figsize=(6.0, 1.3 + 3.1 * len(rows)), sharex=True, sharey="row", squeeze=False
    )
    for (left, right), (name, points, zero) in zip(axes, rows, strict=True):
        draw_errors(left, points, Sensitivity.PRINTED, zero)
        draw_errors(right, points, Sensitivity.RIGHT, zero)
        left.set(title="as printed", ylabel=f"error ratio\n{name}")
        right.set_title("right sensitivity")
    for axis in axes[-1]:
        axis.set_xlabel("privacy level ε")
    handles, labels = axes[0][1].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=3, title="elements K")
    return drawing


def slopes_figure(
    fits: Sequence[tuple[float, Sequence[WordsPoint], float]], mass: dict[int, float], top: float
) -> Figure:
    """Error ratio against K for some ε (ε, points, fitted slope), beside what max P(c)² predicts."""
    drawing, axis = plt.subplots(figsize=(6.0, 4.0))
    for number, (epsilon, row, slope) in enumerate(fits):
        x, y = np.array([p.clusters for p in row]), np.array([p.ratio for p in row])
        shade: dict[str, Any] = {
            "color": LOOKS["element, as printed"].colour,
            "alpha": 0.5 + 0.5 * number / (len(fits) - 1),
        }
        axis.errorbar(
            x, y, [p.bar for p in row], marker="osD"[number], ls="none", capsize=2, label=f"ε = {epsilon:g}", **shade
        )
        middle = np.mean(np.log10(y)) - slope * np.mean(np.log10(x))
        axis.plot(x, 10 ** (middle + slope * np.log10(x)), linestyle=("-.", "--", "-")[number], **shade)
    predicted = [top * value**2 for value in mass.values()]
    axis.plot(list(mass), predicted, color=PALETTE["grey"], linestyle=":", marker="x", label="max P(c)², scaled")
    axis.set(xscale="log", yscale="log", xlabel="elements K", ylabel="error ratio")
    drawing.legend(loc="outside lower center", ncols=2)
    return drawing


def radius_figure(pairs: Sequence[tuple[WordsPoint, WordsPoint]]) -> Figure:
    """Error ratio against K with ρ chosen for free and privately."""
    drawing, axis = plt.subplots(figsize=(6.0, 3.6))
    colour = LOOKS["element, pairs sampled"].colour
    for which, label, style in ((0, "chosen for free", "-D"), (1, "chosen privately", "--s")):
        row = [pair[which] for pair in pairs]
        bars = [p.bar for p in row]
        axis.errorbar(
            [p.clusters for p in row], [p.ratio for p in row], bars, fmt=style, color=colour, capsize=2, label=label
        )
    axis.set(xscale="log", yscale="log", xlabel="elements K", ylabel="error ratio at ε = 1")
    plain_ticks(axis)
    axis.legend(title="radius ρ")
    return drawing
