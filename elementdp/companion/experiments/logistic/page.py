"""What the page on Section 4.2 shows of the recorded run and of a run made now."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.bars import BANDS_SAY
from elementdp.companion.experiments.logistic.figure import LogisticPoint, Rate
from elementdp.companion.experiments.logistic.model import Design
from elementdp.companion.experiments.logistic.noise import PAPER, LogisticMethod
from elementdp.companion.experiments.logistic.sentences import line, sentences
from elementdp.companion.experiments.recorded import Recorded, read
from elementdp.companion.experiments.sentence import sentence_row, tally
from elementdp.companion.style import LOOKS
from elementdp.privacy import rounded_down, rounded_up

_LOOKS = {
    LogisticMethod.ELEMENT_PRINTED: LOOKS["element, as printed"],
    LogisticMethod.ELEMENT_REPAIRED: LOOKS["element, pairs sampled"],
    LogisticMethod.USER_PRINTED: LOOKS["user, as printed"],
    LogisticMethod.USER_SUMMED: LOOKS["user, as printed"],
    LogisticMethod.USER_TRUE: LOOKS["user"],
    LogisticMethod.NON_PRIVATE: LOOKS["non-private"],
}
_MARKERS, _DASHES = "osDP^", (":", "--", "-", "-.", (0, (5, 1, 1, 1)))
"""One for each diversity k, ascending."""

Panel = tuple[str, LogisticMethod, LogisticMethod]
PANELS: tuple[Panel, Panel] = (
    ("as printed: the axis is the claimed ε", LogisticMethod.ELEMENT_PRINTED, LogisticMethod.USER_PRINTED),
    ("pairs sampled: the axis is the true ε", LogisticMethod.ELEMENT_REPAIRED, LogisticMethod.USER_TRUE),
)


def draw_method(
    axis: Axes, points: Sequence[LogisticPoint], method: LogisticMethod, of: int, *, true: bool = False
) -> None:
    """Error against ε, a curve for each diversity k; without curves where the true ε is the axis."""
    ks = sorted({p.k for p in points})
    unit = "non-private" if method is LogisticMethod.NON_PRIVATE else f"{method.unit} level"
    for number, k in enumerate(ks):
        row = line(points, method, k)
        style: dict[str, Any] = {"color": _LOOKS[method].colour, "label": f"{unit}, clusters: {k}/{of}"}
        if method is LogisticMethod.NON_PRIVATE:
            axis.axhline(row[0].error, linestyle=_DASHES[number], linewidth=1, **style)
            continue
        axis.errorbar(
            [p.true_up if true else p.epsilon for p in row],
            [p.error for p in row],
            [p.bar for p in row],
            marker=_MARKERS[number],
            linestyle="none" if true else _DASHES[number],
            capsize=2,
            **style,
        )


def figure_three(points: Sequence[LogisticPoint], of: int, panels: Sequence[Panel] = PANELS) -> Figure:
    """The paper's Figure 3: element and user level on one axis, panel under panel."""
    drawing, axes = plt.subplots(len(panels), 1, figsize=(6.0, 5.6 * len(panels)), sharey=True, squeeze=False)
    for axis, (title, *methods) in zip(axes.flat, panels, strict=True):
        for method in (*methods, LogisticMethod.NON_PRIVATE):
            draw_method(axis, points, method, of)
        axis.set(xlabel="privacy level ε", ylabel=r"error $\|\hat\theta - \theta^\star\|$", title=title)
        _ticks(axis)
        axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.14), ncols=2, frameon=False)
    return drawing


def _ticks(axis: Axes) -> None:
    axis.set(xscale="log", yscale="log")
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_locator(LogLocator(subs=(1, 2, 5) if side is axis.yaxis else (1, 3)))
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.minorticks_off()


def _told(points: Sequence[LogisticPoint], method: LogisticMethod) -> str:
    """A method's curves in words."""
    rows = [line(points, method, k) for k in sorted({p.k for p in points})]
    return "; ".join(
        f"k = {row[0].k}: {row[0].error:.2f} at epsilon {row[0].epsilon:g}, {row[-1].error:.2f} at {row[-1].epsilon:g}"
        for row in rows
    )


