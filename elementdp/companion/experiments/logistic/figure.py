"""Figure 3 of the paper: tune q, α₀ and ρ for every line and ε, then report fresh repetitions at the best setting."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from elementdp.companion.experiments.bars import PAPER_BAR
from elementdp.companion.experiments.logistic.iteration import CellBatch, iterate
from elementdp.companion.experiments.logistic.model import ClipGroups, Design, SimulatedUsers, draw
from elementdp.companion.experiments.logistic.noise import (
    PAPER,
    LogisticMethod,
    correlation_for,
    noise_for,
    true_epsilon,
)
from elementdp.errors import ArgumentError, at_least

NO_CLIP = 1e6
"""ρ of the non-private line: no update is that long (‖x‖ ≤ 2)."""

NO_PRIVACY = float("inf")
"""ε of the non-private line."""


@dataclass(frozen=True)
class LogisticPlan:
    """What is run. The defaults are the paper's where it says, our choice where it does not (q, α₀, ρ, ε grids)."""

    design: Design = field(default_factory=Design)
    diversities: tuple[int, ...] = (2, 5, 8)  # k, elements a user
    epsilons: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0, 3.0, 8.0)
    rates: tuple[float, ...] = (0.02, 0.05, 0.2)  # q
    steps: tuple[float, ...] = (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6)  # α₀
    clips: tuple[float, ...] = (0.1, 0.3, 1.0)  # ρ
    tuning: int = 6  # repetitions that choose the setting
    screening: int = 2  # of these, how many every setting gets; the rest only the best few of them
    repetitions: int = 50  # other repetitions that are reported
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("tuning", self.tuning, 1)
        at_least("repetitions", self.repetitions, 2)
        for name in ("diversities", "epsilons", "rates", "steps", "clips"):
            if not getattr(self, name):
                raise ArgumentError(name, (), "at least one value")


@dataclass(frozen=True, order=True)
class GridCell:
    """One cell of the tuning grid; σ follows from the method, q and ε."""

    k: int
    method: LogisticMethod
    epsilon: float
    q: float
    step: float
    clip: float
    sigma: float


@dataclass(frozen=True)
class LogisticPoint:
    """One point of the figure: its tuned setting, the error, and the ε the run really has (None: no privacy)."""

    k: int
    method: str
    epsilon: float
    q: float
    step: float
    clip: float
    sigma: float
    estimate: str  # "last" or "averaged"
    true_low: float
    true_up: float
    error: float
    standard_error: float
    repetitions: int
    tuned_error: float

    @property
    def bar(self) -> float:
        """Half the height of the error bar, which is as the paper's."""
        return PAPER_BAR * self.standard_error


KEPT = 4
"""Settings of each line, ε and q that pass the screening, for each estimate."""

ESTIMATES = ("last", "averaged")
Report = Callable[[str], None]


def grid(plan: LogisticPlan, k: int, methods: Iterable[LogisticMethod] = PAPER) -> list[GridCell]:
    """Every setting that is tried for users with k elements."""
    cells: list[GridCell] = []
    for method in methods:
        private = method is not LogisticMethod.NON_PRIVATE
        levels = plan.epsilons if private else (NO_PRIVACY,)
        clips = plan.clips if private else (NO_CLIP,)
        for epsilon, q in itertools.product(levels, plan.rates):
            sigma = noise_for(method, plan.design, q, epsilon)
            pairs = itertools.product(plan.steps, clips)
            cells += [GridCell(k, method, epsilon, q, step, clip, sigma) for step, clip in pairs]
    return cells


def run_settings(plan: LogisticPlan, settings: list[GridCell], repetition: int) -> NDArray[np.float64]:
    """‖θ̂ - θ*‖ of every setting (all with the same k) on one fresh draw of the model: 2 × settings.

    Settings that sample alike share their subsamples and are advanced together.
    """
    k = settings[0].k
    sample = draw(plan.design, k, np.random.default_rng([plan.seed, repetition, k]))
    errors = np.empty((len(ESTIMATES), len(settings)))
    for number, (indices, groups, first) in enumerate(_streams(settings, sample)):
        chosen = [settings[index] for index in indices]
        cells = CellBatch(
            np.array([cell.step for cell in chosen]),
            np.array([cell.sigma for cell in chosen]),
            np.array([cell.clip for cell in chosen]),
        )
        seed = int(np.random.SeedSequence([plan.seed, repetition, k, number]).generate_state(1)[0])
        correlation = correlation_for(first.method, plan.design, first.q)
        found = iterate(groups, cells, first.q, first.method.sampler, plan.design.steps, seed, correlation)
        errors[:, indices] = found.errors(sample.theta)
    return errors


def _streams(settings: list[GridCell], sample: SimulatedUsers) -> Iterator[tuple[list[int], ClipGroups, GridCell]]:
    streams: dict[tuple[bool, str, float, bool], list[int]] = {}
    for index, cell in enumerate(settings):
        correlated = cell.method is LogisticMethod.ELEMENT_CORRELATED
        streams.setdefault((cell.method.clips_users, cell.method.sampler, cell.q, correlated), []).append(index)
    by_element, by_user = sample.by_element(), sample.by_user()
    for (whole, *_), indices in sorted(streams.items()):
        yield indices, by_user if whole else by_element, settings[indices[0]]


