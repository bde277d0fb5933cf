"""Section 4.3 at the paper's length: recorded runs with the work of 40,000 iterations."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elementdp.companion.data.backbones import WIDTHS
from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.bars import Z_95
from elementdp.companion.experiments.images.advantage import advantages
from elementdp.companion.experiments.images.comparison import repeated
from elementdp.companion.experiments.images.exhibits import repeated_curves, said_and_found
from elementdp.companion.experiments.images.results import paper_length_runs, results_of
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.sentences import OURS
from elementdp.companion.experiments.images.tuning import at_rate
from elementdp.companion.experiments.images.variants import Accounting, Schedule, Variant, noise_for, true_epsilon
from elementdp.companion.experiments.recorded import Recorded, read
from elementdp.privacy import Unit


@dataclass(frozen=True, eq=False)
class PaperLength:
    """The recorded runs as long as the paper's, and shorter runs of the same variants that had foretold them."""

    runs: list[Recorded]
    shorter: Recorded

    @classmethod
    def read(cls) -> "PaperLength":
        """The runs that come with the repository."""
        return cls(paper_length_runs(), read("photos-long"))

    @property
    def size(self) -> Mapping[str, Any]:
        """What the runs were asked for."""
        return self.runs[0].provenance.parameters

    @property
    def results(self) -> list[RunResult]:
        """All runs."""
        return [one for run in self.runs for one in results_of(run)]

    @property
    def groups(self) -> list[list[RunResult]]:
        """The repetitions of each variant at each rate, the best first."""
        found: dict[tuple[object, ...], list[RunResult]] = {}
        for one in self.results:
            found.setdefault((one.accounting, one.unit, one.q), []).append(one)
        return sorted(found.values(), key=lambda some: -_mean(some))

    @property
    def own(self) -> dict[tuple[str, str], list[RunResult]]:
        """Of each variant the repetitions at the rate that did best, by accounting and unit."""
        return {(some[0].accounting, some[0].unit): some for some in reversed(self.groups)}

    def noise(self, factors: Sequence[float] = (1.0, 16.0, 256.0)) -> Exhibit:
        """What the sampling rate does to the noise, for the work of the paper's length."""
        size = self.size
        first = Schedule(size["images"], size["q"], size["steps"])
        variants = [
            Variant(accounting, Unit.ELEMENT, 3.0, 100, 500, size["users"])
            for accounting in (Accounting.PAIRS, Accounting.TRUE, Accounting.PRINTED)
        ]
        rows: list[tuple[object, ...]] = []
        for factor in factors:
            schedule = at_rate(first, factor)
            ratios = [_noise(one, schedule) / _noise(variants[0], first) for one in variants]
            rows.append((schedule.q, f"{schedule.steps:,}", *ratios, f"{true_epsilon(variants[2], schedule):.3g}"))
        return Exhibit(
            name="tab-photos-paper-noise",
            caption="Noise in the average of all steps, for the same work; 1 is pairs sampled at the smallest rate. "
            f"ε = 3, 100/500, n = {size['users']:,}",
            header=("q", "T", "pairs, or user level", "element, users sampled", "as printed", "true ε as printed"),
            rows=rows,
            numbers={
                "photos-paper-flat": f"{rows[-1][2]:.2f}",
                "photos-paper-users-small": f"{rows[0][3]:.0f}",
                "photos-paper-users-large": f"{rows[-1][3]:.1f}",
                "photos-paper-small-rate": f"{rows[0][0]:g}",
                "photos-paper-large-rate": f"{rows[-1][0]:g}",
                "photos-paper-printed-small": str(rows[0][5]),
                "photos-paper-printed-large": str(rows[-1][5]),
            },
        )

    def curves(self) -> Exhibit:
        """Accuracy against work, and what shorter runs had foretold."""
        size, groups = self.size, self.groups
        drawing, alt = repeated_curves(groups, 5, size["q"])
        (best,) = advantages([one for some in self.own.values() for one in some], size["tests"] // 2)
        long = {(one.accounting, one.unit): one for one in results_of(self.shorter)}
        rows = [_row(some, long.get((some[0].accounting, some[0].unit))) for some in groups]
        width, before_width = (_width(run) for run in (self.runs[0], self.shorter))
        steps = self.shorter.provenance.parameters["steps"]
        return Exhibit(
            name="fig-photos-paper",
            caption=f"The work of the paper's {size['steps']:,} iterations. {size['source']}, {size['backbone']}, "
            f"d = {width:,}, n = {size['users']:,}; bands: ±1.64 standard errors over repetitions. "
            + "; ".join(dict.fromkeys(run.label for run in self.runs))
            + ".",
            figure=drawing,
            alt=alt,
            header=(
                *("variant", "q", "T", "true ε", "ρ", "α", "repetitions", "best top-5 (%)", "± (1.96 standard errors)"),
                f"after {steps:,} iterations, d = {before_width:,} (%)",
            ),
            rows=rows,
            numbers={
                "photos-paper-steps": f"{size['steps']:,}",
                "photos-paper-width": f"{width:,}",
                "photos-paper-element": f"{100 * best.element:.1f}",
                "photos-paper-user": f"{100 * best.user:.1f}",
                "photos-paper-plain": f"{100 * best.plain:.1f}",
                "photos-paper-sampled": f"{100 * best.sampled:.1f}",
                "photos-paper-gain": f"{100 * best.gain:+.1f}",
                "photos-paper-bar": f"{100 * Z_95 * best.standard_error:.1f}",
                "photos-paper-rate": f"{next(one.q for one in self.results):g}",
                "photos-paper-own": f"{max(one.q for one in self.results):g}",
                "photos-paper-tuning": f"{size['tuning_steps']:,}",
                "photos-paper-tried": sum(len(some[0].tried) for some in groups),
            },
        )

    def sentences(self) -> Exhibit:
        """What these runs decide between the variants at the same true ε, over repetitions."""
        kinds = self.own
        said = f"After the work of {self.size['steps']:,} iterations, at the same true ε = 3, "
        rows = [
            repeated(said + what, kinds.get(better, []), kinds.get(worse, []), repaired=True)
            for what, better, worse in OURS
        ]
        return said_and_found(rows, "4.3", "photos-paper")


def _width(run: Recorded) -> int:
    size = run.provenance.parameters
    return int(size["dimension"] or WIDTHS[size["backbone"]])


def _row(some: Sequence[RunResult], before: RunResult | None) -> tuple[object, ...]:
    one = some[0]
    return (
        one.kind,
        one.q,
        f"{one.steps:,}",
        f"{one.true:.3g}" if one.private else "–",
        one.rho if one.private else "–",
        one.step,
        len(some),
        100 * _mean(some),
        "–" if len(some) == 1 else 100 * Z_95 * _spread(some),
        "–" if before is None else 100 * before.reached,
    )


def _mean(some: Sequence[RunResult]) -> float:
    return float(np.mean([one.reached for one in some]))


def _spread(some: Sequence[RunResult]) -> float:
    return float(np.std([one.reached for one in some], ddof=1)) / math.sqrt(len(some))


def _noise(variant: Variant, schedule: Schedule) -> float:
    """The deviation of the average of all noisy steps, up to a factor that is the same for all rates."""
    return noise_for(variant, schedule) / (schedule.q * math.sqrt(schedule.steps))
