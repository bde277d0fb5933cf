"""Every sentence of Section 4.2 that a run can settle, settled from the points of one run."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from elementdp.companion.experiments.logistic.figure import LogisticPoint, Rate
from elementdp.companion.experiments.logistic.noise import LogisticMethod
from elementdp.companion.experiments.sentence import Sentence
from elementdp.privacy.digits import rounded_down

LITTLE = 0.15
"""The mean relative change between the least and the most diverse users up to which we say "little change"."""


def line(
    points: Sequence[LogisticPoint], method: LogisticMethod, k: int, estimate: str = "last"
) -> list[LogisticPoint]:
    """One line of the figure, by ε."""
    chosen = [p for p in points if (p.method, p.k, p.estimate) == (str(method), k, estimate)]
    return sorted(chosen, key=lambda p: p.epsilon)


def sentences(points: Sequence[LogisticPoint], rates: Sequence[Rate], estimate: str = "last") -> list[Sentence]:
    """The section's sentences against this run."""
    return [
        _diverse(points, LogisticMethod.ELEMENT_PRINTED, estimate),
        _user(points, estimate),
        _baseline(points, estimate),
        _faster(points, LogisticMethod.ELEMENT_PRINTED, estimate),
        _axis(rates),
        _diverse_where_it_matters(points, estimate),
        _no_dearer(points, estimate),
    ]


def _ks(points: Sequence[LogisticPoint]) -> list[int]:
    return sorted({p.k for p in points})


def _exceeds(a: LogisticPoint, b: LogisticPoint) -> bool:
    """Whether a's error is above b's by more than the error bars."""
    return a.error - b.error > math.hypot(a.bar, b.bar)


def _columns(
    points: Sequence[LogisticPoint], method: LogisticMethod, estimate: str
) -> dict[float, list[LogisticPoint]]:
    """For each ε, the points of the method by k."""
    ks = _ks(points)
    lines = [line(points, method, k, estimate) for k in ks]
    return {column[0].epsilon: list(column) for column in zip(*lines, strict=True)}


def _numbers(
    columns: Mapping[float, list[LogisticPoint]], value: Callable[[LogisticPoint], float] = lambda p: p.error
) -> str:
    return "; ".join(
        f"ε = {epsilon:g}: " + ", ".join(f"{value(p):.3f}" for p in column) for epsilon, column in columns.items()
    )


def _diverse(points: Sequence[LogisticPoint], method: LogisticMethod, estimate: str) -> Sentence:
    columns = _columns(points, method, estimate)
    good = [epsilon for epsilon, column in columns.items() if _exceeds(column[0], column[-1])]
    bad = [epsilon for epsilon, column in columns.items() if _exceeds(column[-1], column[0])]
    ks = _ks(points)
    found = (
        f"clearly lower for k = {ks[-1]} than for k = {ks[0]} at {len(good)} of {len(columns)} levels of ε, clearly "
        f"higher at {len(bad)}"
    )
    more = f"errors for k = {', '.join(map(str, ks))}: {_numbers(columns)}"
    said = "The more diverse the users' data, the lower the element-private error at a given ε."
    return Sentence(said, found, len(good) == len(columns), more=more)


def _user(points: Sequence[LogisticPoint], estimate: str) -> Sentence:
    """Averaged over ε: each point alone also carries the luck of its tuning."""

    def change(method: LogisticMethod) -> tuple[float, str]:
        ratio = {e: column[-1].error / column[0].error for e, column in _columns(points, method, estimate).items()}
        each = ", ".join(f"{100 * (value - 1):+.0f} % (ε = {epsilon:g})" for epsilon, value in ratio.items())
        mean = math.exp(sum(map(math.log, ratio.values())) / len(ratio)) - 1
        return mean, each

    ks = _ks(points)
    one, words = change(LogisticMethod.USER_PRINTED)
    two, others = change(LogisticMethod.USER_SUMMED)
    found = f"from k = {ks[0]} to {ks[-1]} the error changes by {100 * one:+.0f} % on average over ε"
    more = (
        f"with K = 1: {words}; with the K ∧ M corollary {100 * two:+.0f} % on average: {others}; little change is "
        f"{100 * LITTLE:.0f} % on average"
    )
    said = "User-level private mechanisms change little with diversity."
    return Sentence(said, found, abs(one) <= LITTLE, more=more)


