"""What element level gains over user level at the same true ε, and where the gain ends."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elementdp.companion.experiments.bars import Z_95
from elementdp.companion.experiments.images.comparison import standard_error
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.variants import Accounting
from elementdp.privacy import Unit


@dataclass(frozen=True)
class Advantage:
    """Best accuracies of two private variants and the non-private one, for the same users at the same true ε."""

    epsilon: float
    k: int
    clusters: int
    users: int
    element: float
    user: float
    plain: float  # nan where there is no such run
    sampled: float  # element level with whole users sampled; nan likewise
    standard_error: float  # of element - user
    sampled_error: float  # of sampled - user

    @property
    def gain(self) -> float:
        """How far element level is ahead."""
        return self.element - self.user

    @property
    def sampled_loses(self) -> bool:
        """Whether element level with whole users sampled is clearly behind user level."""
        return self.user - self.sampled > Z_95 * self.sampled_error


def advantages(results: Sequence[RunResult], tests: int) -> list[Advantage]:
    """One row for each (ε, k, K, n) with both private variants at a true ε, by ε, n, K and falling k.

    Standard errors are over repetitions where there are any, else those of an accuracy on ``tests`` photos.
    """
    groups: dict[tuple[str, str, float, tuple[int, int, int]], list[float]] = {}
    for result in results:
        place = (result.accounting, result.unit, result.epsilon, (result.users, result.clusters, result.k))
        groups.setdefault(place, []).append(result.reached)
    found = []
    for (accounting, unit, epsilon, who), reached in groups.items():
        other = groups.get((Accounting.TRUE, Unit.USER, epsilon, who))
        if accounting != Accounting.PAIRS or other is None:
            continue
        plain = groups.get((Accounting.NONE, unit, math.inf, who), [math.nan])
        sampled = groups.get((Accounting.TRUE, unit, epsilon, who), [math.nan])
        users, clusters, k = who
        means = {
            name: float(np.mean(values))
            for name, values in (("element", reached), ("user", other), ("plain", plain), ("sampled", sampled))
        }
        spreads = [math.hypot(_error(values, tests), _error(other, tests)) for values in (reached, sampled)]
        found.append(
            Advantage(epsilon, k, clusters, users, **means, standard_error=spreads[0], sampled_error=spreads[1])
        )
    return sorted(found, key=lambda row: (-row.epsilon, -row.users, -row.clusters, -row.k))


def _error(values: Sequence[float], tests: int) -> float:
    if len(values) == 1:
        return standard_error(values[0], tests)
    return float(np.std(values, ddof=1)) / math.sqrt(len(values))


def rates_tried(results: Sequence[RunResult], passes: float) -> list[tuple[str, str, float, int, float, float | str]]:
    """What tuning the rate saw, in whole runs on held-out users: variant, k/K, q, T and two accuracies (%).

    The first decided between the rates, with the step size that did best in short tries; the second, at the rate that
    was taken, is with the step size that did best in whole runs. All had the work of ``passes`` over the data, so T
    is that divided by q.
    """
    first = {(one.accounting, one.unit, one.epsilon, one.k, one.clusters, one.users): one for one in reversed(results)}
    return [
        (
            one.kind,
            f"{one.k}/{one.clusters}",
            rate,
            max(1, round(passes / rate)),
            100 * next(reached for _, _, reached, q in one.whole if q == rate),
            100 * max(reached for _, _, reached, q in one.whole if q == rate) if rate == one.q else "–",
        )
        for one in reversed(first.values())
        for rate in sorted({q for *_, q in one.whole})
    ]
