"""When one variant is better than another beyond chance, over test photos or over repetitions."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.stats import ttest_ind

from elementdp.companion.experiments.bars import Z_95
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.variants import Accounting
from elementdp.companion.experiments.sentence import Sentence
from elementdp.privacy import Unit
from elementdp.privacy.digits import rounded_down, rounded_up

MISSING = "a variant it needs was not run"


def standard_error(accuracy: float, tests: int) -> float:
    """Standard error of an accuracy measured on ``tests`` photos."""
    return math.sqrt(max(accuracy * (1 - accuracy), 0.25 / tests) / tests)


def name(result: RunResult) -> str:
    """A variant in words."""
    if not result.private:
        return f"non-private {result.k}/{result.clusters}"
    return f"{result.unit}-level {result.accounting}, ε = {result.epsilon:g}, {result.k}/{result.clusters}"


def lengths(results: Sequence[RunResult]) -> str:
    """How long runs are, for equal work: variants with rates of their own have different numbers of steps."""
    return " and ".join(f"{count:,}" for count in dict.fromkeys(one.iterations[-1] for one in results)) + " steps"


def decided(gap: float, bar: float, whole: bool) -> bool | None:
    """Whether a gap is positive: so if it is beyond its bar; not so only in runs as long as the paper's; else open."""
    if gap > bar:
        return True
    return False if whole and -gap > bar else None


def chain(
    said: str, results: Sequence[RunResult | None], tests: int, *, repaired: bool = False, whole: bool = False
) -> Sentence:
    """ "From first to last it falls": so if the ends are further apart than chance in ``tests`` photos explains.

    Neighbours in between may be within chance of each other, but none may be clearly the other way round. Runs that
    are not ``whole``, that is, shorter than the paper's, refute nothing.
    """
    ran = [one for one in results if one is not None]
    if len(ran) < max(2, len(results)):
        return Sentence(said, MISSING, None, repaired)

    def apart(a: RunResult, b: RunResult) -> tuple[float, float]:
        return a.reached - b.reached, Z_95 * math.hypot(*(standard_error(one.reached, tests) for one in (a, b)))

    gap, bar = apart(ran[0], ran[-1])
    turned = any(-step > reach for step, reach in (apart(*pair) for pair in pairwise(ran)))
    holds = None if turned and gap > bar else decided(gap, bar, whole)
    more = ", ".join(f"{name(one)}: {100 * one.reached:.1f} %" for one in ran) + f"; {lengths(ran)}"
    if holds is None and gap > 0:
        needed = rounded_up(tests * (bar / gap) ** 2, 2)
        more += f"; to tell such a gap from chance takes {float(needed):,.0f} test photos, and there are {tests:,}"
    return Sentence(said, f"{100 * gap:+.1f} ± {100 * bar:.1f} points", holds, repaired, more)


def relative(said: str, gains: Sequence[tuple[RunResult | None, RunResult | None]], tests: int) -> Sentence:
    """ "Element level gains more on user level in the first setting than in the last", over test photos."""
    ran = [one for pair in gains for one in pair if one is not None]
    if len(gains) < 2 or len(ran) < 2 * len(gains):
        return Sentence(said, MISSING, None)
    steps = [element.reached - user.reached for element, user in zip(ran[::2], ran[1::2], strict=True)]
    gap, ends = steps[0] - steps[-1], (*ran[:2], *ran[-2:])
    bar = Z_95 * math.hypot(*(standard_error(one.reached, tests) for one in ends))
    more = "; ".join(
        f"{one.k}/{one.clusters}: {100 * step:+.1f} points" for one, step in zip(ran[::2], steps, strict=True)
    )
    found = f"{100 * gap:+.1f} ± {100 * bar:.1f} points more gain"
    return Sentence(said, found, decided(gap, bar, False), more=f"gain of element level, {more}; {lengths(ran)}")


def difference(
    better: Sequence[RunResult], worse: Sequence[RunResult], spread: float = math.nan
) -> tuple[float, float]:
    """How far the mean of ``better`` is above that of ``worse``, and the half width of Welch's 95 % interval for it.

    Where one of them was run once, chance is that of runs with the standard deviation ``spread``.
    """
    a, b = (np.array([one.reached for one in results]) for results in (better, worse))
    gap = float(a.mean() - b.mean())
    if min(len(a), len(b)) == 1:
        return gap, Z_95 * spread * math.sqrt(1 / len(a) + 1 / len(b))
    if np.ptp(a) == np.ptp(b) == 0:
        return gap, 0.0
    low, high = ttest_ind(a, b, equal_var=False).confidence_interval(0.95)  # few runs: their spread is uncertain too
    return gap, float(high - low) / 2


def repeated(
    said: str,
    better: Sequence[RunResult],
    worse: Sequence[RunResult],
    *,
    repaired: bool = False,
    spread: float = math.nan,
    whole: bool = False,
) -> Sentence:
    """ "``better`` is above ``worse``": so if it is beyond chance over repetitions.

    Networks trained from scratch differ from run to run by more than test photos show, so those do not count here. A
    single run settles nothing unless the ``spread`` of other, like runs is known, a standard deviation.
    """
    if not better or not worse:
        return Sentence(said, MISSING, None, repaired)
    a, b = (np.array([one.reached for one in results]) for results in (better, worse))
    crowds = better[0].users != worse[0].users
    names = [name(one) + (f", n = {one.users:,}" if crowds else "") for one in (better[0], worse[0])]
    more = (
        f"{names[0]}: {100 * a.mean():.1f} %, {names[1]}: {100 * b.mean():.1f} %; "
        f"{lengths([better[0], worse[0]])}; repetitions: {len(a)} and {len(b)}; ± is over runs, on the same test photos"
    )
    gap, bar = difference(better, worse, spread)
    if math.isnan(bar):
        return Sentence(said, f"{100 * gap:+.1f} points, from one run", None, repaired, more)
    return Sentence(said, f"{100 * gap:+.1f} ± {100 * bar:.1f} points", decided(gap, bar, whole), repaired, more)


def legend_epsilon(results: Sequence[RunResult]) -> Sentence:
    """Whether the legend's ε is the ε the printed element-level runs have. Accounting, so no run is too short."""
    said = "The legend's ε is the element-level ε of the run."
    printed = [one for one in results if one.accounting == Accounting.PRINTED and one.unit == Unit.ELEMENT]
    variants = list({(one.epsilon, one.k, one.clusters, one.users): one for one in printed}.values())
    if not variants:
        return Sentence(said, MISSING, None)
    broken = [one for one in variants if one.true_low > one.epsilon]
    worst = max(variants, key=lambda one: one.true_low / one.epsilon)
    found = f"the legend says {worst.epsilon:g}, the run has at least {rounded_down(worst.true_low)}"
    more = f"{len(broken)} of {len(variants)} printed element-level curves have a larger ε than the legend says"
    return Sentence(said, found, not broken, more=more)
