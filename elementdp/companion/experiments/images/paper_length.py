"""What the image pages show of the runs of the paper's length."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.bars import BANDS_SAY, BARS_SAY, Z_95
from elementdp.companion.experiments.images.comparison import difference, standard_error
from elementdp.companion.experiments.images.exhibits import legend_curves, paper_figure, repeated_curves
from elementdp.companion.experiments.images.long_runs import (
    AS_PRINTED,
    ELEMENT,
    PLAIN,
    SAMPLED,
    SETTINGS,
    USER,
    LongRuns,
    mean_reached,
    setting_of,
)
from elementdp.companion.experiments.images.page import PRINTED_CURVES
from elementdp.companion.experiments.images.plans import PHOTOS_LEGEND
from elementdp.companion.experiments.images.results import recorded_results, results_of, width_of
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.tuning import at_rate
from elementdp.companion.experiments.images.variants import Accounting, Schedule, Variant, noise_for, true_epsilon
from elementdp.companion.experiments.images.widths import NOT_RUN, bar_of, gain_in_words, listed, widths_exhibit
from elementdp.companion.experiments.recorded import Recorded
from elementdp.privacy import Unit

UNSTEADY = 0.05
"""A fall of the accuracy between two evaluations beyond which a curve is called unsteady."""

NAMES = {"element": ELEMENT, "user": USER, "plain": PLAIN, "sampled": SAMPLED, "printed": AS_PRINTED}
"""How the pages' prose calls the variants."""


