"""Recorded runs with the noise of the paper's 40,000 iterations, apart by the width of their features."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from elementdp.companion.experiments.bars import Z_95
from elementdp.companion.experiments.images.advantage import Advantage, advantages
from elementdp.companion.experiments.images.comparison import MISSING, difference, repeated
from elementdp.companion.experiments.images.results import (
    fair_results,
    paper_length_runs,
    recorded_results,
    results_of,
    width_of,
)
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.sentences import (
    OURS,
    cifar_sentences,
    gap_sentences,
    other_photos,
    papers_photos,
    photos_sentences,
)
from elementdp.companion.experiments.images.variants import Accounting
from elementdp.companion.experiments.recorded import FOLDER, Recorded, read
from elementdp.companion.experiments.sentence import Sentence
from elementdp.errors import ElementdpError
from elementdp.privacy import Unit

SHORTER = {"photos": ("photos-long",), "cifar": ("cifar-long", "cifar-long-element", "cifar-long-user")}
"""Shorter runs of the same variants, which had foretold the long ones."""

SETTINGS = {"photos": (100, 500), "cifar": (30, 100)}
"""k and K of the users on whom a section's message rests, with ε = 3."""

Kind = tuple[str, str]
"""How a variant is counted, and what it protects."""

ELEMENT: Kind = (Accounting.PAIRS, Unit.ELEMENT)
USER: Kind = (Accounting.TRUE, Unit.USER)
SAMPLED: Kind = (Accounting.TRUE, Unit.ELEMENT)
AS_PRINTED: Kind = (Accounting.PRINTED, Unit.ELEMENT)
PLAIN: Kind = (Accounting.NONE, Unit.ELEMENT)

WANTED = {
    ELEMENT: "element level with pairs sampled",
    USER: "user level",
    SAMPLED: "element level with whole users sampled",
    AS_PRINTED: "element level as printed",
    PLAIN: "training without privacy",
}
"""The variants that carry a section's argument, in words."""


@dataclass(frozen=True, eq=False)
class LongRuns:
    """A section's runs of the paper's length with features of one width, and shorter ones that had foretold them."""

    section: str
    runs: list[Recorded]
    shorter: list[Recorded]
    others: "Sequence[LongRuns]" = ()  # the same with features of other widths

    @classmethod
    def read(cls, section: str = "photos", folder: Path = FOLDER) -> Self:
        """The runs that come with the repository: the widest features for which both units were run, and the others."""
        by_width: dict[int, list[Recorded]] = {}
        for run in paper_length_runs(section, folder):
            by_width.setdefault(width_of(run), []).append(run)
        shorter = [read(name, folder) for name in SHORTER[section]]
        found = [cls(section, by_width[width], shorter) for width in sorted(by_width, reverse=True)]
        ready = [one for one in found if {ELEMENT, USER} <= one.own.keys()]
        if not ready:
            raise ElementdpError(f"no recorded runs of {section} at the paper's length have both units in {folder}")
        return replace(ready[0], others=[one for one in found if one is not ready[0]])

    @property
    def widths_run(self) -> "list[LongRuns]":
        """These runs, then those with features of other widths."""
        return [self, *self.others]

    @property
    def size(self) -> Mapping[str, Any]:
        """What the runs were asked for."""
        return self.runs[0].provenance.parameters

    @property
    def width(self) -> int:
        """How many numbers the features of a photo have."""
        return width_of(self.runs[0])

    @cached_property
    def results(self) -> list[RunResult]:
        """All runs; one that two tables have counts once."""
        every = [one for run in self.runs for one in results_of(run)]
        return list({(*setting_of(one), one.q, one.repetition): one for one in reversed(every)}.values())[::-1]

    @property
    def main(self) -> list[RunResult]:
        """The runs of the setting on which the section's message rests."""
        setting = SETTINGS[self.section]
        return [one for one in self.results if (one.k, one.clusters) == setting and one.epsilon in (3.0, math.inf)]

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
    def own(self) -> dict[Kind, list[RunResult]]:
        """Of each variant the repetitions at the rate that did best, by accounting and unit."""
        return {(some[0].accounting, some[0].unit): some for some in reversed(self.groups)}

    @property
    def trained(self) -> tuple[float, int]:
        """The best accuracy without privacy that was recorded at any length, and after how many iterations' work."""
        plain = [one for run in (*self.runs, *self.shorter) for one in results_of(run) if not one.private]
        best = max(plain, key=lambda one: one.reached)
        return best.reached, round(best.passes[-1] / self.rate)

    @cached_property
    def spread(self) -> float:
        """The standard deviation of a run's accuracy, from variants that were repeated, here or in like runs."""
        found: dict[tuple[object, ...], list[float]] = {}
        wide = [(other.width, one) for other in self.widths_run for one in other.main]
        for width, one in (*wide, *((0, one) for one in fair_results(self.section))):
            found.setdefault((width, *setting_of(one), one.q, one.steps), []).append(one.reached)
        variances = [float(np.var(some, ddof=1)) for some in found.values() if len(some) > 1]
        return math.sqrt(float(np.mean(variances))) if variances else math.nan

    @property
    def advantage(self) -> Advantage:
        """Element against user level, with standard errors over runs."""
        own = self.own
        (found,) = advantages([one for some in own.values() for one in some], self.size["tests"] // 2)
        errors = [difference(own[kind], own[USER], self.spread)[1] / Z_95 for kind in (ELEMENT, SAMPLED) if kind in own]
        return replace(found, standard_error=errors[0], sampled_error=errors[-1])

    @property
    def missing(self) -> list[str]:
        """The variants that carry the argument and were not run, in words."""
        return [words for kind, words in WANTED.items() if kind not in self.own]

    def sentences(self) -> list[Sentence]:
        """What the paper and we say, against these runs; what they do not have, against runs of other widths."""
        found = {one.said: one for one in self._sentences() if one.found != MISSING}
        for other in self.others:
            found |= {one.said: one for one in other.sentences() if one.said not in found}
        return list(found.values())

    def _sentences(self) -> list[Sentence]:
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
            return [replace(one, more=f"{one.more}; d = {self.width:,}") for one in (*papers, *ours)]
        trained, after = self.trained
        return [*gap_sentences(self.main, trained, self.spread, whole=after >= self.size["steps"]), *ours]


def section_sentences(section: str) -> list[Sentence]:
    """Every sentence of a section, then ours, by the shorter runs and by those of the paper's length."""
    runs, results = recorded_results(section)
    fair = fair_results(section)
    if section == "photos":
        size = runs[0].provenance.parameters
        short = photos_sentences(results, size["tests"] // 2, fair)
        short += other_photos(size["users"], sorted({one.k for one in results if one.clusters == 500}))
    else:
        short = cifar_sentences(results, fair)
    return sorted([*short, *LongRuns.read(section).sentences()], key=lambda one: one.repaired)


def setting_of(one: RunResult) -> tuple[object, ...]:
    """Which variant of which users a run is."""
    return (one.accounting, one.unit, one.epsilon, one.k, one.clusters, one.users)


def mean_reached(some: Sequence[RunResult]) -> float:
    """The mean best accuracy of repetitions."""
    return float(np.mean([one.reached for one in some]))
