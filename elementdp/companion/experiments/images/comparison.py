"""When one variant is better than another beyond chance, over test photos or over repetitions."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.stats import t as student

from elementdp.companion.experiments.bars import PAPER_BAR, Z_95
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.variants import Accounting
from elementdp.companion.experiments.sentence import Sentence
from elementdp.privacy import Unit
from elementdp.privacy.digits import rounded_down

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


def chain(said: str, results: Sequence[RunResult | None], tests: int, *, repaired: bool = False) -> Sentence:
    """ "Each is above the next": so if all are beyond what chance in ``tests`` photos explains, else open.

    A run shorter than the paper's refutes nothing.
    """
    ran = [one for one in results if one is not None]
    if len(ran) < max(2, len(results)):
        return Sentence(said, MISSING, None, repaired)
    found = ", ".join(f"{name(one)} reaches {100 * one.reached:.1f} %" for one in ran) + f" after {lengths(ran)}"
    errors = [standard_error(one.reached, tests) for one in ran]
    apart = [a.reached - b.reached for a, b in pairwise(ran)]
    clear = all(gap > Z_95 * math.hypot(*pair) for gap, pair in zip(apart, pairwise(errors), strict=True))
    return Sentence(said, found, clear or None, repaired)


def repeated(said: str, better: Sequence[RunResult], worse: Sequence[RunResult], *, repaired: bool = False) -> Sentence:
    """ "``better`` is above ``worse``": so if it is beyond chance over repetitions; one repetition settles nothing.

    Networks trained from scratch differ from run to run by more than test photos show, so those do not count here.
    """
    if not better or not worse:
        return Sentence(said, MISSING, None, repaired)
    a, b = (np.array([one.reached for one in results]) for results in (better, worse))
    crowds = better[0].users != worse[0].users
    names = [name(one) + (f", n = {one.users:,}" if crowds else "") for one in (better[0], worse[0])]
    found = (
        f"{names[0]} reaches {100 * a.mean():.1f} %, {names[1]} {100 * b.mean():.1f} % "
        f"after {lengths([better[0], worse[0]])}, repetitions: {len(a)} and {len(b)}"
    )
    fewest = min(len(a), len(b))
    if fewest < 2:
        return Sentence(said, found, None, repaired)
    quantile = float(student.ppf(0.95, fewest - 1))  # few repetitions: their spread is uncertain itself
    bar = quantile * math.hypot(a.std(ddof=1) / math.sqrt(len(a)), b.std(ddof=1) / math.sqrt(len(b)))
    clear = bool(a.mean() - b.mean() > bar)
    return Sentence(said, found, clear or None, repaired)


def legend_epsilon(results: Sequence[RunResult]) -> Sentence:
    """Whether the legend's ε is the ε the printed element-level runs have. Accounting, so no run is too short."""
    said = "The legend's ε is the element-level ε of the run."
    printed = [one for one in results if one.accounting == Accounting.PRINTED and one.unit == Unit.ELEMENT]
    variants = list({(one.epsilon, one.k, one.clusters, one.users): one for one in printed}.values())
    if not variants:
        return Sentence(said, MISSING, None)
    broken = [one for one in variants if one.true_low > one.epsilon]
    worst = max(variants, key=lambda one: one.true_low / one.epsilon)
    found = (
        f"{len(broken)} of {len(variants)} printed element-level curves have a larger ε; "
        f"the legend says {worst.epsilon:g}, the run has at least {rounded_down(worst.true_low)}"
    )
    return Sentence(said, found, not broken)


def gap(mine: Sequence[RunResult], results: Sequence[RunResult]) -> tuple[float, float] | None:
    """Best accuracy minus that of non-private training on the same users, repetition by repetition: mean and bar.

    The bar is nan for a single repetition; None where the non-private variant was not run.
    """
    same = {
        one.repetition: one.reached
        for one in results
        if not one.private and (one.k, one.users) == (mine[0].k, mine[0].users)
    }
    found = np.array([one.reached - same[one.repetition] for one in mine if one.repetition in same])
    if not len(found):
        return None
    spread = PAPER_BAR * found.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return float(found.mean()), float(spread)
