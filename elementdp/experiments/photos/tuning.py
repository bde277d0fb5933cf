"""Choosing what the paper leaves open (α and ρ for each line, q for all) on users and photos that report nothing."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from elementdp.experiments.photos.curves import NO_CLIP, Setting, Task, Trial, run
from elementdp.experiments.photos.lines import Line, Schedule, Way, noise_for
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


@dataclass(frozen=True)
class Tuned:
    """The setting that did best, where it stands (which ladder, which rung), and everything that was tried."""

    setting: Setting
    place: tuple[int, int]
    tried: tuple[Trial, ...] = ()


def tuned(
    task: Task,
    line: Line,
    schedule: Schedule,
    choices: Sequence[Ladder],
    stop: int,
    work: Path | None = None,
    device: str = "cpu",
    start: tuple[int, int] | None = None,
) -> Tuned:
    """What does best on held-out users and the tuning half of the test photos.

    The ladder of one radius is climbed from ``start`` (else the middle); then the radius is changed with the rung
    kept, which keeps αρ and so the noise in a step; then the new ladder is climbed.
    """
    if len(choices) == 1 and len(choices[0]) == 1:
        return Tuned(choices[0][0], (0, 0))
    tried: dict[Setting, float] = {}

    def value(ladder: int, rung: int) -> float:
        setting = choices[ladder][rung]
        if setting not in tried:
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
            tried[setting] = found.reached
        return tried[setting]

    ladder, rung = start if start is not None else (len(choices) // 2, len(choices[0]) // 2)
    ladder = min(ladder, len(choices) - 1)
    rung = climb(lambda at: value(ladder, at), len(choices[ladder]), rung)
    radius = climb(lambda at: value(at, rung), len(choices), ladder)
    if radius != ladder:
        rung = climb(lambda at: value(radius, at), len(choices[radius]), rung)
    listed = tuple((setting.step, setting.rho, reached) for setting, reached in tried.items())
    return Tuned(choices[radius][rung], (radius, rung), listed)


@dataclass(frozen=True)
class Studied:
    """One rate tried for a line: the best step size and radius there, and their held-out accuracy."""

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
    choices: Sequence[Ladder],
    work: Path | None = None,
    device: str = "cpu",
) -> list[Studied]:
    """The schedule's q and other rates at equal work: T is such that qT, the passes over the data, is the same."""
    found = []
    start: tuple[int, int] | None = None
    for q in dict.fromkeys((schedule.q, *rates)):
        here = replace(schedule, q=q, steps=max(1, round(schedule.steps * schedule.q / q)))
        best = tuned(task, line, here, choices, here.steps, work, device, start)
        start = best.place
        found.append(
            Studied(
                **asdict(line),
                q=q,
                steps=here.steps,
                rho=best.setting.rho,
                sigma=noise_for(line, here),
                step=best.setting.step,
                accuracy=max(trial[2] for trial in best.tried),
            )
        )
    return found
