"""Figure 5 of the paper: the PyTorch tutorial's network trained from scratch on CIFAR-10, with and without privacy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elementdp.companion.data.pseudo_users import PseudoUsers, pseudo_users
from elementdp.companion.data.store import digest_arrays
from elementdp.companion.experiments.cifar.pool import Photos
from elementdp.companion.experiments.photos.curves import Task, Told, halves, top, user_data
from elementdp.companion.experiments.photos.lines import Line, Schedule, non_private, three_ways
from elementdp.companion.experiments.photos.sizes import Sizes
from elementdp.errors import at_least, positive
from elementdp.learning import UserData
from elementdp.privacy import Unit

Z_90 = 1.64
"""The paper's bars: ±1.64 standard errors."""

LEGEND: tuple[tuple[str, float, int, int], ...] = tuple(
    (what, epsilon, k, n)
    for what in ("element", "user")
    for epsilon in (3.0, 1.0)
    for n in (8_000, 2_000)
    for k in (30, 5)
)
"""What, ε, k, n. The figure itself is not in the source of the paper; the caption names these choices."""


def tutorial_network() -> nn.Module:
    """The network of the PyTorch tutorial: two convolutions, three full layers, 62,006 parameters."""
    return nn.Sequential(
        nn.Conv2d(3, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def pixels(images: NDArray[np.uint8]) -> Tensor:
    """Bytes to numbers between -1 and 1, channels first, as in the tutorial."""
    return torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float().div_(127.5).sub_(1).contiguous()


@dataclass(frozen=True, kw_only=True)
class Plan(Sizes):
    """What is run for Figure 5."""

    clusters: int = 100  # K
    users_a_step: float = 20.0  # qn
    rhos: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    step_sizes: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    tuning_steps: int = 1_000
    legend: tuple[tuple[str, float, int, int], ...] = LEGEND

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("clusters", self.clusters, 1)
        positive("users_a_step", self.users_a_step)

    def schedule(self, line: Line) -> Schedule:
        """The expected number of users a step is the same for every n."""
        return Schedule(self.images, min(1.0, self.users_a_step / line.users), self.steps)

    def lines(self) -> list[Line]:
        """Every line of the legend in every way it is told, the non-private ones first."""
        pairs = dict.fromkeys((k, n) for _, _, k, n in self.legend)
        found = [non_private(k, self.clusters, n) for k, n in pairs]
        for what, epsilon, k, n in self.legend:
            found += three_ways(Unit(what), epsilon, k, self.clusters, n)
        return found


def whole_network(photos: Photos, plan: Plan, seed: int = 0) -> Task:
    """The tutorial's network trained from scratch, judged by top-1 accuracy."""
    inputs, labels = pixels(photos.images), torch.from_numpy(photos.labels)
    tests, answers = pixels(photos.test_images), torch.from_numpy(photos.test_labels)
    parts = [torch.from_numpy(rows) for rows in halves(len(answers))]
    content = digest_arrays({"images": photos.images, "features": photos.features})
    elements = cache(lambda: photos.elements(plan.clusters, seed))

    @cache
    def held(k: int, users: int, repetition: int) -> PseudoUsers:
        rng = np.random.default_rng([seed, k, users, repetition])
        return pseudo_users(elements(), users, plan.images, k, rng)

    def data(line: Line, repetition: int) -> UserData:
        return user_data(inputs, labels, held(line.k, line.users, repetition), content)

    def score(model: nn.Module, part: int) -> float:
        device = next(model.parameters()).device
        with torch.no_grad():
            return top(model(tests[parts[part]].to(device)), answers[parts[part]].to(device), 1)

    return Task(tutorial_network, data, score, f"tutorial network {content} {seed}")


@dataclass(frozen=True)
class Difference:
    """Accuracy minus that of the non-private line with the same k and n, at one iteration, over repetitions."""

    iteration: int
    mean: float
    standard_error: float  # nan for a single repetition

    @property
    def bar(self) -> float:
        """Half the height of the bar."""
        return Z_90 * self.standard_error


def differences(
    told: Sequence[Told], base: Sequence[Told], value: Callable[[Told], Sequence[float]]
) -> list[Difference]:
    """Top-1 accuracy against non-private training, repetition by repetition (the same users in both)."""
    reference = {line.repetition: value(line) for line in base}
    gaps = np.array([np.subtract(value(line), reference[line.repetition]) for line in told])
    spread = gaps.std(axis=0, ddof=1) / len(gaps) ** 0.5 if len(gaps) > 1 else np.full(gaps.shape[1], np.nan)
    means = gaps.mean(axis=0)
    return [Difference(i, float(m), float(s)) for i, m, s in zip(told[0].iterations, means, spread, strict=True)]
