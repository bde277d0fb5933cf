"""Sections 4.3 and 4.4 at the paper's length: recorded runs with the noise of 40,000 iterations."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from elementdp.companion.data.backbones import WIDTHS
from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.bars import BANDS_SAY, BARS_SAY, Z_95
from elementdp.companion.experiments.images.advantage import advantages
from elementdp.companion.experiments.images.comparison import MISSING, repeated
from elementdp.companion.experiments.images.exhibits import (
    legend_curves,
    paper_figure,
    repeated_curves,
)
from elementdp.companion.experiments.images.page import AS_PRINTED
from elementdp.companion.experiments.images.plans import PHOTOS_LEGEND
from elementdp.companion.experiments.images.results import (
    fair_results,
    paper_length_runs,
    recorded_results,
    results_of,
)
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.sentences import (
    OURS,
    cifar_sentences,
    gap_sentences,
    papers_photos,
    photos_sentences,
)
from elementdp.companion.experiments.images.tuning import at_rate
from elementdp.companion.experiments.images.variants import Accounting, Schedule, Variant, noise_for, true_epsilon
from elementdp.companion.experiments.recorded import Recorded, read
from elementdp.companion.experiments.sentence import Sentence
from elementdp.privacy import Unit

SHORTER = {"photos": ("photos-long",), "cifar": ("cifar-long", "cifar-long-element", "cifar-long-user")}
"""Shorter runs of the same variants, which had foretold the long ones."""

SETTINGS = {"photos": (100, 500), "cifar": (30, 100)}
"""k and K of the users on whom a section's message rests, with ε = 3."""


