"""The sentences of Section 4.4 against lines that were run; what a run of this size does not decide stays open."""

import math
from collections.abc import Sequence

import numpy as np

from elementdp.experiments.cifar.figure import Z_90
from elementdp.experiments.photos.curves import Told
from elementdp.experiments.photos.lines import Way
from elementdp.experiments.photos.sentences import Open, Row, axis, find, name
from elementdp.experiments.settled import Settled
from elementdp.privacy import Unit


def sentences(told: Sequence[Told]) -> list[Row]:
    """The section's sentences, then ours about equal true ε."""
    element, user = Unit.ELEMENT, Unit.USER
    ks = sorted({line.k for line in told})
    ns = sorted({line.users for line in told})
    most, few = ks[-1], ks[0]
    diverse = find(told, Way.PRINTED, element, 3.0, most)
    base = next((line for line in told if line.way == Way.NONE and line.k == most), None)
    pairs = _all(told, Way.PAIRS, element, most, ns[-1])
    few_users = _all(told, Way.PRINTED, element, most, ns[0]) if len(ns) > 1 else []
    few_elements = _all(told, Way.PRINTED, element, few, ns[-1]) if few != most else []
    printed = _all(told, Way.PRINTED, element, most, ns[-1])
    whole, sampled = _all(told, Way.TRUE, user, most, ns[-1]), _all(told, Way.TRUE, element, most, ns[-1])
    ours = "At the same true ε = 3, "
    return [
        compare("As the sample size n grows, the accuracy improves.", printed, few_users),
        compare("Fewer elements a user, worse performance.", printed, few_elements),
        _gaps(told, base),
        _near(diverse, base),
        axis(told),
        compare(ours + "element level with pairs sampled beats user level.", pairs, whole, repaired=True),
        compare(ours + "sampling pairs beats sampling users.", pairs, sampled, repaired=True),
    ]


def _all(told: Sequence[Told], way: Way, unit: Unit, k: int, users: int) -> list[Told]:
    """Every repetition of a line at ε = 3."""
    wanted = (str(way), str(unit), 3.0, k, users)
    return [line for line in told if (line.way, line.unit, line.epsilon, line.k, line.users) == wanted]


def compare(said: str, better: Sequence[Told], worse: Sequence[Told], *, repaired: bool = False) -> Row:
    """ "``better`` is above ``worse``": settled if so beyond the bars over repetitions; one repetition settles nothing.

    Networks trained from scratch differ from run to run by more than test photos show, so those do not count here.
    """
    if not better or not worse:
        return Open(said, "a line it needs was not run")
    a, b = (np.array([line.reached for line in lines]) for lines in (better, worse))
    found = (
        f"{name(better[0])} reaches {100 * a.mean():.1f} %, {name(worse[0])} {100 * b.mean():.1f} % "
        f"after {better[0].steps:,} steps, repetitions: {len(a)} and {len(b)}"
    )
    if min(len(a), len(b)) < 2:
        return Open(said, found)
    bar = Z_90 * math.hypot(a.std(ddof=1) / math.sqrt(len(a)), b.std(ddof=1) / math.sqrt(len(b)))
    return Settled(said, found, True, repaired) if a.mean() - b.mean() > bar else Open(said, found)


def _gaps(told: Sequence[Told], base: Told | None) -> Row:
    """A gap to a base line that itself has hardly learnt anything yet says nothing about fully trained networks."""
    said = "Every user-level line is at least 15 points worse than non-private training."
    users = [line for line in told if line.unit == Unit.USER]
    if base is None or not users:
        return Open(said, "a line it needs was not run")
    gaps = ", ".join(f"{name(line)}: {100 * (line.reached - base.reached):+.1f} points" for line in users)
    return Open(said, f"{gaps}; after {base.steps:,} steps non-private training is at {100 * base.reached:.1f} % only")


def _near(line: Told | None, base: Told | None) -> Row:
    said = "With ε = 3, n = 8,000 and 30 of 100 elements, element level is nearly equal to non-private training."
    if line is None or base is None:
        return Open(said, "a line it needs was not run")
    gap = line.reached - base.reached
    found = f"{100 * gap:+.1f} points after {line.steps:,} steps, where the legend's ε is really ≥ {line.true_low:.3g}"
    return Open(said, found)
