"""Figure 4 of the paper: tuning the last layer on photos, the legend's lines, each private one told three ways."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

from elementdp.data.pseudo_users import PseudoUsers, pseudo_users
from elementdp.errors import at_least, probability
from elementdp.experiments.photos.curves import Task, Told, halves, run, top
from elementdp.experiments.photos.frozen import PhotoClipper, PhotoData
from elementdp.experiments.photos.lines import Line, Schedule, Way, non_private, three_ways
from elementdp.experiments.photos.pool import Pool, fingerprint
from elementdp.experiments.photos.sizes import Sizes
from elementdp.experiments.photos.tuning import Place, tuned
from elementdp.learning import UserData
from elementdp.privacy import Unit
from elementdp.privacy.digits import rounded_up

TOP = 5
"""An answer counts if the label is among this many best scores."""

LEGEND: tuple[tuple[str, float, int, int], ...] = (
    ("non-private", float("inf"), 100, 500),
    ("element", 3.0, 100, 500),
    ("non-private", float("inf"), 30, 50),
    ("element", 3.0, 30, 50),
    ("element", 3.0, 30, 500),
    ("element", 1.0, 100, 500),
    ("element", 3.0, 5, 500),
    ("element", 1.0, 30, 50),
    ("user", 3.0, 30, 50),
    ("user", 3.0, 100, 500),
    ("element", 1.0, 30, 500),
    ("user", 3.0, 30, 500),
    ("element", 1.0, 5, 500),
    ("user", 1.0, 100, 500),
    ("user", 1.0, 30, 500),
    ("user", 1.0, 30, 50),
)
"""The 16 lines of the paper's legend, from the best to the worst as printed: what, ε, k, K."""


@dataclass(frozen=True, kw_only=True)
class Plan(Sizes):
    """What is run for Figure 4."""

    users: int = 8_000  # n
    q: float = 0.01
    rhos: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)
    step_sizes: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    tuning_steps: int = 2_000
    legend: tuple[tuple[str, float, int, int], ...] = LEGEND

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("users", self.users, 1)
        probability("q", self.q, low_open=True)

    def schedule(self, line: Line) -> Schedule:
        """The same for every line."""
        return Schedule(self.images, self.q, self.steps)

    def lines(self) -> list[Line]:
        """Every line of the legend in every way it is told."""
        found: list[Line] = []
        for what, epsilon, k, clusters in self.legend:
            if what == "non-private":
                found.append(non_private(k, clusters, self.users))
            else:
                found += three_ways(Unit(what), epsilon, k, clusters, self.users)
        return found


def last_layer(pool: Pool, plan: Plan, seed: int = 0) -> Task:
    """Multiclass logistic regression on the photos' features: the last layer of the network, starting from zero."""
    inputs, labels = torch.from_numpy(pool.inputs), torch.from_numpy(pool.labels)
    tests, answers = torch.from_numpy(pool.test_inputs), torch.from_numpy(pool.test_labels)
    parts = [torch.from_numpy(rows) for rows in halves(len(answers))]
    held = holdings(pool, plan.users, plan.images, seed)
    content = fingerprint(pool)

    def make() -> nn.Module:
        layer = nn.Linear(inputs.shape[1], len(pool.names))
        for parameter in layer.parameters():
            nn.init.zeros_(parameter)
        return layer

    @lru_cache(maxsize=3)
    def shared(k: int, clusters: int, repetition: int) -> PhotoData:
        who = held(k, clusters, repetition)
        return PhotoData(inputs, labels, who, f"{content} {hashlib.sha256(who.image.tobytes()).hexdigest()}")

    def data(line: Line, repetition: int) -> UserData:
        return shared(line.k, line.clusters, repetition)

    def clipper(model: nn.Module, data: UserData, rho: float) -> PhotoClipper:
        assert isinstance(model, nn.Linear) and isinstance(data, PhotoData)
        return PhotoClipper(model, data, rho)

    def score(model: nn.Module, part: int) -> float:
        device = next(model.parameters()).device
        with torch.no_grad():
            return top(model(tests[parts[part]].to(device)), answers[parts[part]].to(device), TOP)

    return Task(make, data, score, f"last layer {content} {seed}", clipper)


def holdings(pool: Pool, users: int, images: int, seed: int) -> Callable[[int, int, int], PseudoUsers]:
    """Who holds which photos, by (k, K, repetition); clusters are made once."""
    clusters = cache(lambda count: pool.elements(count, seed))

    @cache
    def held(k: int, count: int, repetition: int) -> PseudoUsers:
        return pseudo_users(clusters(count), users, images, k, np.random.default_rng([seed, k, count, repetition]))

    return held


def figure(
    task: Task,
    plan: Sizes,
    lines: Sequence[Line],
    report: Callable[[str], None] = lambda line: None,
    work: Path | None = None,
    device: str = "cpu",
) -> list[Told]:
    """Every line with its tuned setting, on users and test photos that the tuning has not seen."""
    told = []
    places: dict[tuple[Unit, Way], Place] = {}
    for number, line in enumerate(lines, start=1):
        best = tuned(
            task,
            line,
            plan.schedule(line),
            plan.choices(line),
            plan.tuning_steps,
            factors=plan.rate_factors,
            work=work,
            device=device,
            start=places.get((line.unit, line.way)),  # lines of one kind end near each other
        )
        places[line.unit, line.way] = best.place
        for repetition in range(plan.repetitions):
            found = run(
                task,
                line,
                best.schedule,
                best.setting,
                repetition=repetition,
                evaluations=plan.evaluations,
                work=work,
                device=device,
            )
            told.append(replace(found, tried=best.tried, whole=best.whole))
            report(
                f"{number}/{len(lines)} {line.label}: {found.reached:.4f} (q = {found.q:g}, σ = {found.sigma:.3g}, "
                f"α = {found.step:.3g}, ρ = {found.rho:g}, true ε ≤ {rounded_up(found.true_up)}, "
                f"{found.seconds / found.steps:.3f} s a step)"
            )
    return told