def _repeat(job: tuple[LogisticPlan, list[GridCell], int]) -> NDArray[np.float64]:
    import torch

    torch.set_num_threads(1)  # the repetitions are spread over the processors, not the sums
    return run_settings(*job)


def _all(
    plan: LogisticPlan, settings: list[GridCell], repetitions: range, pool: ProcessPoolExecutor | None
) -> NDArray[np.float64]:
    jobs = [(plan, settings, repetition) for repetition in repetitions]
    return np.stack(list(pool.map(_repeat, jobs) if pool else map(_repeat, jobs)))


@dataclass(frozen=True)
class Rate:
    """What q changes: the error at the best α₀ and ρ for this q (tuning repetitions), and the ε the run really has."""

    k: int
    method: str
    epsilon: float
    q: float
    sigma: float
    error: float
    true_low: float
    true_up: float


def figure(
    plan: LogisticPlan,
    workers: int = 1,
    report: Report = lambda line: None,
    methods: tuple[LogisticMethod, ...] = PAPER,
) -> tuple[list[LogisticPoint], list[Rate]]:
    """Every point of the figure, for the last iterate and for the average of the second half of the iterates.

    Settings are chosen on ``plan.tuning`` repetitions and reported on other ones: the reported error is not the
    minimum that chose it.
    """
    pool = ProcessPoolExecutor(workers) if workers > 1 else None
    try:
        parts = [_lines(plan, k, methods, pool, report) for k in plan.diversities]
        return [point for points, _ in parts for point in points], [rate for _, rates in parts for rate in rates]
    finally:
        if pool:
            pool.shutdown()


def _lines(
    plan: LogisticPlan, k: int, methods: tuple[LogisticMethod, ...], pool: ProcessPoolExecutor | None, report: Report
) -> tuple[list[LogisticPoint], list[Rate]]:
    settings = grid(plan, k, methods)
    report(f"k = {k}: noise calibrated")
    tuned = _tuned(plan, settings, pool)
    report(f"k = {k}: tuned over {len(settings)} settings")
    best: dict[tuple[str, LogisticMethod, float], int] = {}
    for row, estimate in enumerate(ESTIMATES):
        for index, cell in enumerate(settings):
            key = (estimate, cell.method, cell.epsilon)
            if key not in best or tuned[row, index] < tuned[row, best[key]]:
                best[key] = index
    chosen = sorted(set(best.values()))
    kept = [settings[index] for index in chosen]
    fresh = _all(plan, kept, range(plan.tuning, plan.tuning + plan.repetitions), pool)
    report(f"k = {k}: {plan.repetitions} repetitions of {len(kept)} settings")
    points = []
    for (estimate, _, _), index in best.items():
        row = ESTIMATES.index(estimate)
        errors = fresh[:, row, chosen.index(index)]
        points.append(_point(plan, settings[index], estimate, errors, float(tuned[row, index])))
    return points, _rates(plan, settings, tuned[0])


def _tuned(plan: LogisticPlan, settings: list[GridCell], pool: ProcessPoolExecutor | None) -> NDArray[np.float64]:
    """Mean errors over the tuning repetitions, 2 × settings; infinite for settings that did not pass the screening."""
    screened = min(plan.screening, plan.tuning)
    first = _all(plan, settings, range(screened), pool)
    if screened == plan.tuning:
        return np.asarray(first.mean(axis=0))
    lots: dict[tuple[LogisticMethod, float, float], list[int]] = {}
    for index, cell in enumerate(settings):
        lots.setdefault((cell.method, cell.epsilon, cell.q), []).append(index)
    ranked = first.mean(axis=0)
    passed = sorted({i for row in ranked for lot in lots.values() for i in sorted(lot, key=row.__getitem__)[:KEPT]})
    rest = _all(plan, [settings[index] for index in passed], range(screened, plan.tuning), pool)
    tuned = np.full(ranked.shape, np.inf)
    tuned[:, passed] = np.concatenate([first[:, :, passed], rest]).mean(axis=0)
    return tuned


def _rates(plan: LogisticPlan, settings: list[GridCell], tuned: NDArray[np.float64]) -> list[Rate]:
    best: dict[tuple[LogisticMethod, float, float], tuple[float, GridCell]] = {}
    for cell, error in zip(settings, tuned, strict=True):
        key = (cell.method, cell.epsilon, cell.q)
        best[key] = min(best.get(key, (np.inf, cell)), (float(error), cell))
    return [
        Rate(cell.k, str(cell.method), cell.epsilon, cell.q, cell.sigma, error, *_true(plan, cell))
        for error, cell in best.values()
    ]


def _true(plan: LogisticPlan, cell: GridCell) -> tuple[float, float]:
    """The least and the most the run's ε can be."""
    if cell.method is LogisticMethod.NON_PRIVATE:
        return NO_PRIVACY, NO_PRIVACY
    band = true_epsilon(cell.method, plan.design, cell.q, cell.sigma)
    return band.low, band.up


def _point(
    plan: LogisticPlan, cell: GridCell, estimate: str, errors: NDArray[np.float64], tuned: float
) -> LogisticPoint:
    low, up = _true(plan, cell)
    return LogisticPoint(
        **{**asdict(cell), "method": str(cell.method)},
        estimate=estimate,
        true_low=low,
        true_up=up,
        error=float(errors.mean()),
        standard_error=float(errors.std(ddof=1) / np.sqrt(len(errors))),
        repetitions=len(errors),
        tuned_error=tuned,
    )
