"""Choosing what the paper leaves open (α, ρ and q, for each variant) on users and photos that report nothing."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from elementdp.companion.experiments.images.running import HERE, Compute, Hyperparameters, ImageTask, Trial, run
from elementdp.companion.experiments.images.variants import Accounting, Schedule, Variant, in_epochs
from elementdp.privacy import Unit

HELD_OUT = 10_000
"""The repetition whose users only tune."""

NO_CLIP = math.inf
"""ρ of the non-private variant."""

Ladder = list[Hyperparameters]
"""Hyperparameters of one radius, by ascending step size."""


def ladders(variant: Variant, rhos: Sequence[float], step_sizes: Sequence[float]) -> list[Ladder]:
    """What may be tried for a variant, a ladder for each radius in ascending order; the non-private one has one.

    Step sizes are for one average update of length 1: a sum over a user's k groups is k times longer and α is divided
    by k, an update clipped to ρ is shorter and α is divided by ρ.
    """
    groups = variant.k if variant.unit is Unit.ELEMENT else 1
    steps = sorted(step_sizes)
    if variant.accounting is Accounting.NONE:
        return [[Hyperparameters(step / groups, NO_CLIP) for step in steps]]
    return [[Hyperparameters(step / rho / groups, rho) for step in steps] for rho in sorted(rhos)]


MARGIN = 0.01
"""Held-out accuracies this close say nothing: the climb then goes towards the smaller value, which is less noisy."""


def climb(value: Callable[[int], float], length: int, start: int) -> int:
    """The best rung seen on the way up from ``start`` while it clearly pays, else down while it does not clearly cost.

    Accuracy rises with the step size, then falls (and so with the radius), so most rungs of a wide ladder are never
    tried; where a variant has not left chance, every rung down to the last is.
    """
    at = min(start, length - 1)
    seen = {at: value(at)}
    while at + 1 < length:
        seen[at + 1] = value(at + 1)
        if seen[at + 1] <= seen[at] + MARGIN:
            break
        at += 1
    while min(seen) > 0 and (at == min(seen) or seen[min(seen)] > max(seen.values()) - MARGIN):
        rung = min(seen) - 1
        seen[rung] = value(rung)
    return max(sorted(seen), key=seen.__getitem__)


Place = tuple[int, int, int]
"""Which rate, which radius and which step size, as positions in what may be tried."""


@dataclass(frozen=True)
class Tuned:
    """The schedule and hyperparameters that did best, their place, and everything that was tried."""

    schedule: Schedule
    chosen: Hyperparameters
    place: Place
    tried: tuple[Trial, ...] = ()
    whole: tuple[Trial, ...] = ()  # of them, those that were run in full, where rates were tuned
    seconds: float = 0.0  # that all tries took, over all resumptions


def at_rate(schedule: Schedule, factor: float) -> Schedule:
    """Another rate for equal work: qT, the passes over the data, is the same up to a whole number of steps."""
    q = min(1.0, factor * schedule.q)
    return replace(schedule, q=q, steps=max(1, round(schedule.steps * schedule.q / q)))


@dataclass
class _Search:
    """The tries for one variant: each at one rate, radius and step size, on held-out users, with the whole run's noise.

    ``tries`` are ``passes`` passes over the data long, ``whole`` runs are as long as the run that will be reported.
    """

    task: ImageTask
    variant: Variant
    schedules: Sequence[Schedule]
    choices: Sequence[Ladder]
    passes: float
    compute: Compute
    tries: dict[Place, float] = field(default_factory=dict)
    whole: dict[Place, float] = field(default_factory=dict)
    tops: dict[int, tuple[int, int]] = field(default_factory=dict)
    seconds: float = 0.0

    def _reached(self, place: Place, stop: int) -> float:
        rate, ladder, rung = place
        chosen = self.choices[ladder][rung]
        options = {"part": 0, "repetition": HELD_OUT, "evaluations": 4, "stop": stop}
        found = run(self.task, self.variant, self.schedules[rate], chosen, compute=self.compute, **options)
        self.seconds += found.seconds
        return found.reached

    def briefly(self, place: Place) -> float:
        """Accuracy after the work of a short try."""
        if place not in self.tries:
            stop = max(1, round(self.passes / self.schedules[place[0]].q))
            self.tries[place] = self._reached(place, stop)
        return self.tries[place]

    def in_full(self, place: Place) -> float:
        """Accuracy of a whole run."""
        if place not in self.whole:
            self.whole[place] = self._reached(place, 0)
        return self.whole[place]

    def top_at(self, rate: int, begin: tuple[int, int]) -> float:
        """Climb step size, radius and step size again at one rate; if rates compete, the step size by whole runs too.

        The rung is kept when the radius changes, which keeps αρ and so the noise in a step.
        """
        nearest = min(self.tops, key=lambda other: abs(other - rate), default=None)
        ladder, rung = begin if nearest is None else self.tops[nearest]
        rung = climb(lambda at: self.briefly((rate, ladder, at)), len(self.choices[ladder]), rung)
        radius = climb(lambda at: self.briefly((rate, at, rung)), len(self.choices), ladder)
        if radius != ladder:
            rung = climb(lambda at: self.briefly((rate, radius, at)), len(self.choices[radius]), rung)
        if len(self.schedules) > 1:
            rung = climb(lambda at: self.in_full((rate, radius, at)), len(self.choices[radius]), rung)
        self.tops[rate] = (radius, rung)
        return self.whole.get((rate, radius, rung), 0.0)

    def trials(self, seen: dict[Place, float]) -> tuple[Trial, ...]:
        """Places as the numbers they stand for."""
        return tuple(
            (self.choices[i][j].step, self.choices[i][j].rho, best, self.schedules[at].q)
            for (at, i, j), best in seen.items()
        )


def tune(
    task: ImageTask,
    variant: Variant,
    schedule: Schedule,
    choices: Sequence[Ladder],
    stop: int,
    *,
    factors: Sequence[float] = (1.0,),
    compute: Compute = HERE,
    start: Place | None = None,
) -> Tuned:
    """What does best on held-out users and the tuning half of the test photos, after the work of ``stop`` steps.

    At one rate the ladder of one radius is climbed from ``start`` (else the middle), then the radius, then the new
    ladder. Rates, multiples of the schedule's q by ``factors``, are climbed likewise, each with the best radius and
    step size there and by whole runs: few large steps start slower than many small ones, and end elsewhere. Since a
    short try favours large step sizes, the step size is climbed by whole runs before a rate is compared: a rate must
    not lose for the step size that short tries gave it.
    """
    schedules = [in_epochs(variant, at_rate(schedule, factor)) for factor in sorted(factors)]
    if len(schedules) == len(choices) == len(choices[0]) == 1:
        return Tuned(schedules[0], choices[0][0], (0, 0, 0))
    search = _Search(task, variant, schedules, choices, stop * schedule.q, compute)
    first = min(range(len(schedules)), key=lambda at: abs(schedules[at].q - schedule.q))
    rate, ladder, rung = start or (first, len(choices) // 2, len(choices[0]) // 2)
    begin = (min(ladder, len(choices) - 1), rung)
    rate = climb(lambda at: search.top_at(at, begin), len(schedules), rate)
    ladder, rung = search.tops[rate]
    tried, whole = search.trials(search.tries), search.trials(search.whole)
    return Tuned(schedules[rate], choices[ladder][rung], (rate, ladder, rung), tried, whole, search.seconds)
