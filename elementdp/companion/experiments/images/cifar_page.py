"""What the page on Section 4.4 shows of the recorded runs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.bars import PAPER_BAR
from elementdp.companion.experiments.images.advantage import Advantage, advantages
from elementdp.companion.experiments.images.comparison import differences, gap
from elementdp.companion.experiments.images.drawing import called
from elementdp.companion.experiments.images.exhibits import (
    AS_PRINTED,
    AT_TRUE_EPSILON,
    GAIN_HEADER,
    gain_rows,
    gains_figure,
    legend_curves,
    paper_figure,
    rates_exhibit,
    said_and_found,
    sampled_loses,
    settings_table,
    training_curves,
)
from elementdp.companion.experiments.images.plans import CIFAR_LEGEND, CifarPlan
from elementdp.companion.experiments.images.results import recorded_results, results_of
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.sentences import cifar_sentences
from elementdp.companion.experiments.recorded import Recorded, read

LONG = ("cifar-long", "cifar-long-element", "cifar-long-user")
MAIN = (3.0, 30, 8_000)
"""ε, k and n of the setting on which the section's message rests."""


@dataclass(frozen=True, eq=False)
class CifarPage:
    """The recorded runs of Section 4.4: the legend's curves, longer runs, and runs at each variant's own rate."""

    runs: list[Recorded]
    results: list[RunResult]
    long: list[Recorded]
    own: Recorded

    @classmethod
    def read(cls) -> "CifarPage":
        """The runs that come with the repository."""
        return cls(*recorded_results("cifar"), [read(name) for name in LONG], read("cifar-rates"))

    @property
    def size(self) -> Mapping[str, Any]:
        """What the legend's runs were asked for."""
        return self.runs[0].provenance.parameters

    @cached_property
    def gains(self) -> list[Advantage]:
        """Element against user level, all with the same number of users a step."""
        return advantages(self.results, self.size["tests"] // 2)

    @cached_property
    def fair(self) -> Advantage:
        """The main setting with each variant at its own rate."""
        (row,) = advantages(results_of(self.own), self.size["tests"] // 2)
        return row

    @property
    def main(self) -> Advantage:
        """The setting on which the section's message rests."""
        return next(row for row in self.gains if (row.epsilon, row.k, row.users) == MAIN)

    def behind(self, one: RunResult) -> Sequence[float]:
        """Best accuracy so far minus that of non-private training on the same users, in points."""
        base = [other for other in self.results if not other.private and (other.k, other.users) == (one.k, one.users)]
        return [100 * row.mean for row in differences([one], base, lambda run: run.best)]

    def figure_five(self) -> Exhibit:
        """The paper's Figure 5, as far as it was run: as printed, and with every ε a true one."""
        printed = legend_curves(self.results, CIFAR_LEGEND, AS_PRINTED, "users")
        true = legend_curves(self.results, CIFAR_LEGEND, AT_TRUE_EPSILON, "users")
        panels = {"as printed: the legend's ε is not the true one": printed, "pairs sampled: every ε is true": true}
        rows = [
            (label, *(self._gap(some[label]) for some in (printed, true)), len(printed[label])) for label in printed
        ]
        told = "; ".join(f"{label}: {first} and {second}" for label, first, second, _ in rows)
        base = [one.reached for one in self.results if not one.private and (one.k, one.users) == MAIN[1:]]
        return Exhibit(
            name="fig-cifar-legend",
            caption=f"The paper's Figure 5 after {self.size['steps']:,} of its 40,000 iterations: {len(printed)} of "
            f"its {len(CIFAR_LEGEND)} curves, those with ε = 3. Bands: ±1.64 standard errors where a curve was "
            f"repeated. Elements from {self.size['backbone']} features, {self.size['users_a_step']:g} users a step; "
            f"{self.runs[0].label}, and {len(self.runs) - 1} more.",
            figure=paper_figure(panels, self.behind, "top-1 accuracy − non-private (points)"),
            alt=f"Differences to non-private training in two panels; at the end, as printed and at a true ε: {told}.",
            header=("curve of the legend", "as printed (points)", "at a true ε (points)", "repetitions"),
            rows=rows,
            numbers={
                "cifar-steps": f"{self.size['steps']:,}",
                "cifar-base": f"{100 * float(np.mean(base)):.0f}",
                "cifar-shown": len(printed),
                "cifar-legend": len(CIFAR_LEGEND),
                "cifar-level": f"{MAIN[0]:g}",
                "cifar-most": MAIN[1],
                "cifar-crowd": f"{MAIN[2]:,}",
                "cifar-element": f"{100 * self.main.element:.1f}",
                "cifar-user": f"{100 * self.main.user:.1f}",
                "cifar-sampled": f"{100 * self.main.sampled:.1f}",
            },
        )

    def _gap(self, some: Sequence[RunResult]) -> str:
        found = gap(some, self.results)
        if found is None:
            return "–"
        return f"{100 * found[0]:+.1f}" + ("" if math.isnan(found[1]) else f" ± {100 * found[1]:.1f}")

    def sentences(self) -> Exhibit:
        """The section's sentences and ours."""
        return said_and_found(cifar_sentences(self.results, results_of(self.own)), "4.4", "cifar")

    def who_is_ahead(self) -> Exhibit:
        """The gain of element level in every setting, at one rate for all, and at each variant's own."""
        groups = {"same users a step for all": self.gains, "each at its own rate": [self.fair]}
        lost, _ = sampled_loses(self.gains)
        return Exhibit(
            name="fig-cifar-gains",
            caption="How many points of top-1 accuracy element level with pairs sampled gains over user level at the "
            "same true ε. Bars: ±1.96 standard errors over repetitions where there are any, else over test photos.",
            figure=gains_figure(groups, "gain over user level (points of top-1 accuracy)"),
            alt="Gains by setting with bars: "
            + ", ".join(f"{100 * row.gain:+.1f} points for {row.k}/100, n = {row.users:,}" for row in self.gains)
            + ".",
            header=GAIN_HEADER,
            rows=gain_rows(groups),
            numbers={
                "cifar-settings": len(self.gains),
                "cifar-ahead": sum(row.gain > 0 for row in self.gains),
                "cifar-lost": lost,
                "cifar-least": f"{100 * min(row.gain for row in self.gains):+.1f}",
                "cifar-largest": f"{100 * max(row.gain for row in self.gains):+.1f}",
            },
        )

    def own_rates(self) -> Exhibit:
        """What tuning the rate saw, and what it did to the comparison."""
        size, fair = self.own.provenance.parameters, self.fair
        passes = size["users_a_step"] / MAIN[2] * size["steps"]
        shown = rates_exhibit(results_of(self.own), passes, 1, self.own, "cifar")
        numbers = {
            "cifar-each": f"{self.size['users_a_step']:g}",
            "cifar-gain": f"{100 * self.main.gain:+.1f}",
            "cifar-fair-element": f"{100 * fair.element:.1f}",
            "cifar-fair-user": f"{100 * fair.user:.1f}",
            "cifar-fair-sampled": f"{100 * fair.sampled:.1f}",
            "cifar-fair-gain": f"{100 * fair.gain:+.1f}",
            "cifar-fair-bar": f"{100 * PAPER_BAR * fair.standard_error:.1f}",
        }
        return Exhibit(**{**vars(shown), "numbers": numbers})

    def longer(self) -> Exhibit:
        """The variants that carry the argument, for longer."""
        results = [one for run in self.long for one in results_of(run)]
        size = self.long[0].provenance.parameters
        (late,) = advantages(results, size["tests"] // 2)
        where = f"ε = {late.epsilon:g}, {late.k}/{late.clusters}, n = {late.users:,}"
        drawing, alt = training_curves(results, where, 1, passes=True)
        lengths = "; ".join(f"{called(one)}: {one.steps:,} steps with {one.q * one.users:.0f} users" for one in results)
        return Exhibit(
            name="fig-cifar-long",
            caption=f"Equal work: {lengths}; one repetition; " + "; ".join(run.label for run in self.long) + ".",
            figure=drawing,
            alt=alt,
            numbers={
                "cifar-long-steps": f"{max(one.steps for one in results):,}",
                "cifar-long-element": f"{100 * late.element:.1f}",
                "cifar-long-user": f"{100 * late.user:.1f}",
                "cifar-long-plain": f"{100 * late.plain:.1f}",
                "cifar-long-gain": f"{100 * late.gain:+.1f}",
                "cifar-long-bar": f"{100 * PAPER_BAR * late.standard_error:.1f}",
                "cifar-long-tuning": f"{size['tuning_steps']:,}",
            },
        )

    def tuning(self) -> Exhibit:
        """Every recorded variant with what was chosen for it."""
        firsts = {
            (one.unit, one.accounting, one.epsilon, one.k, one.users): one for one in reversed(self.results)
        }.values()
        shown = settings_table(self.results, 1, self.size["steps"])
        numbers = {
            "cifar-tuning": self.size["tuning_steps"],
            "cifar-tried": sum(len(one.tried) for one in firsts),
            "cifar-ladder": f"{min(self.size['step_sizes']):g} to {max(self.size['step_sizes']):g}",
            "cifar-radii": f"{min(self.size['rhos']):g} to {max(self.size['rhos']):g}",
            "cifar-figure": len(CifarPlan().variants()),
            "cifar-told": len(firsts),
        }
        return Exhibit(**{**vars(shown), "name": "tab-cifar-settings", "numbers": numbers})
