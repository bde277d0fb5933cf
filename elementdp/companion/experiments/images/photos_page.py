"""What the page on Section 4.3 shows of the recorded runs."""

import math
from dataclasses import dataclass
from functools import cached_property

from scipy.stats import kendalltau

from elementdp.companion.data.backbones import WIDTHS
from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.bars import BARS_SAY, Z_95
from elementdp.companion.experiments.images.exhibits import said_and_found, sampled_loses
from elementdp.companion.experiments.images.long_runs import section_sentences
from elementdp.companion.experiments.images.page import PAPER_STEPS, ImagePage
from elementdp.companion.experiments.images.paper_length import PaperLength
from elementdp.companion.experiments.images.plans import PHOTOS_LEGEND
from elementdp.companion.experiments.images.results import recorded_results, results_of
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.variants import Accounting, Schedule, Variant, noise_for
from elementdp.companion.experiments.recorded import read
from elementdp.privacy import Unit, rounded_up


@dataclass(frozen=True, eq=False)
class PhotosPage(ImagePage):
    """The recorded runs of Section 4.3."""

    name, best, legend, varies = "photos", 5, PHOTOS_LEGEND, "clusters"

    @classmethod
    def read(cls) -> "PhotosPage":
        """The runs that come with the repository."""
        return cls(*recorded_results("photos"), read("photos-rates"))

    @cached_property
    def paper(self) -> PaperLength:
        """The runs of the paper's length."""
        return PaperLength.read("photos")

    @property
    def data(self) -> str:
        """The data and sizes, for a caption."""
        size = self.size
        width = size["dimension"] or WIDTHS[size["backbone"]]
        source = size.get("source", "tiny-imagenet-101")
        return f"{source}, {size['backbone']}, d = {width:,}, n = {size['users']:,}"

    def figure_four(self) -> Exhibit:
        """The paper's Figure 4: as printed, and with every ε a true one."""
        rows = [
            (label, 100 * some[0].reached, 100 * self.true[label][0].reached, _true_epsilon(some[0]))
            for label, some in self.printed.items()
        ]
        told = "; ".join(f"{label}: {first:.0f} and {second:.0f}" for label, first, second, _ in rows)
        agreement = kendalltau(range(len(rows)), [-first for _, first, *_ in rows]).statistic
        steps, q = self.size["steps"], self.size["q"]
        threes = [some[0].true_up for some in self.printed.values() if some[0].epsilon == 3.0]
        worst = rounded_up(max(threes))
        return self.paper_figure(
            lambda one: [100 * best for best in one.best],
            "best top-5 accuracy so far (%)",
            caption=f"The paper's Figure 4, its legend in its order, after {steps:,} of {PAPER_STEPS:,} iterations. "
            f"Above: as printed, where an ε of 3 is really up to {worst}. Below: every ε is true. {self.data}, "
            f"q = {q:g}; {self.runs[0].label}.",
            alt=f"Training curves in two panels. Best top-5 accuracy in per cent, as printed and at a true ε: {told}.",
            header=("curve of the legend", "as printed (%)", "at a true ε (%)", "true ε as printed"),
            rows=rows,
            numbers={"photos-steps": f"{steps:,}", "photos-tau": f"{agreement:.2f}", "photos-q": f"{q:g}"},
        )

    def sentences(self) -> Exhibit:
        """The section's sentences and ours."""
        return said_and_found(section_sentences("photos"), "4.3", "photos")

    def where_it_stops(self) -> Exhibit:
        """The gain of element level in every setting."""
        three = {row.k: row for row in self.gains if row.epsilon == 3.0 and row.clusters == 500}
        few, top, many = three[min(three)], max(three.values(), key=lambda row: row.gain), three[max(three)]
        lost, both = sampled_loses(self.gains)
        numbers = {
            "photos-few-k": few.k,
            "photos-few-gain": f"{100 * few.gain:+.1f}",
            "photos-few-bar": f"{100 * Z_95 * few.standard_error:.1f}",
            "photos-top-gain": f"{100 * top.gain:+.1f}",
            "photos-top-k": top.k,
            "photos-many-k": many.k,
            "photos-many-gain": f"{100 * many.gain:+.1f}",
            "photos-lost": lost,
            "photos-pairs": both,
        }
        bars = f"Bars: {BARS_SAY} over test photos. {self.data}; {self.runs[0].label}."
        return self.gains_exhibit(bars, numbers)

    def own_rates(self) -> Exhibit:
        """What tuning the rate saw, and what it did to the comparison."""
        results, size = results_of(self.own), self.own.provenance.parameters
        shared = {(row.epsilon, row.k, row.clusters): row for row in self.gains}
        pairs = [(shared[row.epsilon, row.k, row.clusters], row) for row in self.fair]
        lost, both = sampled_loses(self.fair)
        changes = ", ".join(
            f"{100 * row.gain:+.1f} points for {row.k}/{row.clusters} (one rate for all: {100 * old.gain:+.1f})"
            for old, row in pairs
        )
        numbers: dict[str, object] = {
            "photos-fair": changes,
            "photos-fair-lost": lost,
            "photos-fair-count": both,
            "photos-own-steps": f"{size['steps']:,}",
        }
        for end, rate in (("small", size["q"]), ("large", max(one.q for one in results))):
            schedule = Schedule(size["images"], rate, round(size["q"] * size["steps"] / rate))
            users, elements = (
                noise_for(Variant(accounting, Unit.ELEMENT, 3.0, 30, 500, size["users"]), schedule)
                for accounting in (Accounting.TRUE, Accounting.PAIRS)
            )
            numbers |= {f"photos-{end}-rate": f"{rate:g}", f"photos-{end}-noise": f"{users / elements:.1f}"}
        return self.rates_exhibit(size["q"] * size["steps"], numbers)

    def tuning(self) -> Exhibit:
        """Every recorded variant with what was chosen for it."""
        size = self.size
        ladder = size["step_sizes"]
        ends = (min(ladder), max(ladder))
        edge = sum(any(math.isclose(_unit_step(one), end, rel_tol=1e-5) for end in ends) for one in self.results)
        places: dict[tuple[object, ...], dict[float, float]] = {}
        for one in self.results:
            place = (one.unit, one.accounting, one.k, one.clusters)
            places.setdefault(place, {})[one.epsilon] = one.reached
        twins = [(levels[3.0], levels[1.0]) for levels in places.values() if {1.0, 3.0} <= levels.keys()]
        numbers = {
            "photos-edge": edge,
            "photos-tried": sum(len(one.tried) for one in self.results),
            "photos-ladder": f"{min(ladder):g} to {max(ladder):g}",
            "photos-tuning": f"{size['tuning_steps']:,}",
            "photos-rhos": f"{min(size['rhos']):g} to {max(size['rhos']):g}",
            "photos-twins": len(twins),
            "photos-upside": sum(loose < tight for loose, tight in twins),
        }
        return self.settings(numbers)


def _unit_step(one: RunResult) -> float:
    """The step size for updates of length 1: the rung of the ladder."""
    groups = one.k if one.unit == Unit.ELEMENT else 1
    return one.step * groups * (one.rho if math.isfinite(one.rho) else 1.0)


def _true_epsilon(one: RunResult) -> str:
    return f"{one.true:.3g}" if one.private else "–"
