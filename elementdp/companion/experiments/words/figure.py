"""Figure 2 of the paper: error ratio against ε for every partition, ρ chosen on validation splits or privately."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from elementdp.companion.experiments.bars import PAPER_BAR
from elementdp.companion.experiments.words.corpus import Corpus
from elementdp.companion.experiments.words.histogram import (
    Elements,
    Halves,
    Sensitivity,
    drawn_error,
    expected_error,
    largest_mass,
    noise_scale,
)
from elementdp.companion.theory.counting.histograms import PAPER_RHOS
from elementdp.companion.theory.counting.radius import cluster_masses, rho_for
from elementdp.elements import Clusters
from elementdp.errors import at_least
from elementdp.privacy import paper_delta
from elementdp.privacy.curves import gaussian_mu

PAPER_CLUSTERS = (1, 10, 100, 1_000, 10_000)
"""The paper's K, beside every word its own element."""

STAGE_ONE = 0.1
"""Share of the privacy budget (of μ²) that pays for the private choice of ρ."""

Report = Callable[[str], None]


@dataclass(frozen=True)
class WordsPlan:
    """What is run on a corpus. The paper gives ρ's grid and δ; ε, the splits and the validation are ours."""

    epsilons: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    rhos: tuple[float, ...] = PAPER_RHOS
    validation: int = 5  # splits that choose ρ
    splits: int = 50  # other splits that are reported
    private_splits: int = 10  # of these, how many also choose ρ privately
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("validation", self.validation, 1)
        at_least("splits", self.splits, 2)


@dataclass(frozen=True)
class WordsPoint:
    """One point of the figure: ratio ‖Ĥ - H₀‖²/‖H₁ - H₀‖², averaged over splits."""

    clusters: int
    epsilon: float
    sensitivity: str
    choice: str  # how ρ was chosen: "validation" or "private"
    rho: float
    ratio: float
    standard_error: float
    splits: int

    @property
    def bar(self) -> float:
        """Half the height of the error bar, which is as the paper's."""
        return PAPER_BAR * self.standard_error


@dataclass(frozen=True)
class PartitionSummary:
    """What does not depend on ε: the largest P(c), and the ratio of answering 0 for every word."""

    clusters: int
    largest_mass: float
    zero_ratio: float


def figure(
    corpus: Corpus, partitions: Mapping[int, Clusters], plan: WordsPlan, report: Report = lambda line: None
) -> tuple[list[WordsPoint], list[PartitionSummary]]:
    """Every point of the figure, with both sensitivities and with ρ chosen on validation splits or privately.

    Validation splits are other random halves of the same users, as free of privacy as in the paper; they are never the
    splits that are reported. The noise is drawn anew for every point.
    """
    delta = paper_delta(corpus.n)
    elements = {count: Elements.of(clusters, corpus) for count, clusters in partitions.items()}
    seen = {count: np.zeros((len(plan.rhos), 2)) for count in elements}
    for number in range(plan.validation):
        half = _split(corpus, plan.seed, 0, number)
        for count, part in elements.items():
            seen[count] += half.bias(part, plan.rhos) / plan.validation
    report(f"{plan.validation} validation splits")
    noise = {count: np.random.default_rng([plan.seed, 2, count]) for count in elements}
    settings = {count: _settings(part, seen[count], plan, delta, corpus) for count, part in elements.items()}
    ratios: dict[tuple[int, str, str, float], list[float]] = {}
    radii: dict[tuple[int, str, str, float], list[float]] = {}
    zero = []
    for number in range(plan.splits):
        half = _split(corpus, plan.seed, 1, number)
        zero.append(float(np.square(half.truth).sum()) / half.baseline)
        for count, part in elements.items():
            bias = half.bias(part, plan.rhos)
            runs = [(*key, rho, bias[plan.rhos.index(rho)], sd) for key, rho, sd in settings[count]]
            if number < plan.private_splits:
                runs += _private(part, half, plan, delta, noise[count])
            for sensitivity, choice, epsilon, rho, squares, sd in runs:
                error = float(drawn_error(squares, sd, part.columns(), noise[count]))
                key = (count, sensitivity, choice, epsilon)
                ratios.setdefault(key, []).append(error / half.baseline)
                radii.setdefault(key, []).append(rho)
        report(f"split {number + 1} of {plan.splits}")
    points = [_point(*key, float(np.mean(radii[key])), np.array(ratios[key])) for key in ratios]
    lines = [
        PartitionSummary(count, largest_mass(corpus, part), float(np.mean(zero))) for count, part in elements.items()
    ]
    return points, lines