@dataclass(frozen=True, eq=False)
class LogisticPage:
    """The recorded run of Section 4.2."""

    run: Recorded

    @classmethod
    def read(cls) -> "LogisticPage":
        """The run that comes with the repository."""
        return cls(read("logistic"))

    @cached_property
    def points(self) -> list[LogisticPoint]:
        """The points of the figure."""
        return [LogisticPoint(**row) for row in self.run.rows("points")]

    @cached_property
    def rates(self) -> list[Rate]:
        """What the rate changes."""
        return [Rate(**row) for row in self.run.rows("rates")]

    @property
    def design(self) -> Design:
        """The sizes of the simulation."""
        return Design(**self.run.provenance.parameters["design"])

    @property
    def ks(self) -> list[int]:
        """The diversities, ascending."""
        return sorted({p.k for p in self.points})

    def figure_three(self) -> Exhibit:
        """The paper's Figure 3, as printed and with every ε a true one."""
        design, made = self.design, self.run.provenance
        told = " ".join(f"{method}: {_told(self.points, method)}." for _, *both in PANELS for method in both)
        levels = [p.epsilon for p in line(self.points, LogisticMethod.ELEMENT_PRINTED, self.ks[0])]
        rows = []
        for method in PAPER:
            for k in self.ks:
                row = [f"{p.error:.3f} ± {p.bar:.3f}" for p in line(self.points, method, k)]
                rows.append((str(method), k, *row, *[""] * (len(levels) - len(row))))
        mine, theirs = (line(self.points, method, self.ks[-1])[0] for method in PANELS[1][1:])
        return Exhibit(
            name="fig-logistic-recorded",
            caption=f"The paper's Figure 3: at a true ε = {mine.epsilon:g}, element level has an error of "
            f"{mine.error:.2g} and user level of {theirs.error:.2g} for users with {mine.k} elements. "
            f"n = {design.users:,}, m = {design.points}, d = {design.dimension}, K = {design.elements}, "
            f"T = {design.steps}, {made.parameters['repetitions']} repetitions, bars {BANDS_SAY}; horizontal lines: "
            f"non-private; {self.run.label}.",
            figure=figure_three(self.points, design.elements),
            alt=f"Error against epsilon in two panels, element and user level on one axis. {told}",
            header=("method", "k", *(f"ε = {level:g}" for level in levels)),
            rows=rows,
            numbers={
                "logistic-minutes": f"{60 * made.processor_hours:.2g}",
                "logistic-clips": ", ".join(f"{clip:g}" for clip in made.parameters["clips"]),
            },
        )

    def sentences(self) -> Exhibit:
        """The section's sentences and ours, by the last iterate and by the average."""
        last, averaged = sentences(self.points, self.rates), sentences(self.points, self.rates, "averaged")
        return Exhibit(
            name="tab-logistic-sentences",
            caption=f"{tally(last)} Sentences of Section 4.2, and ours, against the recorded run",
            header=("who says", "sentence", "is it so?", "with averaged iterates", "what the last iterates show"),
            rows=[sentence_row(row, other.verdict) for row, other in zip(last, averaged, strict=True)],
        )

    def true_axis(self) -> Exhibit:
        """The printed element-level runs at the ε they claim and at the ε they have."""
        drawing, axes = plt.subplots(1, 2, figsize=(6.0, 3.9), sharey=True)
        for axis, true, title in zip(axes, (False, True), ("at the claimed ε", "at their true ε"), strict=True):
            draw_method(axis, self.points, LogisticMethod.ELEMENT_PRINTED, self.design.elements, true=true)
            axis.set(xlabel="ε", title=title)
            _ticks(axis)
        axes[0].set_ylabel(r"error $\|\hat\theta - \theta^\star\|$")
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center")
        printed = [p for p in self.points if p.method == LogisticMethod.ELEMENT_PRINTED and p.estimate == "last"]
        over = [p for p in printed if p.true_low > p.epsilon]
        return Exhibit(
            name="fig-logistic-printed",
            caption=f"{len(over)} of {len(printed)} printed points have a larger ε than the axis of the paper says. "
            f"Element level with users sampled; right: upper end of the true ε; {self.run.label}.",
            figure=drawing,
            alt=f"Two panels of the same errors. In the right one {len(over)} of {len(printed)} have a larger ε.",
            numbers={"logistic-over": len(over), "logistic-printed": len(printed)},
        )

    def baselines(self) -> Exhibit:
        """Both meanings of user level against element level, for the most diverse users."""
        k = self.ks[-1]
        kinds = (LogisticMethod.ELEMENT_REPAIRED, LogisticMethod.USER_TRUE, LogisticMethod.USER_SUMMED)
        mine, *others = (line(self.points, method, k) for method in kinds)
        drawing, axis = plt.subplots(figsize=(6.0, 3.6))
        names = ("K = 1: clip a user's average", "K ∧ M corollary, as printed")
        for method, row, name in zip(kinds[1:], others, names, strict=True):
            look = _LOOKS[method]
            ratios = [p.error / q.error for p, q in zip(row, mine, strict=True)]
            epsilons = [p.epsilon for p in row]
            axis.plot(epsilons, ratios, look.dash, marker=look.marker, color=look.colour, label=name)
        axis.axhline(1, color=LOOKS["element, pairs sampled"].colour, linewidth=1)
        axis.set(xlabel="ε", ylabel="user over element error")
        _ticks(axis)
        axis.legend(title="what user level means")
        rows = [
            (p.epsilon, p.error, q.error, r.error, q.error / p.error, r.error / p.error)
            for p, q, r in zip(mine, *others, strict=True)
        ]
        one = next(row for row in rows if row[0] == 1.0)
        return Exhibit(
            name="fig-logistic-baselines",
            caption=f"At ε = {rows[0][0]:g} the user-level error is {rows[0][4]:.2g} times the element-level one if a "
            f"user's average is clipped, and {rows[0][5]:.2g} times by the corollary. Pairs sampled, true ε, k = {k}, "
            "recorded run.",
            figure=drawing,
            alt="Ratios of user-level to element-level error, for both meanings of user level: "
            + "; ".join(f"{row[4]:.2g} and {row[5]:.2g} at epsilon {row[0]:g}" for row in rows)
            + ".",
            header=(
                "ε",
                "element, pairs",
                "user, K = 1",
                "user, K ∧ M corollary",
                "K = 1 over element",
                "K ∧ M over element",
            ),
            rows=rows,
            numbers={
                "logistic-small-epsilon": f"{rows[0][0]:g}",
                "logistic-small-gain": f"{rows[0][4]:.2g}",
                "logistic-one-gain": f"{one[4]:.2g}",
                "logistic-one-summed": f"{one[5]:.2g}",
            },
        )

    def rate_table(self) -> Exhibit:
        """What the sampling rate changes at a claimed ε = 3."""
        printed = LogisticMethod.ELEMENT_PRINTED
        chosen = [r for r in self.rates if r.k == self.ks[-1] and r.method == printed and r.epsilon == 3.0]
        return Exhibit(
            name="tab-logistic-rates",
            caption=f"The error goes from {min(r.error for r in chosen):.3g} to {max(r.error for r in chosen):.3g} "
            f"with q, the true ε of a claimed 3 from {rounded_down(min(r.true_low for r in chosen))} to "
            f"{rounded_up(max(r.true_up for r in chosen))}; k = {self.ks[-1]}, tuning repetitions of the recorded run",
            header=("q", "error at the best step and ρ", "true ε"),
            rows=[(r.q, r.error, f"{rounded_down(r.true_low)} to {rounded_up(r.true_up)}") for r in chosen],
        )

    def choices(self) -> list[Exhibit]:
        """Which iterate is the estimate, and what was tuned."""
        methods = (LogisticMethod.ELEMENT_REPAIRED, LogisticMethod.USER_TRUE, LogisticMethod.NON_PRIVATE)
        ends = (self.ks[0], self.ks[-1])
        rows = []
        for method in methods:
            for k in ends:
                last, mean = (line(self.points, method, k, estimate)[0] for estimate in ("last", "averaged"))
                rows.append((str(method), k, last.epsilon, last.error, mean.error))
        tuned = {k: line(self.points, LogisticMethod.ELEMENT_REPAIRED, k) for k in self.ks}
        levels = [f"ε = {p.epsilon:g}" for p in tuned[ends[0]]]
        return [
            Exhibit(
                name="tab-logistic-estimates",
                caption="Last iterate or average: the errors of both at the smallest ε of each method, recorded run",
                header=("method", "k", "ε", "last iterate", "average of the second half"),
                rows=rows,
            ),
            Exhibit(
                name="tab-logistic-tuned",
                caption="Chosen q, α₀, ρ of element level with pairs sampled",
                header=("k", *levels),
                rows=[(k, *[f"{p.q:g}, {p.step:g}, {p.clip:g}" for p in row]) for k, row in tuned.items()],
            ),
        ]


def live_figure(points: Sequence[LogisticPoint], design: Design) -> Exhibit:
    """A run made for a page, at true ε."""
    element, user = LogisticMethod.ELEMENT_REPAIRED, LogisticMethod.USER_TRUE
    size = f"n = {design.users}, m = {design.points}, T = {design.steps}"
    return Exhibit(
        name="fig-logistic-live",
        caption=f"Made for this page: {size}, {points[0].repetitions} repetitions, bars {BANDS_SAY}.",
        figure=figure_three(points, design.elements, PANELS[1:]),
        alt=f"Error against epsilon. Element level: {_told(points, element)}. User level: {_told(points, user)}.",
    )
