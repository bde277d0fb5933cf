"""The sentences of Section 4.4 against lines that were run; what a run of this size does not decide stays open."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import t as student

from elementdp.companion.experiments.cifar.figure import Z_90
from elementdp.companion.experiments.photos.curves import Told
from elementdp.companion.experiments.photos.lines import Way
from elementdp.companion.experiments.photos.sentences import Open, Row, axis, lengths, name
from elementdp.companion.experiments.settled import Settled
from elementdp.privacy import Unit
from elementdp.privacy.digits import rounded_down


def sentences(told: Sequence[Told], fair: Sequence[Told] = ()) -> list[Row]:
    """The section's sentences, then ours about equal true ε, by ``fair`` lines, each at its own rate, if there are."""
    element, user = Unit.ELEMENT, Unit.USER
    ks = sorted({line.k for line in told})
    ns = sorted({line.users for line in told})
    most, few = ks[-1], ks[0]
    few_users = _all(told, Way.PRINTED, element, most, ns[0]) if len(ns) > 1 else []
    few_elements = _all(told, Way.PRINTED, element, few, ns[-1]) if few != most else []
    printed = _all(told, Way.PRINTED, element, most, ns[-1])
    pairs, whole, sampled = (
        _all(fair or told, way, unit, most, ns[-1])
        for way, unit in ((Way.PAIRS, element), (Way.TRUE, user), (Way.TRUE, element))
    )
    ours = "At the same true ε = 3, " + ("each at its own rate, " if fair else "all at one rate, ")
    return [
        compare("As the sample size n grows, the accuracy improves.", printed, few_users),
        compare("Fewer elements a user, worse performance.", printed, few_elements),
        _gaps(told),
        _near(printed, told),
        axis(told),
        compare(ours + "element level with pairs sampled beats user level.", pairs, whole, repaired=True),
        compare(ours + "sampling pairs beats sampling users.", pairs, sampled, repaired=True),
        compare(ours + "user level beats element level with users sampled.", whole, sampled, repaired=True),
    ]


def _all(told: Sequence[Told], way: Way, unit: Unit, k: int, users: int) -> list[Told]:
    """Every repetition of a line at ε = 3."""
    wanted = (str(way), str(unit), 3.0, k, users)
    return [line for line in told if (line.way, line.unit, line.epsilon, line.k, line.users) == wanted]


def compare(said: str, better: Sequence[Told], worse: Sequence[Told], *, repaired: bool = False) -> Row:
    """ "``better`` is above ``worse``": settled if so beyond chance over repetitions; one repetition settles nothing.

    Networks trained from scratch differ from run to run by more than test photos show, so those do not count here.
    """
    if not better or not worse:
        return Open(said, "a line it needs was not run")
    a, b = (np.array([line.reached for line in lines]) for lines in (better, worse))
    crowds = better[0].users != worse[0].users
    names = [name(line) + (f", n = {line.users:,}" if crowds else "") for line in (better[0], worse[0])]
    found = (
        f"{names[0]} reaches {100 * a.mean():.1f} %, {names[1]} {100 * b.mean():.1f} % "
        f"after {lengths([better[0], worse[0]])}, repetitions: {len(a)} and {len(b)}"
    )
    if min(len(a), len(b)) < 2:
        return Open(said, found)
    quantile = float(student.ppf(0.95, min(len(a), len(b)) - 1))  # few repetitions: their spread is uncertain itself
    bar = quantile * math.hypot(a.std(ddof=1) / math.sqrt(len(a)), b.std(ddof=1) / math.sqrt(len(b)))
    return Settled(said, found, True, repaired) if a.mean() - b.mean() > bar else Open(said, found)


def gap(lines: Sequence[Told], told: Sequence[Told]) -> tuple[float, float] | None:
    """Best accuracy minus that of non-private training on the same users, repetition by repetition: mean and bar.

    The bar is nan for a single repetition; None where the non-private line was not run.
    """
    same = {
        line.repetition: line.reached
        for line in told
        if line.way == Way.NONE and (line.k, line.users) == (lines[0].k, lines[0].users)
    }
    found = np.array([line.reached - same[line.repetition] for line in lines if line.repetition in same])
    if not len(found):
        return None
    spread = Z_90 * found.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return float(found.mean()), float(spread)


def _gaps(told: Sequence[Told]) -> Row:
    """A gap to a base line that is still learning says nothing about fully trained networks."""
    said = "Every user-level line is at least 15 points worse than non-private training."
    lines: dict[tuple[object, ...], list[Told]] = {}
    for line in told:
        if line.unit == Unit.USER and line.way != Way.NONE:
            lines.setdefault((line.way, line.epsilon, line.k, line.users), []).append(line)
    gaps = {name(some[0]) + f", n = {some[0].users:,}": gap(some, told) for some in lines.values()}
    known = {which: found[0] for which, found in gaps.items() if found is not None}
    if not known:
        return Open(said, "a line it needs was not run")
    behind = sum(value <= -0.15 for value in known.values())
    nearest, furthest = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
    return Open(
        said,
        f"{behind} of {len(known)} such lines are after {told[0].steps:,} steps; from {100 * known[furthest]:+.1f} "
        f"points ({furthest}) to {100 * known[nearest]:+.1f} ({nearest})",
    )


def _near(lines: Sequence[Told], told: Sequence[Told]) -> Row:
    said = "With ε = 3, n = 8,000 and 30 of 100 elements, element level is nearly equal to non-private training."
    found = gap(lines, told) if lines else None
    if found is None:
        return Open(said, "a line it needs was not run")
    mean, bar = found
    text = f"{100 * mean:+.1f}" + ("" if math.isnan(bar) else f" ± {100 * bar:.1f}")
    return Open(
        said,
        f"{text} points after {lines[0].steps:,} steps, "
        f"where the legend's ε is really ≥ {rounded_down(lines[0].true_low)}",
    )
