"""What the page on Section 4.4 shows of the recorded runs."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.bars import BANDS_SAY, BARS_SAY, Z_95
from elementdp.companion.experiments.images.advantage import Advantage
from elementdp.companion.experiments.images.exhibits import said_and_found, sampled_loses
from elementdp.companion.experiments.images.long_runs import mean_reached, section_sentences
from elementdp.companion.experiments.images.page import PAPER_STEPS, ImagePage
from elementdp.companion.experiments.images.paper_length import PaperLength
from elementdp.companion.experiments.images.plans import CIFAR_LEGEND, CifarPlan
from elementdp.companion.experiments.images.results import recorded_results
from elementdp.companion.experiments.recorded import read

MAIN = (3.0, 30, 8_000)
"""ε, k and n of the setting on which the section's message rests."""


@dataclass(frozen=True, eq=False)
class CifarPage(ImagePage):
    """The recorded runs of Section 4.4."""

    name, best, legend, varies = "cifar", 1, CIFAR_LEGEND, "users"

    @classmethod
    def read(cls) -> "CifarPage":
        """The runs that come with the repository."""
        return cls(*recorded_results("cifar"), read("cifar-rates"))

    @cached_property
    def paper(self) -> PaperLength:
        """The runs of the paper's length."""
        return PaperLength.read("cifar")

    @property
    def main(self) -> Advantage:
        """The setting on which the section's message rests."""
        return next(row for row in self.gains if (row.epsilon, row.k, row.users) == MAIN)

    def figure_five(self) -> Exhibit:
        """The legend's curves with ε = 3, n and k varied, as printed and with every ε a true one; in short runs."""
        trained, after = self.paper.trained
        rows = [
            (
                label,
                *(f"{100 * mean_reached(some) - 100 * trained:+.1f}" for some in (first, self.true[label])),
                len(first),
            )
            for label, first in self.printed.items()
        ]
        told = "; ".join(f"{label}: {first} and {second}" for label, first, second, _ in rows)
        base = [one.reached for one in self.results if not one.private and (one.k, one.users) == MAIN[1:]]
        size, main, count = self.size, self.main, f"{len(rows)} of its {len(CIFAR_LEGEND)} curves"
        return self.paper_figure(
            lambda one: [100 * (best - trained) for best in one.best],
            "top-1 accuracy − non-private (points)",
            caption=f"The paper's Figure 5 after {size['steps']:,} of its {PAPER_STEPS:,} iterations: {count}, those "
            f"with ε = 3. Zero is the network trained without privacy for {after:,} iterations. Bands: {BANDS_SAY} "
            f"where a curve was repeated. Elements from {size['backbone']} features, {size['users_a_step']:g} users a "
            f"step; {self.runs[0].label}, and {len(self.runs) - 1} more.",
            alt=f"Differences to non-private training in two panels; at the end, as printed and at a true ε: {told}.",
            header=("curve of the legend", "as printed (points)", "at a true ε (points)", "repetitions"),
            rows=rows,
            numbers={
                "cifar-steps": f"{size['steps']:,}",
                "cifar-base": f"{100 * float(np.mean(base)):.0f}",
                "cifar-shown": len(rows),
                "cifar-legend": len(CIFAR_LEGEND),
                "cifar-level": f"{main.epsilon:g}",
                "cifar-most": main.k,
                "cifar-crowd": f"{main.users:,}",
                "cifar-element": f"{100 * main.element:.1f}",
                "cifar-user": f"{100 * main.user:.1f}",
                "cifar-sampled": f"{100 * main.sampled:.1f}",
            },
        )

    def sentences(self) -> Exhibit:
        """The section's sentences and ours."""
        return said_and_found(section_sentences("cifar"), "4.4", "cifar")

    def who_is_ahead(self) -> Exhibit:
        """The gain of element level in every setting."""
        numbers = {
            "cifar-settings": len(self.gains),
            "cifar-ahead": sum(row.gain > 0 for row in self.gains),
            "cifar-lost": sampled_loses(self.gains)[0],
            "cifar-least": f"{100 * min(row.gain for row in self.gains):+.1f}",
            "cifar-largest": f"{100 * max(row.gain for row in self.gains):+.1f}",
        }
        bars = f"Bars: {BARS_SAY} over repetitions where there are any, else over test photos."
        return self.gains_exhibit(bars, numbers)

    def own_rates(self) -> Exhibit:
        """What tuning the rate saw, and what it did to the comparison."""
        size, (fair,) = self.own.provenance.parameters, self.fair
        passes = size["users_a_step"] / MAIN[2] * size["steps"]
        numbers = {
            "cifar-each": f"{self.size['users_a_step']:g}",
            "cifar-gain": f"{100 * self.main.gain:+.1f}",
            "cifar-fair-element": f"{100 * fair.element:.1f}",
            "cifar-fair-user": f"{100 * fair.user:.1f}",
            "cifar-fair-sampled": f"{100 * fair.sampled:.1f}",
            "cifar-fair-gain": f"{100 * fair.gain:+.1f}",
            "cifar-fair-bar": f"{100 * Z_95 * fair.standard_error:.1f}",
        }
        return self.rates_exhibit(passes, numbers)

    def tuning(self) -> Exhibit:
        """Every recorded variant with what was chosen for it."""
        firsts = {
            (one.unit, one.accounting, one.epsilon, one.k, one.users): one for one in reversed(self.results)
        }.values()
        numbers = {
            "cifar-tuning": self.size["tuning_steps"],
            "cifar-tried": sum(len(one.tried) for one in firsts),
            "cifar-ladder": f"{min(self.size['step_sizes']):g} to {max(self.size['step_sizes']):g}",
            "cifar-radii": f"{min(self.size['rhos']):g} to {max(self.size['rhos']):g}",
            "cifar-figure": len(CifarPlan().variants()),
            "cifar-told": len(firsts),
        }
        return self.settings(numbers)
