"""Choosing what the paper leaves open (α and ρ for each line, q for all) on users and photos that report nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from elementdp.experiments.photos.curves import NO_CLIP, Setting, Task, Trial, run
from elementdp.experiments.photos.lines import Line, Schedule, Way, noise_for
from elementdp.privacy import Unit

HELD_OUT = 10_000
"""The repetition whose users only tune."""

Ladder = list[Setting]
"""Settings of one radius, by ascending step size."""


def ladders(line: Line, rhos: Sequence[float], step_sizes: Sequence[float]) -> list[Ladder]:
    """What is tried for a line, a ladder for each radius; one without radius for the non-private line.

    Step sizes are for one average update of length 1: a sum over a user's k groups is k times longer and α is divided
    by k, an update clipped to ρ is shorter and α is divided by ρ.
    """
    groups = line.k if line.unit is Unit.ELEMENT else 1
    steps = sorted(step_sizes)
    if line.way is Way.NONE:
        return [[Setting(step / groups, NO_CLIP) for step in steps]]
    return [[Setting(step / rho / groups, rho) for step in steps] for rho in rhos]


def climb(value: Callable[[Setting], float], ladder: Ladder, start: int) -> tuple[int, float]:
    """From rung ``start`` to a rung that is better than both its neighbours, or to an end; and the value there.

    Accuracy rises with the step size, then falls, so most rungs of a wide ladder are never tried.
    """
    at = min(start, len(ladder) - 1)
    best = value(ladder[at])
    for way in (1, -1):
        moved = False
        while 0 <= at + way < len(ladder) and (found := value(ladder[at + way])) > best:
            at, best, moved = at + way, found, True
        if moved:
            break
    return at, best


@dataclass(frozen=True)
class Tuned:
    """The setting that did best, the rung it stands on, and everything that was tried."""

    setting: Setting
    rung: int
    tried: tuple[Trial, ...] = ()


def tuned(
    task: Task,
    line: Line,
    schedule: Schedule,
    choices: Sequence[Ladder],
    stop: int,
    work: Path | None = None,
    device: str = "cpu",
    start: int | None = None,
) -> Tuned:
    """What does best on held-out users and the tuning half of the test photos, climbing each ladder from ``start``."""
    if len(choices) == 1 and len(choices[0]) == 1:
        return Tuned(choices[0][0], 0)
    tried: list[Trial] = []

    def value(setting: Setting) -> float:
        found = run(
            task,
            line,
            schedule,
            setting,
            part=0,
            repetition=HELD_OUT,
            evaluations=4,
            stop=stop,
            work=work,
            device=device,
        )
        tried.append((setting.step, setting.rho, found.reached))
        return found.reached

    tops = []
    for ladder in choices:
        rung, best = climb(value, ladder, len(ladder) // 2 if start is None else start)
        tops.append((best, rung, ladder[rung]))
    _, rung, setting = max(tops, key=lambda top: top[0])
    return Tuned(setting, rung, tuple(tried))


@dataclass(frozen=True)
class Studied:
    """One rate and radius tried for a line at equal work: the best step size there, and its held-out accuracy."""

    way: str
    unit: str
    epsilon: float
    k: int
    clusters: int
    users: int
    q: float
    steps: int
    rho: float
    sigma: float
    step: float
    accuracy: float


def study(
    task: Task,
    line: Line,
    schedule: Schedule,
    rates: Sequence[float],
    rhos: Sequence[float],
    step_sizes: Sequence[float],
    work: Path | None = None,
    device: str = "cpu",
) -> list[Studied]:
    """Other rates and radii than the schedule's q and the first of ``rhos``, one changed at a time.

    Rates are compared at equal work: T is such that qT, the passes over the data, is the schedule's.
    """
    found = []
    start = None
    options = [(schedule.q, rho) for rho in rhos] + [(q, rhos[0]) for q in rates if q != schedule.q]
    for q, rho in options:
        here = replace(schedule, q=q, steps=max(1, round(schedule.steps * schedule.q / q)))
        best = tuned(task, line, here, ladders(line, [rho], step_sizes), here.steps, work, device, start)
        start = best.rung
        found.append(
            Studied(
                str(line.way),
                str(line.unit),
                line.epsilon,
                line.k,
                line.clusters,
                line.users,
                q,
                here.steps,
                best.setting.rho,
                noise_for(line, here),
                best.setting.step,
                max(trial[2] for trial in best.tried),
            )
        )
    return found
