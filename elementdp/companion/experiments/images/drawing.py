"""How the curves of the image experiments look, the same on every page."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from elementdp.companion.experiments.bars import PAPER_BAR
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.variants import Accounting
from elementdp.companion.style import LOOKS, Look
from elementdp.privacy import Unit
from elementdp.privacy.digits import rounded_up

_MEANINGS = {
    (Unit.ELEMENT, Accounting.NONE): "non-private",
    (Unit.ELEMENT, Accounting.PRINTED): "element, as printed",
    (Unit.ELEMENT, Accounting.TRUE): "element, users sampled",
    (Unit.ELEMENT, Accounting.PAIRS): "element, pairs sampled",
    (Unit.USER, Accounting.PRINTED): "user, as printed",
    (Unit.USER, Accounting.TRUE): "user",
}

_MARKERS = "DosPX^v"
"""One for each (k, K, n) of a figure."""

Value = Callable[[RunResult], Sequence[float]]


def look_of(result: RunResult) -> Look:
    """The look of what a run protects and how it is counted."""
    return LOOKS[_MEANINGS[Unit(result.unit), Accounting(result.accounting)]]


def called(result: RunResult) -> str:
    """A variant in a figure's key; one that does not have the ε of the legend says which it has."""
    wrong = result.accounting == Accounting.PRINTED
    return result.kind + (f" (true ε ≤ {rounded_up(result.true_up)})" if wrong else "")


def draw(
    axis: Axes, result: RunResult, x: Sequence[float], y: Sequence[float], bar: Sequence[float] | None = None
) -> None:
    """One training curve, with a band of half-height ``bar`` around it."""
    look = look_of(result)
    every = max(1, len(x) // 8)
    axis.plot(x, y, look.dash, marker=look.marker, markevery=every, color=look.colour, label=called(result))
    if bar is not None:
        axis.fill_between(x, np.subtract(y, bar), np.add(y, bar), color=look.colour, alpha=0.15, linewidth=0)


def draw_legend_curves(axis: Axes, curves: Mapping[str, Sequence[RunResult]], value: Value) -> None:
    """The curves of one of the paper's figures, in its legend's order, with bands over repetitions.

    Colour is what is protected, the dash its ε (solid: 3, dashed: 1), the marker the sizes k, K and n.
    """
    frame = pd.concat(
        pd.DataFrame({"iteration": one.iterations, "value": value(one), "curve": label, "run": one.repetition})
        for label, results in curves.items()
        for one in results
    )
    first = {label: results[0] for label, results in curves.items()}
    sizes = list(dict.fromkeys((one.k, one.clusters, one.users) for one in first.values()))
    sns.lineplot(
        frame,
        x="iteration",
        y="value",
        hue="curve",
        style="curve",
        palette={label: look_of(one).colour for label, one in first.items()},
        dashes={label: (3, 1.5) if one.epsilon == 1.0 else "" for label, one in first.items()},
        markers={label: _MARKERS[sizes.index((one.k, one.clusters, one.users))] for label, one in first.items()},
        errorbar=("se", PAPER_BAR),
        err_kws={"alpha": 0.15, "linewidth": 0},
        markevery=max(1, len(next(iter(first.values())).iterations) // 5),
        markeredgewidth=0,
        ax=axis,
    )
