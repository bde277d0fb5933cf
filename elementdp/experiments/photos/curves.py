"""One line of an image figure: users' data through the private iteration, test accuracy on the way, resumable."""

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from elementdp.data.pseudo_users import PseudoUsers
from elementdp.errors import at_least, one_of
from elementdp.experiments.photos.lines import Line, Schedule, Way, delta, noise_for, true_epsilon
from elementdp.files import write_atomic
from elementdp.learning import StepSize, UserData
from elementdp.learning.budget import Budget
from elementdp.learning.clipping import ClippedSum
from elementdp.learning.run import Plan, Run
from elementdp.privacy import Band


@dataclass(frozen=True)
class Setting:
    """What is tuned: the step size α (constant) and the clipping radius ρ (infinite without privacy)."""

    step: float
    rho: float


Clipper = Callable[..., ClippedSum]


@dataclass(frozen=True, eq=False)
class Task:
    """A model and how it is judged: ``score(model, part)`` is its accuracy on part 0 (tuning) or 1 (report)."""

    make: Callable[[], nn.Module]
    data: Callable[[Line, int], UserData]
    score: Callable[[nn.Module, int], float]
    content: str
    clipper: Callable[[nn.Module, UserData, float], Clipper] | None = None  # a faster one for this very model


Trial = tuple[float, float, float, float]
"""What tuning tried: α, ρ, the accuracy reached on held-out users and photos, and q."""


@dataclass(frozen=True)
class Told:
    """A line that was run: its noise, the ε it really has, the tuned setting, and how well it did."""

    way: str
    unit: str
    epsilon: float
    k: int
    clusters: int
    users: int
    images: int
    q: float
    steps: int
    sigma: float
    true_low: float
    true_up: float
    step: float
    rho: float
    repetition: int
    iterations: tuple[int, ...]
    accuracy: tuple[float, ...]  # of the iterate then
    seconds: float = field(default=0.0, compare=False)  # spent on it, over all resumptions
    tried: tuple[Trial, ...] = ()  # what the tuning saw
    whole: tuple[Trial, ...] = ()  # what it saw in runs as long as this one, where q was tuned

    @property
    def kind(self) -> str:
        """What is protected and how the line is told, in a figure's key or a table."""
        return self.way if self.way == Way.NONE else f"{self.unit}, {self.way}"

    @property
    def true(self) -> Band:
        """The ε the run really has."""
        return Band.between(self.true_low, self.true_up)

    @property
    def passes(self) -> list[float]:
        """How often a user was drawn by then, on average: lines with different rates are compared at equal passes."""
        return [self.q * step for step in self.iterations]

    @property
    def best(self) -> list[float]:
        """Best accuracy so far, the paper's vertical axis."""
        return list(accumulate(self.accuracy, max))

    @property
    def reached(self) -> float:
        """Best accuracy of the whole run."""
        return max(self.accuracy)


DEVICES = ("auto", "cpu", "cuda", "mps")


def device_of(name: str) -> str:
    """Where to train: ``auto`` is a GPU where there is one."""
    if one_of("device", name, DEVICES) != "auto":
        return name
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """One loss per example."""
    return functional.cross_entropy(outputs, targets, reduction="none")


def top(scores: Tensor, labels: Tensor, k: int) -> float:
    """The share of rows whose label is among the k best scores."""
    best = scores.topk(min(k, scores.shape[1]), dim=1).indices
    return float((best == labels[:, None]).any(1).double().mean())


def user_data(inputs: Tensor, labels: Tensor, held: PseudoUsers, content: str) -> UserData:
    """What pseudo-users hold, with each photo kept once however many users share it."""
    image = torch.from_numpy(held.image)
    return UserData(
        lambda rows: (inputs[image[rows]], labels[image[rows]]),
        held.user,
        held.element,
        held.users,
        content=f"{content} {hashlib.sha256(held.image.tobytes()).hexdigest()}",
    )


