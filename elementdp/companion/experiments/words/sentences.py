"""Every sentence of Section 4.1 that a run can settle, settled from the points of one run."""

import itertools
import math
from collections.abc import Sequence

from scipy import stats

from elementdp.companion.experiments.sentence import Sentence
from elementdp.companion.experiments.words.figure import PartitionSummary, WordsPoint, slope
from elementdp.companion.experiments.words.histogram import Sensitivity, true_epsilon
from elementdp.privacy import paper_delta

ROUGHLY_LINEAR = 0.9
"""R² from which we call points on a logarithmic scale "roughly linear"."""

ROUGHLY = 2.0
"""The factor within which we call an exponent "roughly" the predicted one."""


def curve(
    points: Sequence[WordsPoint], epsilon: float, sensitivity: Sensitivity | str, choice: str = "validation"
) -> list[WordsPoint]:
    """The points of one ε, by number of clusters."""
    chosen = [p for p in points if (p.epsilon, p.sensitivity, p.choice) == (epsilon, str(sensitivity), choice)]
    return sorted(chosen, key=lambda p: p.clusters)


def scaling(points: Sequence[WordsPoint], lines: Sequence[PartitionSummary], epsilon: float) -> float:
    """The exponent e of ratio ∝ (max P(c)²)^e at this ε; the paper expects 1."""
    mass = {line.clusters: line.largest_mass for line in lines}
    row = curve(points, epsilon, Sensitivity.PRINTED)
    x = [2 * math.log10(mass[p.clusters]) for p in row]
    return float(stats.linregress(x, [math.log10(p.ratio) for p in row]).slope)


def sentences(points: Sequence[WordsPoint], lines: Sequence[PartitionSummary], n: int) -> list[Sentence]:
    """The section's sentences against this run; δ = n^(-1.1)."""
    levels = sorted({p.epsilon for p in points})
    return [
        _finer(points, levels, Sensitivity.PRINTED),
        _linear(points, levels),
        _mass(points, lines, levels),
        _private(levels, n),
        _finer(points, levels, Sensitivity.RIGHT),
        _falls(points, levels),
    ]


def _finer(points: Sequence[WordsPoint], levels: Sequence[float], sensitivity: Sensitivity) -> Sentence:
    worse = [
        (epsilon, coarse.clusters, fine.clusters)
        for epsilon in levels
        for coarse, fine in _neighbours(curve(points, epsilon, sensitivity))
        if fine.ratio > coarse.ratio + math.hypot(fine.bar, coarse.bar)
    ]
    top = curve(points, levels[-1], sensitivity)
    times = f"{top[0].ratio / top[-1].ratio:.3g} times less error from K = 1 to K = d at ε = {levels[-1]:g}"
    how = "never worse by more than the error bars" if not worse else f"worse in {len(worse)} steps, first {worse[0]}"
    ends = f"the ratio goes from {top[0].ratio:.4g} to {top[-1].ratio:.4g}; from one K to the next it is {how}"
    repaired = sensitivity is Sensitivity.RIGHT
    said = "Increasingly fine partitions yield better estimators"
    if repaired:
        said += ", with the right sensitivity"
    return Sentence(f"{said}.", times, not worse, repaired, ends)


def _neighbours(row: list[WordsPoint]) -> list[tuple[WordsPoint, WordsPoint]]:
    return list(itertools.pairwise(row))


def _linear(points: Sequence[WordsPoint], levels: Sequence[float]) -> Sentence:
    fits = {}
    for epsilon in levels:
        row = curve(points, epsilon, Sensitivity.PRINTED)
        fits[epsilon] = slope([p.clusters for p in row], [p.ratio for p in row])
    fit = "; ".join(
        f"ε = {epsilon:g}: slope {line.slope:.3f} ± {line.standard_error:.3f}, R² = {line.r_squared:.2f}"
        for epsilon, line in fits.items()
    )
    squares = [line.r_squared for line in fits.values()]
    found = f"R² from {min(squares):.2f} to {max(squares):.2f}; roughly linear is from {ROUGHLY_LINEAR:g} on"
    holds = min(squares) >= ROUGHLY_LINEAR
    return Sentence("For a given ε the separation is roughly linear on a logarithmic scale.", found, holds, more=fit)


def _mass(points: Sequence[WordsPoint], lines: Sequence[PartitionSummary], levels: Sequence[float]) -> Sentence:
    powers = [scaling(points, lines, epsilon) for epsilon in levels]
    finest = min(lines, key=lambda line: line.largest_mass)
    row = curve(points, levels[-1], Sensitivity.PRINTED)
    found = (
        f"{row[0].ratio / row[-1].ratio:.3g} times less error from K = 1 to K = d at ε = {levels[-1]:g}; "
        f"max P(c)² predicts {finest.largest_mass**-2:.3g} times"
    )
    more = (
        f"the error goes as (max P(c)²)^e with e from {min(powers):.3f} to {max(powers):.3f}; answering 0 for every "
        f"word has ratio {finest.zero_ratio:.4g}"
    )
    holds = all(1 / ROUGHLY <= power <= ROUGHLY for power in powers)
    return Sentence("Element-level privacy reduces squared error by roughly max P(c)².", found, holds, more=more)


def _private(levels: Sequence[float], n: int) -> Sentence:
    delta = paper_delta(n)
    really = {epsilon: true_epsilon(epsilon, delta) for epsilon in levels}
    over = [epsilon for epsilon in levels if really[epsilon] > epsilon]
    worst = max(levels, key=lambda epsilon: really[epsilon] / epsilon)
    found = f"printed ε = {worst:g} is really {really[worst]:.3g}"
    more = "; ".join(f"printed {epsilon:g}, really {really[epsilon]:.3g}" for epsilon in levels)
    said = "The noise scaled to ρ gives the ε on the axis (clusters of several words)."
    return Sentence(said, found, not over, more=more)


def _falls(points: Sequence[WordsPoint], levels: Sequence[float]) -> Sentence:
    fits, holds = [], True
    for epsilon in levels:
        row = curve(points, epsilon, Sensitivity.RIGHT)
        line = slope([p.clusters for p in row], [p.ratio for p in row])
        # One-sided 95 % for the number of clusters at hand.
        reach = float(stats.t.ppf(0.95, max(len(row) - 2, 1))) * line.standard_error
        holds &= bool(line.slope + reach < 0)
        fits.append((epsilon, line))
    _, flattest = max(fits, key=lambda fit: fit[1].slope)
    found = f"slope at most {flattest.slope:.3f} ± {flattest.standard_error:.3f}"
    more = "; ".join(f"ε = {epsilon:g}: {line.slope:.3f} ± {line.standard_error:.3f}" for epsilon, line in fits)
    said = "On logarithmic scales the error falls with K at every ε (right sensitivity, fitted slope below 0 at 95 %)."
    return Sentence(said, found, holds, repaired=True, more=more)