def _baseline(points: Sequence[LogisticPoint], estimate: str) -> Sentence:
    (column,) = _columns(points, LogisticMethod.NON_PRIVATE, estimate).values()
    each = [f"{p.error:.4f} ± {p.bar:.4f} for k = {p.k}" for p in column]
    said = "The more clusters a user has, the better the non-private scheme estimates θ*."
    found = f"error {each[0]}, {each[-1]}"
    return Sentence(said, found, _exceeds(column[0], column[-1]), more=", ".join(each))


def _faster(points: Sequence[LogisticPoint], method: LogisticMethod, estimate: str) -> Sentence:
    base = {p.k: p.error for p in points if p.method == LogisticMethod.NON_PRIVATE and p.estimate == estimate}
    columns = _columns(points, method, estimate)
    ratio = _numbers(columns, lambda p: p.error / base[p.k])
    noisy = [column for column in columns.values() if any(p.error > 1.5 * base[p.k] for p in column)]
    holds = bool(noisy) and all(c[-1].error / base[c[-1].k] < c[0].error / base[c[0].k] for c in noisy)
    more = f"error over non-private error for k = {', '.join(map(str, _ks(points)))}: {ratio}"
    tightest = columns[min(columns)]
    ends = " and ".join(f"{p.error / base[p.k]:.2f} for k = {p.k}" for p in (tightest[0], tightest[-1]))
    found = f"times the non-private error at ε = {min(columns):g}: {ends}"
    said = "The private error reaches the non-private one faster with more clusters."
    return Sentence(said, found, holds, more=more)


def _axis(rates: Sequence[Rate]) -> Sentence:
    printed = [r for r in rates if r.method == LogisticMethod.ELEMENT_PRINTED]
    smallest = min(r.k for r in printed)  # the accounting does not depend on k
    broken = [r for r in printed if r.k == smallest and r.true_low > r.epsilon]
    worst = max(broken, key=lambda r: r.true_low / r.epsilon, default=None)
    cells = sum(r.k == smallest for r in printed)
    found = f"of {cells} pairs (ε, q), {len(broken)} have a true ε above the axis"
    if worst is not None:
        found += (
            f"; at q = {worst.q:g} the axis says {worst.epsilon:g}, the run has at least {rounded_down(worst.true_low)}"
        )
    return Sentence("The moments accountant gives the element-level ε on the axis.", found, not broken)


def _diverse_where_it_matters(points: Sequence[LogisticPoint], estimate: str) -> Sentence:
    columns = _columns(points, LogisticMethod.ELEMENT_REPAIRED, estimate)
    low = {epsilon: column for epsilon, column in columns.items() if epsilon <= min(columns) * 3}
    ks = _ks(points)
    holds = all(_exceeds(column[0], column[-1]) for column in low.values())
    said = (
        "With (user, element) pairs sampled and true ε, the error falls with diversity where privacy limits it "
        f"(ε ≤ {max(low):g}, k = {ks[0]} against {ks[-1]})."
    )
    tightest = columns[min(columns)]
    found = f"error at ε = {min(columns):g}: " + ", ".join(
        f"{p.error:.3f} ± {p.bar:.3f} for k = {p.k}" for p in (tightest[0], tightest[-1])
    )
    more = f"errors for k = {', '.join(map(str, ks))}: {_numbers(columns)}"
    return Sentence(said, found, holds, repaired=True, more=more)


def _no_dearer(points: Sequence[LogisticPoint], estimate: str) -> Sentence:
    claimed = _columns(points, LogisticMethod.ELEMENT_PRINTED, estimate)
    repaired = _columns(points, LogisticMethod.ELEMENT_REPAIRED, estimate)
    dearer = [
        (epsilon, mine.k)
        for epsilon, column in repaired.items()
        for mine, printed in zip(column, claimed[epsilon], strict=True)
        if _exceeds(mine, printed)
    ]
    gain = np.mean([[1 - a.error / b.error for a, b in zip(repaired[e], claimed[e], strict=True)] for e in repaired])
    count = sum(len(column) for column in repaired.values())
    found = f"worse beyond the error bars at {len(dearer)} of {count} points; on average {100 * gain:.0f} % less error"
    said = "Sampling pairs, with a true accountant, costs no accuracy against the printed method at its claimed ε."
    return Sentence(said, found, not dearer, repaired=True)