def run(
    task: Task,
    line: Line,
    schedule: Schedule,
    setting: Setting,
    *,
    part: int = 1,
    repetition: int = 0,
    evaluations: int = 20,
    stop: int = 0,
    work: Path | None = None,
    device: str = "cpu",
) -> Told:
    """Train one line and score it on the way; ``stop`` ends early (0: all T steps), with the noise of the whole run.

    With a ``work`` folder the run resumes: finished lines are read back, others go on from their checkpoint.
    """
    device = device_of(device)
    steps = min(stop or schedule.steps, schedule.steps)
    at_least("evaluations", evaluations, 1)
    wanted = {max(1, round(steps * part_of / evaluations)) for part_of in range(1, evaluations + 1)}
    key = repr((line, schedule, setting, part, repetition, steps, evaluations, task.content))
    name = hashlib.sha256(key.encode()).hexdigest()[:24]
    seen: dict[int, float] = {}
    before = 0.0
    sidecar = None if work is None else work / f"{name}.json"
    if sidecar is not None and sidecar.is_file():
        kept = json.loads(sidecar.read_text())
        seen, before = {int(step): value for step, value in kept["seen"].items()}, kept["seconds"]
    clock = time.perf_counter()
    checkpoint = None if work is None else work / f"{name}.checkpoint"
    finished = wanted <= seen.keys()
    while not wanted <= seen.keys():
        torch.manual_seed(repetition)
        model = task.make()

        def look(step: int, now: nn.Module) -> None:
            if step in wanted:
                seen[step] = task.score(now, part)
                if sidecar is not None:
                    write_atomic(sidecar, json.dumps({"seen": seen, "seconds": before + time.perf_counter() - clock}))

        budget = Budget(line.sampler, schedule.q, noise_for(line, schedule), steps, delta(line), line.unit)
        plan = Plan(budget, setting.rho, StepSize(setting.step))
        seed = 1_000 * part + repetition
        going = Run(model, task.data(line, repetition), cross_entropy, plan, seed, torch.device(device))
        if task.clipper is not None:
            going.clipper = task.clipper(model, going.data, setting.rho)  # type: ignore[assignment]
        if checkpoint is not None:
            going.resume(checkpoint)
        every = max(1, steps // min(evaluations, 20))
        while going.step < steps:
            going.advance()
            if checkpoint is not None and (going.step % every == 0 or going.step == steps):
                going.save(checkpoint)
            look(going.step, model)
        # Stopped between checkpoint and score, a score is missing that no resumed run passes again: then start over.
        if checkpoint is not None:
            checkpoint.unlink(missing_ok=True)
    band = true_epsilon(line, schedule)
    return Told(
        **asdict(line),
        images=schedule.images,
        q=schedule.q,
        steps=steps,
        sigma=noise_for(line, schedule),
        true_low=band.low,
        true_up=band.up,
        **asdict(setting),
        repetition=repetition,
        iterations=tuple(sorted(seen)),
        accuracy=tuple(seen[step] for step in sorted(seen)),
        seconds=round(before if finished else before + time.perf_counter() - clock, 3),
    )


def from_row(row: dict[str, object]) -> Told:
    """A line read back from a recorded table."""
    values = dict(row)
    values["iterations"] = tuple(values["iterations"])  # type: ignore[arg-type]
    values["accuracy"] = tuple(values["accuracy"])  # type: ignore[arg-type]
    # Runs recorded before rates were tuned list (α, ρ, accuracy): all of them were tried at the line's own q.
    for seen in ("tried", "whole"):
        values[seen] = tuple((*trial, values["q"])[:4] for trial in values.get(seen, ()))  # type: ignore[attr-defined]
    return Told(**values)  # type: ignore[arg-type]


def halves(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Test photos for tuning and for reporting: even and odd rows."""
    rows = np.arange(count)
    return rows[::2], rows[1::2]


NO_CLIP = math.inf
"""ρ of the non-private line."""