@dataclass(frozen=True, eq=False)
class PaperLength(LongRuns):
    """The runs of the paper's length as a page shows them."""

    @property
    def best(self) -> int:
        """Accuracies are top-5 or top-1."""
        return 5 if self.section == "photos" else 1

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
            caption=f"The largest rate has {rows[-1][2]:.2f} times the noise of the smallest (pairs sampled, or user "
            "level): noise in the average of all steps, for the same work; 1 is pairs sampled at the smallest rate. "
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
        zero = f" Zero is the network trained without privacy for {after:,} iterations." if cifar else ""
        long = self._foretold()
        whole = f"{size['steps']:,} iterations"
        ends = f"the work of the paper's {whole}"
        if self.reach < size["steps"]:
            ends = f"the first {self.reach:,} of the paper's {whole}, with the noise of all of them"
        return Exhibit(
            name=f"fig-{self.section}-paper",
            caption=f"The paper's Figure {5 if cifar else 4}, the curves that carry its message: at a true ε element "
            f"level with pairs sampled is {self._ahead()} The runs have {ends}. {_data(self)}. {self._bands()}{zero} "
            f"{_recorded(self.runs)}.",
            figure=drawing,
            alt=alt,
            header=(
                *("variant", "q", "T", "true ε", "ρ", "α", "repetitions", f"best top-{self.best} (%)"),
                *(f"± ({BARS_SAY[1:]})", f"after {self._before:,} iterations{self._before_width()} (%)"),
            ),
            rows=[_row(some, long.get((some[0].accounting, some[0].unit))) for some in groups],
            numbers=self._named({"extent": ends, **self._sizes(), **self._reached(), **self._predicted()}),
        )

    def widths(self) -> Exhibit:
        """What projecting the features costs."""
        return widths_exhibit(self, self.best)

    def tuning(self) -> Exhibit:
        """Everything that was tried for these runs, on held-out users."""
        rows = []
        for one in self.widths_run:
            tries = f"{one.size['tuning_steps']:,}"
            for some in one.groups:
                first = some[0]
                seen = "; ".join(f"α = {step:.3g}: {100 * best:.1f}" for step, _, best, _ in sorted(first.tried))
                rho = f"{first.rho:g}" if first.private else "–"
                length = tries if first.tried else "–"
                rows.append((first.kind, f"{one.width:,}", first.q, rho, seen or "–", f"{first.step:.3g}", length))
        return Exhibit(
            name=f"tab-{self.section}-paper-tuning",
            caption="What was tried for the runs of the paper's length: held-out accuracy (%) by step size",
            header=("variant", "d", "q", "ρ", "step sizes tried", "taken", "iterations' worth of work of a try"),
            rows=rows,
        )

    def legend(self) -> Exhibit:
        """Curves of Figure 4's legend as printed, at the paper's length: with the width that has most of them."""
        shown = max(self.widths_run, key=lambda one: len(_legend_curves(one)))
        curves = _legend_curves(shown)
        short = {setting_of(one): one for one in recorded_results("photos")[1]}
        rows = [
            (label, 100 * mean_reached(some), len(some), 100 * short[setting_of(some[0])].reached, _really(some[0]))
            for label, some in curves.items()
        ]
        told = "; ".join(f"{label}: {reached:.1f} %" for label, reached, *_ in rows)
        before = f"after {next(iter(short.values())).steps:,} iterations{self._before_width()} (%)"
        value = f"best top-{self.best} accuracy so far (%)"
        return Exhibit(
            name=f"fig-{self.section}-paper-legend",
            caption=f"{len(rows)} of the {len(PHOTOS_LEGEND)} curves of the paper's Figure 4, as printed, with the "
            f"work of its {self.size['steps']:,} iterations. {_data(shown)}. Bands: {BANDS_SAY} where a curve was "
            "repeated.",
            figure=paper_figure({"as printed": curves}, lambda one: [100 * best for best in one.best], value),
            alt=f"Training curves. Best top-{self.best} accuracy at the end: {told}.",
            header=("curve of the legend", "best (%)", "repetitions", before, "true ε"),
            rows=rows,
            numbers=self._named({"curves": len(rows), "legend": len(PHOTOS_LEGEND)}),
        )

    def _foretold(self) -> dict[tuple[str, str], RunResult]:
        return {(one.accounting, one.unit): one for run in self.shorter for one in results_of(run)}

    @property
    def _before(self) -> int:
        return max(round(one.passes[-1] / self.rate) for one in self._foretold().values())

    def _sizes(self) -> dict[str, object]:
        """What was run, for the prose."""
        common, _ = Counter(some[0].q for some in self.groups).most_common(1)[0]
        others = "".join(f", and {some[0].q:g} for {some[0].kind}" for some in self.groups if some[0].q != common)
        return {
            "steps": f"{self.size['steps']:,}",
            "tuning": f"{self.size['tuning_steps']:,}",
            "rates": f"{common:g}{others}",
            "repetitions": min(map(len, self.groups)),
            "doubts": self._doubts(),
            "rest": self._rest(),
            "lacking": f"Not run at this length with d = {self.width:,}: {listed(self.missing)}."
            if self.missing
            else "",
            "width": f"{self.width:,}",
            "tests": f"{self.size['tests'] // 2:,}",
        }

    def _reached(self) -> dict[str, object]:
        """How well each variant did, for the prose."""
        own, trained = self.own, self.trained
        gap, bar = difference(own[ELEMENT], own[USER], self.spread)
        errors = [standard_error(mean_reached(own[kind]), self.size["tests"] // 2) for kind in (ELEMENT, USER)]
        return {
            **{
                name: f"{100 * mean_reached(own[kind]):.1f} %" if kind in own else NOT_RUN
                for name, kind in NAMES.items()
            },
            "gain": gain_in_words(self, self.spread) + ("" if gap > bar else ", no more than chance explains"),
            "photos-bar": f"{100 * Z_95 * math.hypot(*errors):.1f}",
            "spread": f"{100 * self.spread:.1f}",
            "trained": f"{100 * trained[0]:.1f}",
            "trained-after": f"{trained[1]:,}",
        }

    def _ahead(self) -> str:
        """Who is ahead at the end, for a caption."""
        gap, bar = difference(self.own[ELEMENT], self.own[USER], self.spread)
        where = "no farther from user level than chance explains" if abs(gap) <= bar else "ahead of user level"
        return f"{'behind user level' if gap < -bar else where} ({100 * gap:+.1f} ± {100 * bar:.1f} points)."

    def _predicted(self) -> dict[str, object]:
        """What shorter runs had foretold, for the prose."""
        long = self._foretold()
        numbers = {
            f"before-{name}": f"{100 * long[kind].reached:.1f} %" for name, kind in NAMES.items() if kind in long
        }
        before = long[ELEMENT].reached - long[USER].reached
        now = mean_reached(self.own[ELEMENT]) - mean_reached(self.own[USER])
        right = "They were right about who is ahead" if before * now > 0 else "They were wrong about who is ahead"
        size = "too far ahead" if before > now else "not far enough ahead"
        judged = f"{right}, and put element level {size}: {100 * before:+.1f} points instead of {100 * now:+.1f}."
        return {"before": f"{self._before:,}", "judged": judged, **numbers}

    def _doubts(self) -> str:
        """What the tuning left open, in sentences: variants with one step size, or with an end of those tried."""
        groups = [some[0] for some in self.groups]
        alone = [one.kind for one in groups if not one.tried]
        said = [f"Only one step size was run for: {'; '.join(alone)}."] if alone else []
        unsteady = [one for one in groups if _fall(one) > UNSTEADY]
        for word, end in (("smallest", min), ("largest", max)):
            tried = [one for one in groups if one.tried and (end is min or one not in unsteady)]
            there = [one.kind for one in tried if one.step == end(step for step, *_ in one.tried)]
            if there:
                said.append(
                    f"The {word} step size tried did best, and one beyond it might do better, for: {'; '.join(there)}."
                )
        if unsteady:
            falls = "; ".join(f"{one.kind} ({100 * _fall(one):.0f} points)" for one in unsteady)
            said.append(
                "Late in the run the accuracy falls from one evaluation to the next, and a smaller step size might end "
                f"higher, for: {falls}."
            )
        return " ".join(said)

    def _rest(self) -> str:
        """How well the variants beside the two that are compared did, in a sentence; those not run are left out."""
        words = {
            PLAIN: "without privacy",
            SAMPLED: "with whole users sampled, as in the paper, but at a true ε",
            AS_PRINTED: "as printed, where the legend's ε is not the true one",
        }
        own = self.own
        said = [f"{100 * mean_reached(own[kind]):.1f} % {text}" for kind, text in words.items() if kind in own]
        return f"The accuracy is {listed(said)}." if said else ""

    def _named(self, numbers: Mapping[str, object]) -> dict[str, object]:
        return {f"{self.section}-paper-{name}": value for name, value in numbers.items()}

    def _bands(self) -> str:
        counts = sorted({len(some) for some in self.groups})
        if counts == [1]:
            return "One run each."
        alone = " Curves without a band are one run." if counts[0] == 1 else ""
        return f"Bands: {BANDS_SAY} over {' or '.join(str(count) for count in counts if count > 1)} repetitions.{alone}"

    def _before_width(self) -> str:
        return f", d = {width_of(self.shorter[0]):,}" if self.section == "photos" else ""


def _fall(one: RunResult) -> float:
    """The largest fall of the accuracy from one evaluation to the next, after the first quarter of the run."""
    late = one.accuracy[len(one.accuracy) // 4 :]
    return max((before - after for before, after in pairwise(late)), default=0.0)


def _data(runs: LongRuns) -> str:
    """Data and sizes, for a caption."""
    size = runs.size
    users = f"n = {runs.main[0].users:,}"
    if runs.section == "photos":
        return f"{size['source']}, {size['backbone']}, d = {runs.width:,}, {users}"
    return f"CIFAR-10, elements from {size['backbone']} features, {users}"


def _legend_curves(runs: LongRuns) -> dict[str, list[RunResult]]:
    """The curves of Figure 4's legend as printed, by iterations of equal work."""
    by_work = [replace(one, iterations=tuple(round(p / runs.rate) for p in one.passes)) for one in runs.results]
    return legend_curves(by_work, PHOTOS_LEGEND, PRINTED_CURVES, "clusters")


def _recorded(runs: Sequence[Recorded]) -> str:
    """When several tables were recorded, and how long their runs took, for a caption."""
    days = sorted({run.provenance.started[:10] for run in runs})
    hours = sum(row.get("seconds", 0.0) for run in runs for row in run.rows("lines")) / 3600
    seeds = ", ".join(str(seed) for seed in sorted({run.provenance.seed for run in runs}))
    return f"Recorded on {' and '.join(days)}, {hours:.2g} hours beside tuning, seed {seeds}"


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
        bar_of(some),
        "–" if before is None else 100 * before.reached,
    )


def _noise(variant: Variant, schedule: Schedule) -> float:
    """The deviation of the average of all noisy steps, up to a factor that is the same for all rates."""
    return noise_for(variant, schedule) / (schedule.q * math.sqrt(schedule.steps))
