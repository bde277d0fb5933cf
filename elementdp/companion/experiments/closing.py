"""What the closing page shows: the four experiments at true ε side by side, and what the wrong sampler costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.bars import Z_95
from elementdp.companion.experiments.images import (
    Accounting,
    Advantage,
    LongRuns,
    Schedule,
    Variant,
    advantages,
    noise_for,
    recorded_results,
    results_of,
    true_epsilon,
)
from elementdp.companion.experiments.logistic import LogisticMethod, LogisticPoint, line
from elementdp.companion.experiments.recorded import read
from elementdp.companion.experiments.words import Sensitivity, WordsPoint, curve
from elementdp.companion.style import LOOKS, PALETTE
from elementdp.privacy import Unit

LEVELS = (0.25, 1.0, 8.0)
"""The ε at which errors are compared."""

ELEMENT = LOOKS["element, pairs sampled"]


@dataclass(frozen=True)
class Factor:
    """User-level error over element-level error at one true ε; ``spread`` is the standard error of its logarithm."""

    experiment: str
    epsilon: float
    element: float
    user: float
    spread: float

    @property
    def value(self) -> float:
        """Above 1: element level has the smaller error."""
        return self.user / self.element

    @property
    def ends(self) -> tuple[float, float]:
        """95 % for the factor."""
        reach = math.exp(Z_95 * self.spread)
        return self.value / reach, self.value * reach


def _factor(experiment: str, element: WordsPoint | LogisticPoint, user: WordsPoint | LogisticPoint) -> Factor:
    mine, other = (p.ratio if isinstance(p, WordsPoint) else p.error for p in (element, user))
    spread = math.hypot(element.standard_error / mine, user.standard_error / other)
    return Factor(experiment, element.epsilon, mine, other, spread)


@dataclass(frozen=True)
class Gain:
    """An :class:`Advantage` of element level, and the experiment it is from."""

    experiment: str
    row: Advantage


class ClosingPage:
    """Every recorded comparison of element level with user level at the same true ε."""

    @cached_property
    def factors(self) -> list[Factor]:
        """Words and logistic regression: errors, smaller is better."""
        found = []
        for corpus in ("reddit", "blogs"):
            points = [WordsPoint(**row) for row in read(f"words-{corpus}").rows("points")]
            for epsilon in LEVELS:
                row = curve(points, epsilon, Sensitivity.RIGHT)
                found.append(_factor(f"words, {corpus.capitalize()}", row[-1], row[0]))
        simulated = [LogisticPoint(**row) for row in read("logistic").rows("points")]
        k = max(p.k for p in simulated)
        element, user = (
            {p.epsilon: p for p in line(simulated, method, k)}
            for method in (LogisticMethod.ELEMENT_REPAIRED, LogisticMethod.USER_TRUE)
        )
        return found + [_factor(f"logistic, k = {k}", element[epsilon], user[epsilon]) for epsilon in LEVELS]

    @cached_property
    def gains(self) -> list[Gain]:
        """Photos and CIFAR-10: accuracies, larger is better."""
        found = []
        for name, title in (("photos", "photos"), ("cifar", "CIFAR-10")):
            runs, results = recorded_results(name)
            tests = runs[0].provenance.parameters["tests"] // 2
            own = results_of(read(f"{name}-rates"))
            found += [Gain(title, row) for row in advantages(results, tests)]
            found += [Gain(f"{title}, own rates", row) for row in advantages(own, tests)]
            found.append(Gain(f"{title}, paper's length", LongRuns.read(name).advantage))
        return found

    def forest(self) -> Exhibit:
        """Both kinds of gain with their bars."""
        factors, gains = self.factors, self.gains
        ends = [one.ends for one in factors]
        points = [100 * one.row.gain for one in gains]
        bars = [100 * Z_95 * one.row.standard_error for one in gains]
        spans = [(value - bar, value + bar) for value, bar in zip(points, bars, strict=True)]
        clear = sum(low > 1 for low, _ in ends) + sum(low > 0 for low, _ in spans)
        behind = sum(high < 1 for _, high in ends) + sum(high < 0 for _, high in spans)
        best, least = max(factors, key=lambda one: one.value), min(factors, key=lambda one: one.value)
        count = len(factors) + len(gains)
        errors = [
            (one.experiment, one.epsilon, one.element, one.user, f"{one.value:.3g} ×", f"{low:.3g} to {high:.3g}")
            for one, (low, high) in zip(factors, ends, strict=True)
        ]
        accuracies = [
            (_setting(one), one.row.epsilon, *(f"{100 * part:.1f} %" for part in (one.row.element, one.row.user)),
             f"{value:+.1f} points", f"{low:+.1f} to {high:+.1f}")
            for one, value, (low, high) in zip(gains, points, spans, strict=True)
        ]  # fmt: skip
        return Exhibit(
            name="fig-closing-forest",
            caption=f"At the same true ε element level is clearly ahead of user level in {clear} of {count} "
            f"comparisons, and clearly behind in {behind}; bars are 95 %. Above: errors of words (right sensitivity) "
            "and simulated logistic regression (pairs sampled). Below: accuracies of photos (top-5) and CIFAR-10 "
            "(top-1), pairs sampled; ε = 3 and n = 8,000 where nothing else is said; bars over repetitions or, without "
            "any, over test photos.",
            figure=self._forest_figure(ends, points, spans),
            alt=f"A forest plot of {count} comparisons: element level is clearly ahead in {clear} and clearly "
            f"behind in {behind}. Error factors from {least.value:.2g} to {best.value:.2g}, gains in accuracy from "
            f"{min(points):+.1f} to {max(points):+.1f} points.",
            header=("experiment", "true ε", "element level", "user level", "gain", "95 %"),
            rows=[*errors, *accuracies],
            numbers={
                "closing-count": count,
                "closing-clear": clear,
                "closing-behind": behind,
                "closing-best": f"{best.value:.2g}",
                "closing-best-name": f"{best.experiment} at ε = {best.epsilon:g}",
                "closing-least": f"{least.value:.2g}",
                "closing-least-name": f"{least.experiment} at ε = {least.epsilon:g}",
            },
        )

    def _forest_figure(
        self, ends: Sequence[tuple[float, float]], points: Sequence[float], spans: Sequence[tuple[float, float]]
    ) -> Figure:
        heights = (len(ends), len(spans))
        drawing, (upper, lower) = plt.subplots(
            2, 1, figsize=(6.0, 2.0 + 0.32 * sum(heights)), height_ratios=heights, layout="constrained"
        )
        names = [f"{one.experiment}, ε = {one.epsilon:g}" for one in self.factors]
        self._draw(upper, [one.value for one in self.factors], ends, names)
        upper.axvline(1, color=PALETTE["grey"], linewidth=1)
        upper.set(xscale="log", xlabel="user error / element error")
        upper.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
        upper.minorticks_off()
        self._draw(lower, points, spans, [_setting(one) for one in self.gains])
        lower.axvline(0, color=PALETTE["grey"], linewidth=1)
        lower.set(xlabel="gain in accuracy (points)")
        return drawing

    @staticmethod
    def _draw(axis: Axes, values: Sequence[float], ends: Sequence[tuple[float, float]], names: Sequence[str]) -> None:
        below = [value - low for value, (low, _) in zip(values, ends, strict=True)]
        above = [high - value for value, (_, high) in zip(values, ends, strict=True)]
        places = range(len(values))
        axis.errorbar(values, places, xerr=[below, above], fmt=ELEMENT.marker, color=ELEMENT.colour, capsize=3)
        axis.set_yticks(places, names)
        axis.set_ylim(len(values) - 0.5, -0.5)

    def where_it_stops(self) -> Exhibit:
        """The numbers of the section on where gains end; nothing is drawn."""
        shown = [one.row for one in self.gains if one.experiment == "photos"]
        three = {row.k: row for row in shown if (row.epsilon, row.clusters) == (3.0, 500)}
        few, top, many = three[min(three)], max(three.values(), key=lambda row: row.gain), three[max(three)]
        own = [one for one in self.gains if "own" in one.experiment]
        same = [one.row for one in self.gains if "," not in one.experiment and math.isfinite(one.row.sampled)]
        long = "; ".join(
            f"{100 * one.row.gain:+.1f} points (± {100 * Z_95 * one.row.standard_error:.1f}) for "
            f"{one.experiment.split(',')[0]}, {one.row.k}/{one.row.clusters}"
            for one in self.gains
            if "length" in one.experiment
        )
        pairs = [(self._at_one_rate(one), one) for one in own]
        fair = "; ".join(
            f"{100 * one.row.gain:+.1f} instead of {100 * old.gain:+.1f} points "
            f"({one.experiment.split(',')[0]}, {one.row.k}/{one.row.clusters})"
            for old, one in pairs
        )
        tuned = "; ".join(
            f"from {100 * old.user:.1f} to {100 * one.row.user:.1f} % ({one.row.k}/{one.row.clusters})"
            for old, one in pairs
            if one.experiment.startswith("photos")
        )
        return Exhibit(
            numbers={
                "closing-few": few.k,
                "closing-few-gain": f"{100 * few.gain:+.1f}",
                "closing-few-bar": f"{100 * Z_95 * few.standard_error:.1f}",
                "closing-top": top.k,
                "closing-top-gain": f"{100 * top.gain:+.1f}",
                "closing-many": many.k,
                "closing-many-gain": f"{100 * many.gain:+.1f}",
                "closing-many-element": f"{100 * many.element:.1f}",
                "closing-many-plain": f"{100 * many.plain:.1f}",
                "closing-both": len(same),
                "closing-lost": sum(row.sampled_loses for row in same),
                "closing-own": len(own),
                "closing-own-lost": sum(one.row.sampled_loses for one in own),
                "closing-fair": fair,
                "closing-tuned": tuned,
                "closing-long": long,
            }
        )

    def _at_one_rate(self, own: Gain) -> Advantage:
        """The same setting with one rate for all."""
        name = own.experiment.split(",")[0]
        same = (own.row.epsilon, own.row.k, own.row.clusters, own.row.users)
        return next(
            one.row
            for one in self.gains
            if one.experiment == name and (one.row.epsilon, one.row.k, one.row.clusters, one.row.users) == same
        )


def _setting(one: Gain) -> str:
    epsilon = f", ε = {one.row.epsilon:g}" if one.row.epsilon != 3 else ""
    users = f", n = {one.row.users:,}" if one.row.users != 8_000 else ""
    return f"{one.experiment}, {one.row.k}/{one.row.clusters}{epsilon}{users}"


def sampler_noise(elements: Sequence[int], users: int, q: float, steps: int, epsilon: float = 3.0) -> Exhibit:
    """The noise for a true ε with users and with pairs sampled, by the number of elements a user may have."""
    schedule = Schedule(max(elements), q, steps)
    pairs, sampled = (
        [noise_for(Variant(accounting, Unit.ELEMENT, epsilon, k, k, users), schedule) for k in elements]
        for accounting in (Accounting.PAIRS, Accounting.TRUE)
    )
    most = elements[-1]
    printed = true_epsilon(Variant(Accounting.PRINTED, Unit.ELEMENT, epsilon, most, most, users), schedule)
    drawing, axis = plt.subplots(figsize=(6.0, 3.4))
    for values, look, name in (
        (sampled, LOOKS["element, users sampled"], "users sampled"),
        (pairs, ELEMENT, "pairs sampled"),
    ):
        axis.plot(elements, values, look.dash, marker=look.marker, color=look.colour, label=name)
    axis.set(
        xscale="log", yscale="log", xlabel="elements a user may have (M)", ylabel=f"noise σ for a true ε = {epsilon:g}"
    )
    axis.set(ylim=(min(pairs) / 2, None))
    axis.set_xticks(elements, [str(count) for count in elements])
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500) if min(pairs) / 2 < tick < 2 * max(sampled)]
    axis.set_yticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.legend()
    return Exhibit(
        name="fig-closing-sampler",
        caption="The more elements a user may have, the more noise sampling users takes; sampling pairs takes the same "
        "for all. "
        f"n = {users:,}, T = {steps:,}, q = {q:g}, δ = n^(−1.1).",
        figure=drawing,
        alt=f"Noise for a true epsilon of {epsilon:g}. Pairs sampled: {pairs[0]:.2g} whatever users have. Users "
        f"sampled: from {sampled[0]:.2g} for one element to {sampled[-1]:.2g} for {most}.",
        header=("elements a user may have", "σ, users sampled", "σ, pairs sampled"),
        rows=list(zip(elements, sampled, pairs, strict=True)),
        numbers={
            "closing-noise": f"{sampled[-1] / pairs[-1]:.1f}",
            "closing-elements": most,
            "closing-true": f"{printed.low:.3g}",
        },
    )
