"""How the curves of the image experiments look, the same on every page."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.variants import Accounting
from elementdp.companion.style import PALETTE
from elementdp.privacy import Unit
from elementdp.privacy.digits import rounded_up

LOOK: dict[tuple[str, str], tuple[str, str, str]] = {
    (Unit.ELEMENT, Accounting.NONE): ("grey", "-", ""),
    (Unit.ELEMENT, Accounting.PRINTED): ("vermillion", "--", "o"),
    (Unit.ELEMENT, Accounting.TRUE): ("orange", ":", "s"),
    (Unit.ELEMENT, Accounting.PAIRS): ("blue", "-", "D"),
    (Unit.USER, Accounting.PRINTED): ("purple", "--", "^"),
    (Unit.USER, Accounting.TRUE): ("green", "-.", "v"),
}
"""Colour, dash and marker of a curve, by unit and accounting."""

DOTS: dict[Accounting, tuple[str, str, str]] = {
    Accounting.NONE: ("grey", "|", "non-private"),
    Accounting.PRINTED: ("vermillion", "o", "as printed"),
    Accounting.TRUE: ("orange", "s", "as printed, at its true ε"),
    Accounting.PAIRS: ("blue", "D", "pairs sampled, true ε"),
}
"""Colour, marker and name of an accounting where a whole legend is drawn."""


def called(result: RunResult) -> str:
    """A variant in a figure's key; one that does not have the ε of the legend says which it has."""
    wrong = result.accounting == Accounting.PRINTED
    return result.kind + (f" (true ε ≤ {rounded_up(result.true_up)})" if wrong else "")


def draw(
    axis: Axes, result: RunResult, x: Sequence[float], y: Sequence[float], bar: Sequence[float] | None = None
) -> None:
    """One training curve, with a band of half-height ``bar`` around it."""
    hue, dash, mark = LOOK[result.unit, result.accounting]
    every = max(1, len(x) // 8)
    axis.plot(x, y, dash, marker=mark, markersize=4, markevery=every, color=PALETTE[hue], label=called(result))
    if bar is not None:
        low, high = np.subtract(y, bar), np.add(y, bar)
        axis.fill_between(x, low, high, color=PALETTE[hue], alpha=0.15, linewidth=0)


def draw_legend(
    axis: Axes,
    rows: Mapping[str, Sequence[RunResult]],
    value: Callable[[Sequence[RunResult]], tuple[float, float] | None],
) -> None:
    """A row for each curve of a legend, a mark for each accounting; ``value`` gives (middle, bar) of repetitions."""
    for accounting, (hue, mark, label) in DOTS.items():
        spots = []
        for row, results in enumerate(rows.values()):
            some = [one for one in results if one.accounting == accounting]
            found = value(some) if some else None
            if found is not None:
                spots.append((found[0], row, 0.0 if math.isnan(found[1]) else found[1]))
        if spots:
            middles, heights, bars = zip(*spots, strict=True)
            size = 12 if mark == "|" else 6
            axis.errorbar(middles, heights, xerr=bars, fmt=mark, color=PALETTE[hue], markersize=size, label=label)
    axis.set_yticks(range(len(rows)), list(rows), fontsize=8)
    axis.invert_yaxis()
