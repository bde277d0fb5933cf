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
    ends = f"at ε = {levels[-1]:g} the ratio goes from {top[0].ratio:.4g} (K = 1) to {top[-1].ratio:.4g} (K = d)"
    how = "never worse by more than the error bars" if not worse else f"worse in {len(worse)} steps, first {worse[0]}"
    repaired = sensitivity is Sensitivity.RIGHT
    said = "Increasingly fine partitions yield better estimators"
    if repaired:
        said += ", with the right sensitivity"
    return Sentence(f"{said}.", f"{how}; {ends}", not worse, repaired)


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
    holds = all(line.r_squared >= ROUGHLY_LINEAR for line in fits.values())
    return Sentence("For a given ε the separation is roughly linear on a logarithmic scale.", fit, holds)


def _mass(points: Sequence[WordsPoint], lines: Sequence[PartitionSummary], levels: Sequence[float]) -> Sentence:
    powers = [scaling(points, lines, epsilon) for epsilon in levels]
    finest = min(lines, key=lambda line: line.largest_mass)
    row = curve(points, levels[-1], Sensitivity.PRINTED)
    found = (
        f"the error goes as (max P(c)²)^e with e from {min(powers):.3f} to {max(powers):.3f}; from K = 1 to K = d "
        f"max P(c)² predicts {finest.largest_mass**-2:.3g} times less error, measured at ε = {levels[-1]:g}: "
        f"{row[0].ratio / row[-1].ratio:.3g} times; answering 0 for every word has ratio {finest.zero_ratio:.4g}"
    )
    holds = all(1 / ROUGHLY <= power <= ROUGHLY for power in powers)
    return Sentence("Element-level privacy reduces squared error by roughly max P(c)².", found, holds)


def _private(levels: Sequence[float], n: int) -> Sentence:
    delta = paper_delta(n)
    really = {epsilon: true_epsilon(epsilon, delta) for epsilon in levels}
    over = [epsilon for epsilon in levels if really[epsilon] > epsilon]
    found = "; ".join(f"printed ε = {epsilon:g}, really {really[epsilon]:.3g}" for epsilon in levels)
    return Sentence("The noise scaled to ρ gives the ε on the axis (clusters of several words).", found, not over)


def _falls(points: Sequence[WordsPoint], levels: Sequence[float]) -> Sentence:
    found, holds = [], True
    for epsilon in levels:
        row = curve(points, epsilon, Sensitivity.RIGHT)
        line = slope([p.clusters for p in row], [p.ratio for p in row])
        # One-sided 95 % for the number of clusters at hand.
        reach = float(stats.t.ppf(0.95, max(len(row) - 2, 1))) * line.standard_error
        holds &= bool(line.slope + reach < 0)
        found.append(f"ε = {epsilon:g}: {line.slope:.3f} ± {line.standard_error:.3f}")
    said = "On logarithmic scales the error falls with K at every ε (right sensitivity, fitted slope below 0 at 95 %)."
    return Sentence(said, "; ".join(found), holds, repaired=True)
