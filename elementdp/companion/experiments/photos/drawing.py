"""How the lines of the image experiments look, the same on every page."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from elementdp.companion.experiments.photos.curves import Told
from elementdp.companion.experiments.photos.lines import Way
from elementdp.companion.style import PALETTE
from elementdp.privacy import Unit
from elementdp.privacy.digits import rounded_up

LOOK: dict[tuple[str, str], tuple[str, str, str]] = {
    (Unit.ELEMENT, Way.NONE): ("grey", "-", ""),
    (Unit.ELEMENT, Way.PRINTED): ("vermillion", "--", "o"),
    (Unit.ELEMENT, Way.TRUE): ("orange", ":", "s"),
    (Unit.ELEMENT, Way.PAIRS): ("blue", "-", "D"),
    (Unit.USER, Way.PRINTED): ("purple", "--", "^"),
    (Unit.USER, Way.TRUE): ("green", "-.", "v"),
}
"""Colour, dash and marker of a line, by unit and way."""

DOTS: dict[Way, tuple[str, str, str]] = {
    Way.NONE: ("grey", "|", "non-private"),
    Way.PRINTED: ("vermillion", "o", "as printed"),
    Way.TRUE: ("orange", "s", "as printed, at its true ε"),
    Way.PAIRS: ("blue", "D", "pairs sampled, true ε"),
}
"""Colour, marker and name of a way where a whole legend is drawn."""


def called(line: Told) -> str:
    """A line in a figure's key; one that does not have the ε of the legend says which it has."""
    return line.kind + (f" (true ε ≤ {rounded_up(line.true_up)})" if line.way == Way.PRINTED else "")


def draw(axis: Axes, line: Told, x: Sequence[float], y: Sequence[float], bar: Sequence[float] | None = None) -> None:
    """One training curve, with a band of half-height ``bar`` around it."""
    hue, dash, mark = LOOK[line.unit, line.way]
    every = max(1, len(x) // 8)
    axis.plot(x, y, dash, marker=mark, markersize=4, markevery=every, color=PALETTE[hue], label=called(line))
    if bar is not None:
        low, high = np.subtract(y, bar), np.add(y, bar)
        axis.fill_between(x, low, high, color=PALETTE[hue], alpha=0.15, linewidth=0)


def draw_legend(
    axis: Axes, rows: Mapping[str, Sequence[Told]], value: Callable[[Sequence[Told]], tuple[float, float] | None]
) -> None:
    """A row for each line of a legend, a mark for each way it is told; ``value`` gives (middle, bar) of repetitions."""
    for way, (hue, mark, label) in DOTS.items():
        spots = []
        for row, told in enumerate(rows.values()):
            lines = [line for line in told if line.way == way]
            found = value(lines) if lines else None
            if found is not None:
                spots.append((found[0], row, 0.0 if math.isnan(found[1]) else found[1]))
        if spots:
            middles, heights, bars = zip(*spots, strict=True)
            size = 12 if mark == "|" else 6
            axis.errorbar(middles, heights, xerr=bars, fmt=mark, color=PALETTE[hue], markersize=size, label=label)
    axis.set_yticks(range(len(rows)), list(rows), fontsize=8)
    axis.invert_yaxis()