def _split(corpus: Corpus, seed: int, purpose: int, number: int) -> Halves:
    return Halves.split(corpus, np.random.default_rng([seed, purpose, number]))


_Key = tuple[str, str, float]  # sensitivity, choice, ε


def _settings(
    part: Elements, seen: NDArray[np.float64], plan: WordsPlan, delta: float, corpus: Corpus
) -> list[tuple[_Key, float, NDArray[np.float64]]]:
    """For each sensitivity and ε, the ρ of least expected error on the validation splits, and its noise."""
    rhos = np.array(plan.rhos, dtype=float)
    found = []
    for sensitivity in Sensitivity:
        for epsilon in plan.epsilons:
            users = corpus.n - corpus.n // 2
            sd = noise_scale(rhos, epsilon, delta, users, corpus.m)[:, None] * part.scale(sensitivity)
            best = int(np.argmin(expected_error(seen, sd, part.columns())))
            found.append(((str(sensitivity), "validation", epsilon), plan.rhos[best], sd[best]))
    return found


def _private(
    part: Elements, half: Halves, plan: WordsPlan, delta: float, rng: np.random.Generator
) -> list[tuple[str, str, float, float, NDArray[np.float64], NDArray[np.float64]]]:
    """The two-stage estimator: private cluster masses, ρ from the largest by the proposition, then the histogram.

    Gaussian noise in both stages, μ² split between them, with the right sensitivity.
    """
    masses = cluster_masses(half.sample, part.occurring, half.m)
    unseen = part.whole.count - len(masses)  # clusters no word of which occurs: mass 0, noise all the same
    rhos = []
    for epsilon in plan.epsilons:
        spread = 1 / (half.n * gaussian_mu(epsilon, delta) * math.sqrt(STAGE_ONE))
        noisy = np.concatenate([masses, np.zeros(unseen)]) + spread * rng.normal(size=len(masses) + unseen)
        rhos.append(rho_for(min(max(float(noisy.max()), 0.0), 1.0), half.m, math.log(half.n)))
    bias = half.bias(part, tuple(rhos))
    runs = []
    for epsilon, rho, squares in zip(plan.epsilons, rhos, bias, strict=True):
        mu = gaussian_mu(epsilon, delta) * math.sqrt(1 - STAGE_ONE)
        sd = rho / (half.n * half.m * mu) * part.scale(Sensitivity.RIGHT)
        runs.append((str(Sensitivity.RIGHT), "private", epsilon, rho, squares, sd))
    return runs


def _point(
    count: int, sensitivity: str, choice: str, epsilon: float, rho: float, ratios: NDArray[np.float64]
) -> WordsPoint:
    spread = float(ratios.std(ddof=1) / math.sqrt(len(ratios))) if len(ratios) > 1 else math.nan
    return WordsPoint(count, epsilon, sensitivity, choice, rho, float(ratios.mean()), spread, len(ratios))


@dataclass(frozen=True)
class Slope:
    """A straight line through (log₁₀ K, log₁₀ ratio): how errors fall with the number of elements."""

    slope: float
    standard_error: float
    r_squared: float
    largest_residual: float  # in decades


def slope(clusters: list[int], values: list[float]) -> Slope:
    """Least squares on logarithmic scales, all K with equal weight."""
    x, y = np.log10(clusters), np.log10(values)
    line = stats.linregress(x, y)
    residual = y - line.intercept - line.slope * x
    return Slope(float(line.slope), float(line.stderr), float(line.rvalue**2), float(np.abs(residual).max()))
