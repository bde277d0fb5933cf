"""What it costs to project features: runs of the paper's length with features of different widths, side by side."""

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.bars import BARS_SAY, Z_95
from elementdp.companion.experiments.images.comparison import difference
from elementdp.companion.experiments.images.drawing import look_of
from elementdp.companion.experiments.images.long_runs import ELEMENT, USER, WANTED, Kind, LongRuns, mean_reached
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.style import INK

NOT_RUN = "(not run)"

_MARKS = "oDs"
"""One for each width."""


def widths_exhibit(runs: LongRuns, best: int) -> Exhibit:
    """Every variant with features of each width: best top-``best`` accuracy, and what was not run."""
    everyone = runs.widths_run
    kinds = [kind for kind in WANTED if any(kind in one.own for one in everyone)]
    rows = [
        (some[0].kind, f"{one.width:,}", len(some), 100 * mean_reached(some), bar_of(some))
        for kind in kinds
        for one in everyone
        for some in ([one.own[kind]] if kind in one.own else [])
    ]
    lost = [
        mean_reached(runs.own[kind]) - mean_reached(other.own[kind])
        for other in runs.others
        for kind in runs.own.keys() & other.own.keys()
    ]
    told = "; ".join(f"{kind}, d = {width}: {reached:.1f} %" for kind, width, _, reached, _ in rows)
    return Exhibit(
        name=f"fig-{runs.section}-paper-widths",
        caption=f"Best top-{best} accuracy for the same work, by the width d of the features. Bars: {BARS_SAY} over "
        "repetitions; without a bar: one run.",
        figure=_figure(everyone, kinds, best),
        alt=f"A dot for each variant and width: {told}.",
        header=("variant", "d", "repetitions", f"best top-{best} (%)", f"± ({BARS_SAY[1:]})"),
        rows=rows,
        numbers={
            f"{runs.section}-paper-widths": _said(runs, lost),
            f"{runs.section}-paper-missing": _missing(everyone),
        },
    )


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence one after the other: a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def bar_of(some: Sequence[RunResult]) -> float | str:
    """The 95 % bar of the mean of repetitions, in points; a dash for one run."""
    if len(some) == 1:
        return "–"
    return 100 * Z_95 * float(np.std([one.reached for one in some], ddof=1)) / math.sqrt(len(some))


def gain_in_words(runs: LongRuns, spread: float) -> str:
    """By how much element level with pairs sampled is ahead of user level, beside what differs from run to run."""
    if not {ELEMENT, USER} <= runs.own.keys():
        return NOT_RUN
    gap, bar = difference(runs.own[ELEMENT], runs.own[USER], spread)
    return f"{100 * gap:+.1f} points (± {100 * bar:.1f})"


def _figure(everyone: Sequence[LongRuns], kinds: Sequence[Kind], best: int) -> Figure:
    drawing, axis = plt.subplots(figsize=(6.0, 1.6 + 0.5 * len(kinds)))
    for number, one in enumerate(everyone):
        mark, face = _MARKS[number % len(_MARKS)], "none" if number else None
        shift = 0.18 * (number - (len(everyone) - 1) / 2)
        for place, kind in enumerate(kinds):
            if some := one.own.get(kind):
                bar, colour = bar_of(some), look_of(some[0]).colour
                reach = None if isinstance(bar, str) else bar
                at = (100 * mean_reached(some), place + shift)
                axis.errorbar(*at, xerr=reach, fmt=mark, color=colour, mfc=face, capsize=3)
        axis.plot([], [], mark, color=INK, mfc=face, label=f"d = {one.width:,}")
    names = [next(one.own[kind][0].kind for one in everyone if kind in one.own) for kind in kinds]
    axis.set_yticks(range(len(kinds)), names)
    axis.set(xlabel=f"best top-{best} accuracy (%)", ylim=(len(kinds) - 0.5, -0.5))
    drawing.legend(loc="outside lower center", ncols=len(everyone))
    return drawing


def _said(runs: LongRuns, lost: Sequence[float]) -> str:
    """What the widths do to accuracy and to the gain, in a sentence."""
    if not runs.others:
        return f"All runs of the paper's length have d = {runs.width:,}."
    other = runs.others[0]
    gains = f"Element level is ahead by {gain_in_words(runs, runs.spread)} with d = {runs.width:,}, and by "
    gains += f"{gain_in_words(other, runs.spread)} with d = {other.width:,}."
    if not lost:
        return gains
    low, high = 100 * min(lost), 100 * max(lost)
    return (
        f"From d = {other.width:,} to d = {runs.width:,} accuracies change by {low:+.1f} to {high:+.1f} points. {gains}"
    )


def _missing(everyone: Sequence[LongRuns]) -> str:
    """Which of the variants that carry the argument were not run with which width, in a sentence."""
    lacking = [f"with d = {one.width:,}, {listed(one.missing)}" for one in everyone if one.missing]
    if len(everyone) == 1:
        lacking.append("features of any other width")
    return f"Not run: {'; '.join(lacking)}." if lacking else "Every variant was run with both widths."
