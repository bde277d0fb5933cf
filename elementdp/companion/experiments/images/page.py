"""What both image pages have in common: a section's recorded runs, and who is ahead in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.images.advantage import Advantage, advantages
from elementdp.companion.experiments.images.drawing import Value
from elementdp.companion.experiments.images.exhibits import (
    GAIN_HEADER,
    gain_rows,
    gains_figure,
    legend_curves,
    paper_figure,
    rates_exhibit,
    settings_table,
)
from elementdp.companion.experiments.images.plans import Legend
from elementdp.companion.experiments.images.results import results_of
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.variants import Accounting
from elementdp.companion.experiments.recorded import Recorded

PAPER_STEPS = 40_000
PRINTED_CURVES = {"element": Accounting.PRINTED, "user": Accounting.PRINTED, "non-private": Accounting.NONE}
_TRUE = {"element": Accounting.PAIRS, "user": Accounting.TRUE, "non-private": Accounting.NONE}
Curves = dict[str, list[RunResult]]


@dataclass(frozen=True, eq=False)
class ImagePage:
    """A section's recorded runs: the legend's curves, and runs with each variant at its own rate."""

    runs: list[Recorded]
    results: list[RunResult]
    own: Recorded

    name: ClassVar[str]  # of the section
    best: ClassVar[int]  # accuracies are top-5 or top-1
    legend: ClassVar[Legend]
    varies: ClassVar[str]  # the size a legend varies beside ε and k

    @property
    def size(self) -> Mapping[str, Any]:
        """What the legend's runs were asked for."""
        return self.runs[0].provenance.parameters

    @property
    def tests(self) -> int:
        """Test photos that measured each accuracy."""
        return int(self.size["tests"] // 2)

    @cached_property
    def gains(self) -> list[Advantage]:
        """Element against user level, all at one rate."""
        return advantages(self.results, self.tests)

    @cached_property
    def fair(self) -> list[Advantage]:
        """The same with each variant at its own rate."""
        return advantages(results_of(self.own), self.tests)

    @cached_property
    def printed(self) -> Curves:
        """The legend's curves as printed."""
        return legend_curves(self.results, self.legend, PRINTED_CURVES, self.varies)

    @cached_property
    def true(self) -> Curves:
        """The legend's curves with every ε a true one."""
        return legend_curves(self.results, self.legend, _TRUE, self.varies)

    def paper_figure(self, value: Value, ylabel: str, **parts: Any) -> Exhibit:
        """The paper's figure: as printed, and with every ε a true one."""
        panels = {
            "as printed: the legend's ε is not the true one": self.printed,
            "pairs sampled: every ε is true": self.true,
        }
        return Exhibit(name=f"fig-{self.name}-legend", figure=paper_figure(panels, value, ylabel), **parts)

    def gains_exhibit(self, caption: str, numbers: Mapping[str, object]) -> Exhibit:
        """The gain of element level in every setting, at one rate for all and at each variant's own."""
        groups: dict[str, Sequence[Advantage]] = {"one rate for all": self.gains, "each at its own rate": self.fair}
        told = ", ".join(
            f"{100 * row.gain:+.1f} points for ε = {row.epsilon:g}, {row.k}/{row.clusters}, n = {row.users:,}"
            for row in self.gains
        )
        points = [100 * row.gain for some in groups.values() for row in some]
        return Exhibit(
            name=f"fig-{self.name}-gains",
            caption=f"Element level with pairs sampled gains {min(points):+.1f} to {max(points):+.1f} points of "
            f"top-{self.best} accuracy over user level at the same true ε. {caption}",
            figure=gains_figure(groups, f"gain over user level (points of top-{self.best} accuracy)"),
            alt=f"Gains by setting with bars; at one rate for all: {told}.",
            header=GAIN_HEADER,
            rows=gain_rows(groups),
            numbers=numbers,
        )

    def rates_exhibit(self, passes: float, numbers: Mapping[str, object]) -> Exhibit:
        """What tuning the rate saw for the work of ``passes`` over the data."""
        shown = rates_exhibit(results_of(self.own), passes, self.best, self.own, self.name)
        return replace(shown, numbers=numbers)

    def settings(self, numbers: Mapping[str, object]) -> Exhibit:
        """Every recorded result with its noise and what was tuned."""
        shown = settings_table(self.results, self.best, self.size["steps"])
        return replace(shown, name=f"tab-{self.name}-settings", numbers=numbers)
