"""Choosing what the paper leaves open (α, ρ and q, for each line) on users and photos that report nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from elementdp.companion.experiments.photos.curves import NO_CLIP, Setting, Task, Trial, run
from elementdp.companion.experiments.photos.lines import Line, Schedule, Way
from elementdp.privacy import Unit

HELD_OUT = 10_000
"""The repetition whose users only tune."""

Ladder = list[Setting]
"""Settings of one radius, by ascending step size."""


def ladders(line: Line, rhos: Sequence[float], step_sizes: Sequence[float]) -> list[Ladder]:
    """What may be tried for a line, a ladder for each radius in ascending order; the non-private line has one.

    Step sizes are for one average update of length 1: a sum over a user's k groups is k times longer and α is divided
    by k, an update clipped to ρ is shorter and α is divided by ρ.
    """
    groups = line.k if line.unit is Unit.ELEMENT else 1
    steps = sorted(step_sizes)
    if line.way is Way.NONE:
        return [[Setting(step / groups, NO_CLIP) for step in steps]]
    return [[Setting(step / rho / groups, rho) for step in steps] for rho in sorted(rhos)]


MARGIN = 0.01
"""Held-out accuracies this close say nothing: the climb then goes towards the smaller setting, which is less noisy."""


def climb(value: Callable[[int], float], length: int, start: int) -> int:
    """The best rung seen on the way up from ``start`` while it clearly pays, else down while it does not clearly cost.

    Accuracy rises with the step size, then falls (and so with the radius), so most rungs of a wide ladder are never
    tried; where a line has not left chance, every rung down to the last is.
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
    """The schedule and the setting that did best, their place, and everything that was tried."""

    schedule: Schedule
    setting: Setting
    place: Place
    tried: tuple[Trial, ...] = ()
    whole: tuple[Trial, ...] = ()  # of them, those that were run in full, where rates were tuned


def at_rate(schedule: Schedule, factor: float) -> Schedule:
    """Another rate for equal work: qT, the passes over the data, is the same up to a whole number of steps."""
    q = min(1.0, factor * schedule.q)
    return replace(schedule, q=q, steps=max(1, round(schedule.steps * schedule.q / q)))


def tuned(
    task: Task,
    line: Line,
    schedule: Schedule,
    choices: Sequence[Ladder],
    stop: int,
    *,
    factors: Sequence[float] = (1.0,),
    work: Path | None = None,
    device: str = "cpu",
    start: Place | None = None,
) -> Tuned:
    """What does best on held-out users and the tuning half of the test photos, after the work of ``stop`` steps.

    At one rate the ladder of one radius is climbed from ``start`` (else the middle); then the radius is changed with
    the rung kept, which keeps αρ and so the noise in a step; then the new ladder is climbed. Every try has the noise
    of the whole run. Rates, multiples of the schedule's q by ``factors``, are climbed likewise, each with the best
    radius and step size there and by whole runs: few large steps start slower than many small ones, and end elsewhere.
    Since a short try favours large step sizes, the step size at the best rate is then climbed once more by whole runs.
    """
    schedules = [at_rate(schedule, factor) for factor in sorted(factors)]
    if len(schedules) == len(choices) == len(choices[0]) == 1:
        return Tuned(schedules[0], choices[0][0], (0, 0, 0))
    tried: dict[tuple[int, int, int], float] = {}
    tops: dict[int, tuple[int, int]] = {}
    whole: dict[tuple[int, int, int], float] = {}

    def reached(rate: int, ladder: int, rung: int, stop: int) -> float:
        found = run(
            task,
            line,
            schedules[rate],
            choices[ladder][rung],
            part=0,
            repetition=HELD_OUT,
            evaluations=4,
            stop=stop,
            work=work,
            device=device,
        )
        return found.reached

    def value(rate: int, ladder: int, rung: int) -> float:
        if (rate, ladder, rung) not in tried:
            share = max(1, round(stop * schedule.q / schedules[rate].q))
            tried[rate, ladder, rung] = reached(rate, ladder, rung, share)
        return tried[rate, ladder, rung]

    def in_full(rate: int, ladder: int, rung: int) -> float:
        if (rate, ladder, rung) not in whole:
            whole[rate, ladder, rung] = reached(rate, ladder, rung, 0)
        return whole[rate, ladder, rung]

    def top_at(rate: int) -> float:
        nearest = min(tops, key=lambda other: abs(other - rate), default=None)
        ladder, rung = begin if nearest is None else tops[nearest]
        rung = climb(lambda at: value(rate, ladder, at), len(choices[ladder]), rung)
        radius = climb(lambda at: value(rate, at, rung), len(choices), ladder)
        if radius != ladder:
            rung = climb(lambda at: value(rate, radius, at), len(choices[radius]), rung)
        tops[rate] = (radius, rung)
        return in_full(rate, radius, rung) if len(schedules) > 1 else 0.0

    first = min(range(len(schedules)), key=lambda at: abs(schedules[at].q - schedule.q))
    rate, *rest = start or (first, len(choices) // 2, len(choices[0]) // 2)
    begin = (min(rest[0], len(choices) - 1), rest[1])
    rate = climb(top_at, len(schedules), rate)
    ladder, rung = tops[rate]
    if len(schedules) > 1:
        rung = climb(lambda at: in_full(rate, ladder, at), len(choices[ladder]), rung)
    lists = [
        tuple((choices[i][j].step, choices[i][j].rho, best, schedules[at].q) for (at, i, j), best in seen.items())
        for seen in (tried, whole)
    ]
    return Tuned(schedules[rate], choices[ladder][rung], (rate, ladder, rung), *lists)
