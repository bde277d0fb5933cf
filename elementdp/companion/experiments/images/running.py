"""One curve of an image figure: users' data through the private iteration, test accuracy on the way, resumable."""

import hashlib
import json
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from elementdp.companion.experiments.images.variants import (
    WITHOUT_COINS,
    Accounting,
    Schedule,
    Variant,
    correlation_for,
    noise_for,
    true_epsilon,
)
from elementdp.errors import at_least, one_of
from elementdp.files import write_atomic
from elementdp.learning import Checkpoint, Noise, Plan, Step, UserData, train
from elementdp.privacy import Band, Unit


@dataclass(frozen=True)
class Hyperparameters:
    """What is tuned: the step size α (constant) and the clipping radius ρ (infinite without privacy)."""

    step: float
    rho: float


@dataclass(frozen=True, eq=False)
class ImageTask:
    """A model and how it is judged: ``score(model, part)`` is its accuracy on part 0 (tuning) or 1 (report)."""

    make: Callable[[], nn.Module]
    data: Callable[[Variant, int], UserData]
    score: Callable[[nn.Module, int], float]
    content: str


@dataclass(frozen=True)
class Compute:
    """Where training runs, and the folder from which a run that was stopped goes on (None: it starts over)."""

    device: str = "cpu"
    work: Path | None = None

    @classmethod
    def at(cls, device: str, folder: str) -> "Compute":
        """As a notebook's parameters say it: the empty folder is none."""
        return cls(device, Path(folder) if folder else None)


HERE = Compute()
"""The processor, and nothing kept."""

Trial = tuple[float, float, float, float]
"""What tuning tried: α, ρ, the accuracy reached on held-out users and photos, and q."""


@dataclass(frozen=True)
class RunResult:
    """A variant that was run: its noise, the ε it really has, the tuned step size and radius, and how well it did."""

    accounting: str
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
    tuning_seconds: float = field(default=0.0, compare=False)  # likewise on its tuning, in the first repetition
    tried: tuple[Trial, ...] = ()  # what the tuning saw
    whole: tuple[Trial, ...] = ()  # what it saw in runs as long as this one, where q was tuned

    @property
    def private(self) -> bool:
        """Whether there is any noise."""
        return self.accounting != Accounting.NONE

    @property
    def kind(self) -> str:
        """What is protected and how it is counted, in a figure's key or a table."""
        words = {Accounting.NONE: "non-private", Accounting.PRINTED: f"{self.unit}, as printed"}
        words |= {way: f"element, {way}, true ε" for way in WITHOUT_COINS}
        words[Accounting.PAIRS] = "element, pairs sampled, true ε"
        words[Accounting.TRUE] = "user, true ε" if self.unit == Unit.USER else "element, users sampled, true ε"
        return words[Accounting(self.accounting)]

    @property
    def true(self) -> Band:
        """The ε the run really has."""
        return Band.between(self.true_low, self.true_up)

    def summary(self) -> dict[str, object]:
        """The run as a row of results: what was asked for, the noise, the true ε and the best accuracy."""
        return {
            "accounting": self.accounting,
            "unit": self.unit,
            "epsilon": self.epsilon if self.private else None,
            "k": self.k,
            "K": self.clusters,
            "n": self.users,
            "sigma": self.sigma,
            "true_epsilon": self.true_up if self.private else None,
            "accuracy": self.reached,
        }

    @property
    def passes(self) -> list[float]:
        """How often a user was drawn by then, on average: curves with different rates are compared at equal passes."""
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


@dataclass
class _Progress:
    """What a run has seen, kept in a file if there is one: accuracies by step, and the seconds they took."""

    path: Path | None
    seen: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    clock: float = field(default_factory=time.perf_counter)

    @classmethod
    def at(cls, path: Path) -> "_Progress":
        if not path.is_file():
            return cls(path)
        kept = json.loads(path.read_text())
        return cls(path, {int(step): value for step, value in kept["seen"].items()}, kept["seconds"])

    def spent(self) -> float:
        return self.seconds + time.perf_counter() - self.clock

    def has(self, steps: Collection[int]) -> bool:
        return self.seen.keys() >= set(steps)

    def note(self, step: int, accuracy: float) -> None:
        self.seen[step] = accuracy
        if self.path is not None:
            write_atomic(self.path, json.dumps({"seen": self.seen, "seconds": self.spent()}))


def _kept(folder: Path | None, key: str, every: int) -> tuple[_Progress, Checkpoint | None]:
    """What an earlier part of this very run has left in the folder."""
    if folder is None:
        return _Progress(None), None
    stem = hashlib.sha256(key.encode()).hexdigest()[:24]
    return _Progress.at(folder / f"{stem}.json"), Checkpoint(folder / f"{stem}.checkpoint", every)


def _scored(steps: int, evaluations: int, until: int) -> list[int]:
    """After which steps a run is scored: evenly spread ones, up to ``until`` (0: all), and one at least."""
    at_least("evaluations", evaluations, 1)
    spread = {max(1, round(steps * number / evaluations)) for number in range(1, evaluations + 1)}
    return sorted(step for step in spread if step <= (until or steps)) or [min(spread)]


def run(
    task: ImageTask,
    variant: Variant,
    schedule: Schedule,
    chosen: Hyperparameters,
    *,
    part: int = 1,
    repetition: int = 0,
    evaluations: int = 20,
    stop: int = 0,
    until: int = 0,
    compute: Compute = HERE,
) -> RunResult:
    """Train one variant and score it on the way; ``stop`` ends early (0: all T steps), with the noise of the whole run.

    With a folder to work in the run resumes: a finished one is read back, others go on from their checkpoint. ``until``
    is the beginning of such a run: what it has seen after so many steps (0: all), whether it then goes on or not.
    """
    steps = min(stop or schedule.steps, schedule.steps)
    wanted = _scored(steps, evaluations, until)
    key = repr((variant, schedule, chosen, part, repetition, steps, evaluations, task.content))
    progress, checkpoint = _kept(compute.work, key, max(1, steps // evaluations))
    finished = progress.has(wanted)
    sigma, correlation = noise_for(variant, schedule), correlation_for(variant, schedule)
    plan = Plan(wanted[-1], chosen.rho, schedule.q, variant.sampler, chosen.step, correlation=correlation)

    def look(step: Step) -> None:
        if step.k in wanted:
            progress.note(step.k, task.score(step.model, part))

    while not progress.has(wanted):
        torch.manual_seed(repetition)
        train(
            task.make(),
            task.data(variant, repetition),
            loss=cross_entropy,
            privacy=Noise(sigma, variant.delta, variant.unit),
            plan=plan,
            seed=1_000 * part + repetition,
            device=device_of(compute.device),
            checkpoint=checkpoint,
            progress=False,
            on_step=look,
        )
        # Stopped between checkpoint and score, a score is missing that no resumed run passes again: then start over.
        if checkpoint is not None and not (until and progress.has(wanted)):
            checkpoint.path.unlink(missing_ok=True)
    band = true_epsilon(variant, schedule)
    return RunResult(
        **asdict(variant),
        images=schedule.images,
        q=schedule.q,
        steps=steps,
        sigma=sigma,
        true_low=band.low,
        true_up=band.up,
        **asdict(chosen),
        repetition=repetition,
        iterations=tuple(wanted),
        accuracy=tuple(progress.seen[step] for step in wanted),
        seconds=round(progress.seconds if finished else progress.spent(), 3),
    )