@dataclass(frozen=True, eq=False)
class PaperLength:
    """A section's recorded runs with the noise of the paper's length, and shorter ones that had foretold them."""

    section: str
    runs: list[Recorded]
    shorter: list[Recorded]

    @classmethod
    def read(cls, section: str = "photos") -> "PaperLength":
        """The runs that come with the repository."""
        return cls(section, paper_length_runs(section), [read(name) for name in SHORTER[section]])

    @property
    def size(self) -> Mapping[str, Any]:
        """What the runs were asked for."""
        return self.runs[0].provenance.parameters

    @property
    def results(self) -> list[RunResult]:
        """All runs."""
        return [one for run in self.runs for one in results_of(run)]

    @property
    def main(self) -> list[RunResult]:
        """The runs of the setting on which the section's message rests."""
        setting = SETTINGS[self.section]
        return [one for one in self.results if (one.k, one.clusters) == setting and one.epsilon in (3.0, math.inf)]

    @property
    def best(self) -> int:
        """Accuracies are top-5 or top-1."""
        return 5 if self.section == "photos" else 1

    @property
    def rate(self) -> float:
        """The rate by which iterations are counted: runs at other rates have fewer steps for the same work."""
        return float(self.size["q"] if self.section == "photos" else self.size["users_a_step"] / self.main[0].users)

    @property
    def reach(self) -> int:
        """How many iterations of the paper's the runs got to, by their work."""
        ended = [one for one in self.main if one.iterations[-1] < one.steps]
        return min((round(one.passes[-1] / self.rate) for one in ended), default=int(self.size["steps"]))

    @property
    def groups(self) -> list[list[RunResult]]:
        """The repetitions of each variant of the main setting at each rate, the best first."""
        found: dict[tuple[object, ...], list[RunResult]] = {}
        for one in self.main:
            found.setdefault((one.accounting, one.unit, one.q), []).append(one)
        return sorted(found.values(), key=lambda some: -mean_reached(some))

    @property
    def own(self) -> dict[tuple[str, str], list[RunResult]]:
        """Of each variant the repetitions at the rate that did best, by accounting and unit."""
        return {(some[0].accounting, some[0].unit): some for some in reversed(self.groups)}

    def noise(self, factors: Sequence[float] = (1.0, 16.0, 256.0)) -> Exhibit:
        """What the sampling rate does to the noise, for the work of the paper's length."""
        k, clusters = SETTINGS[self.section]
        users = self.main[0].users
        first = Schedule(self.size["images"], self.rate, self.size["steps"])
        variants = [
            Variant(accounting, Unit.ELEMENT, 3.0, k, clusters, users)
            for accounting in (Accounting.PAIRS, Accounting.TRUE, Accounting.PRINTED)
        ]
        rows: list[tuple[object, ...]] = []
        for factor in factors:
            schedule = at_rate(first, factor)
            ratios = [_noise(one, schedule) / _noise(variants[0], first) for one in variants]
            rows.append((schedule.q, f"{schedule.steps:,}", *ratios, f"{true_epsilon(variants[2], schedule):.3g}"))
        return Exhibit(
            name=f"tab-{self.section}-paper-noise",
            caption="Noise in the average of all steps, for the same work; 1 is pairs sampled at the smallest rate. "
            f"ε = 3, {k}/{clusters}, n = {users:,}",
            header=("q", "T", "pairs, or user level", "element, users sampled", "as printed", "true ε as printed"),
            rows=rows,
            numbers=self._named(
                {
                    "flat": f"{rows[-1][2]:.2f}",
                    "users-small": f"{rows[0][3]:.0f}",
                    "users-large": f"{rows[-1][3]:.1f}",
                    "small-rate": f"{rows[0][0]:g}",
                    "large-rate": f"{rows[-1][0]:g}",
                    "printed-small": str(rows[0][5]),
                    "printed-large": str(rows[-1][5]),
                }
            ),
        )

    def curves(self) -> Exhibit:
        """Accuracy against work, and what shorter runs had foretold."""
        size, groups = self.size, self.groups
        cifar = self.section == "cifar"
        trained, after = self.trained
        drawing, alt = repeated_curves(groups, self.best, self.rate, trained if cifar else 0.0)
        figure = "The paper's Figure 5, the curves that carry its message. " if cifar else ""
        zero = f" Zero is the network trained without privacy for {after:,} iterations." if cifar else ""
        (gain,) = advantages([one for some in self.own.values() for one in some], size["tests"] // 2)
        long = {(one.accounting, one.unit): one for run in self.shorter for one in results_of(run)}
        rows = [_row(some, long.get((some[0].accounting, some[0].unit))) for some in groups]
        before = max(round(one.passes[-1] / self.rate) for one in long.values())
        whole = f"{size['steps']:,} iterations"
        ends = f"the work of the paper's {whole}"
        if self.reach < size["steps"]:
            ends = f"the first {self.reach:,} of the paper's {whole}, with the noise of all of them"
        labels = "; ".join(dict.fromkeys(run.label for run in self.runs))
        return Exhibit(
            name=f"fig-{self.section}-paper",
            caption=f"{figure}{ends[0].upper()}{ends[1:]}. {self._data()}; bands: {BANDS_SAY} where there are "
            f"repetitions.{zero} {labels}.",
            figure=drawing,
            alt=alt,
            header=(
                *("variant", "q", "T", "true ε", "ρ", "α", "repetitions", f"best top-{self.best} (%)"),
                *(f"± ({BARS_SAY[1:]})", f"after {before:,} iterations{self._before()} (%)"),
            ),
            rows=rows,
            numbers=self._named(
                {
                    "steps": f"{size['steps']:,}",
                    "extent": ends,
                    "untuned": self._untuned(),
                    "trained": f"{100 * trained:.1f}",
                    "trained-after": f"{after:,}",
                    "spread": f"{100 * self.spread:.1f}",
                    "element": f"{100 * gain.element:.1f}",
                    "user": f"{100 * gain.user:.1f}",
                    "gain": f"{100 * gain.gain:+.1f}",
                    "bar": f"{100 * Z_95 * gain.standard_error:.1f}",
                    "rate": f"{self.main[0].q:g}",
                    "own": f"{max(one.q for one in self.main):g}",
                    "tuning": f"{size['tuning_steps']:,}",
                    "before": f"{before:,}",
                    **({"width": f"{_width(self.runs[0]):,}"} if self.section == "photos" else {}),
                    **{
                        name: f"{100 * mean_reached(self.own[which]):.1f}" for name, which in _MORE if which in self.own
                    },
                    **{
                        f"before-{name}": f"{100 * long[which].reached:.1f}"
                        for name, which in _FORETOLD
                        if which in long
                    },
                }
            ),
        )

    def legend(self) -> Exhibit:
        """Curves of Figure 4's legend as printed, at the paper's length."""
        short = {_setting(one): one for one in recorded_results("photos")[1]}
        by_work = [replace(one, iterations=tuple(round(p / self.rate) for p in one.passes)) for one in self.results]
        curves = legend_curves(by_work, PHOTOS_LEGEND, AS_PRINTED, "clusters")
        rows = [
            (label, 100 * mean_reached(some), len(some), 100 * short[_setting(some[0])].reached, _really(some[0]))
            for label, some in curves.items()
        ]
        told = "; ".join(f"{label}: {reached:.1f} %" for label, reached, *_ in rows)
        before = f"after {next(iter(short.values())).steps:,} iterations{self._before()} (%)"
        value = f"best top-{self.best} accuracy so far (%)"
        return Exhibit(
            name=f"fig-{self.section}-paper-legend",
            caption=f"{len(rows)} of the {len(PHOTOS_LEGEND)} curves of the paper's Figure 4, as printed, with the "
            f"work of its {self.size['steps']:,} iterations at q = {self.main[0].q:g}. {self._data()}.",
            figure=paper_figure({"as printed": curves}, lambda one: [100 * best for best in one.best], value),
            alt=f"Training curves. Best top-{self.best} accuracy at the end: {told}.",
            header=("curve of the legend", "best (%)", "repetitions", before, "true ε"),
            rows=rows,
            numbers=self._named({"curves": len(rows), "legend": len(PHOTOS_LEGEND)}),
        )

    @property
    def trained(self) -> tuple[float, int]:
        """The best accuracy without privacy that was recorded at any length, and after how many iterations' work."""
        plain = [one for run in (*self.runs, *self.shorter) for one in results_of(run) if not one.private]
        best = max(plain, key=lambda one: one.reached)
        return best.reached, round(best.passes[-1] / self.rate)

    @cached_property
    def spread(self) -> float:
        """The standard deviation of a run's accuracy, from variants that were repeated, here or in shorter runs."""
        found: dict[tuple[object, ...], list[float]] = {}
        for one in (*self.main, *fair_results(self.section)):
            found.setdefault((*_setting(one), one.q, one.steps), []).append(one.reached)
        variances = [float(np.var(some, ddof=1)) for some in found.values() if len(some) > 1]
        return math.sqrt(float(np.mean(variances))) if variances else math.nan

    def sentences(self) -> list[Sentence]:
        """What the paper and we say, against these runs, as far as they were made."""
        kinds, whole = self.own, self.reach == self.size["steps"]
        said = f"With the work of {self.reach:,} iterations, at the same true ε = 3, "
        ours = [
            repeated(
                said + what,
                kinds.get(better, []),
                kinds.get(worse, []),
                repaired=True,
                spread=self.spread,
                whole=whole,
            )
            for what, better, worse in OURS
        ]
        if self.section == "photos":
            firsts = [one for one in self.results if one.repetition == 0]
            papers = papers_photos(firsts, self.size["tests"] // 2, whole=whole)
            papers = [replace(one, said=f"At the paper's length: {one.said}") for one in papers]
        else:
            trained, after = self.trained
            papers = gap_sentences(self.main, trained, self.spread, whole=after >= self.size["steps"])
        return [one for one in (*papers, *ours) if one.found != MISSING]

    def _untuned(self) -> str:
        """Which variants had one step size only, in a sentence; nothing if there is none."""
        kinds = dict.fromkeys(one.kind for one in self.main if not one.tried)
        if not kinds:
            return ""
        return f"Not so for {' and '.join(kinds)}: its step size rests on tries that were cut short and not recorded."

    def _named(self, numbers: Mapping[str, object]) -> dict[str, object]:
        return {f"{self.section}-paper-{name}": value for name, value in numbers.items()}

    def _data(self) -> str:
        size = self.size
        users = f"n = {self.main[0].users:,}"
        if self.section == "photos":
            return f"{size['source']}, {size['backbone']}, d = {_width(self.runs[0]):,}, {users}"
        return f"CIFAR-10, elements from {size['backbone']} features, {users}"

    def _before(self) -> str:
        return f", d = {_width(self.shorter[0]):,}" if self.section == "photos" else ""


_MORE = (
    ("plain", (Accounting.NONE, Unit.ELEMENT)),
    ("sampled", (Accounting.TRUE, Unit.ELEMENT)),
    ("printed", (Accounting.PRINTED, Unit.ELEMENT)),
)
_FORETOLD = (
    ("element", (Accounting.PAIRS, Unit.ELEMENT)),
    ("user", (Accounting.TRUE, Unit.USER)),
    ("plain", (Accounting.NONE, Unit.ELEMENT)),
)


def section_sentences(section: str) -> list[Sentence]:
    """Every sentence of a section, then ours, by the shorter runs and by those of the paper's length."""
    runs, results = recorded_results(section)
    fair = fair_results(section)
    if section == "photos":
        short = photos_sentences(results, runs[0].provenance.parameters["tests"] // 2, fair)
    else:
        short = cifar_sentences(results, fair)
    return sorted([*short, *PaperLength.read(section).sentences()], key=lambda one: one.repaired)


def _width(run: Recorded) -> int:
    size = run.provenance.parameters
    return int(size["dimension"] or WIDTHS[size["backbone"]])


def _setting(one: RunResult) -> tuple[object, ...]:
    return (one.accounting, one.unit, one.epsilon, one.k, one.clusters, one.users)


def _really(one: RunResult) -> str:
    return f"{one.true:.3g}" if one.private else "–"


def _row(some: Sequence[RunResult], before: RunResult | None) -> tuple[object, ...]:
    one = some[0]
    return (
        one.kind,
        one.q,
        f"{one.steps:,}",
        _really(one),
        one.rho if one.private else "–",
        one.step,
        len(some),
        100 * mean_reached(some),
        "–" if len(some) == 1 else 100 * Z_95 * _spread(some),
        "–" if before is None else 100 * before.reached,
    )


def mean_reached(some: Sequence[RunResult]) -> float:
    """The mean best accuracy of repetitions."""
    return float(np.mean([one.reached for one in some]))


def _spread(some: Sequence[RunResult]) -> float:
    return float(np.std([one.reached for one in some], ddof=1)) / math.sqrt(len(some))


def _noise(variant: Variant, schedule: Schedule) -> float:
    """The deviation of the average of all noisy steps, up to a factor that is the same for all rates."""
    return noise_for(variant, schedule) / (schedule.q * math.sqrt(schedule.steps))
