"""The sentences of Section 4.4 against lines that were run; what a run of this size does not decide stays open."""

from collections.abc import Sequence

from elementdp.experiments.photos.curves import Told
from elementdp.experiments.photos.lines import Way
from elementdp.experiments.photos.sentences import Open, Row, axis, compare, find, name
from elementdp.privacy import Unit


def sentences(told: Sequence[Told], tests: int) -> list[Row]:
    """The section's sentences, then ours about equal true ε; ``tests`` photos measured each accuracy."""
    element, user = Unit.ELEMENT, Unit.USER
    ks = sorted({line.k for line in told})
    ns = sorted({line.users for line in told})
    most, few = ks[-1], ks[0]
    diverse = find(told, Way.PRINTED, element, 3.0, most)
    base = next((line for line in told if line.way == Way.NONE and line.k == most), None)
    grown = [line for line in told if (line.way, line.unit, line.k) == (Way.PRINTED, element, most)]
    rows = [
        compare(
            "As the sample size n grows, the accuracy improves.",
            next((line for line in grown if line.users == ns[-1]), None),
            next((line for line in grown if line.users == ns[0]), None) if len(ns) > 1 else None,
            tests,
        ),
        compare(
            "Fewer elements a user, worse performance.",
            diverse,
            find(told, Way.PRINTED, element, 3.0, few) if few != most else None,
            tests,
        ),
        _gaps(told, base),
        _near(diverse, base),
        axis(told),
    ]
    pairs = find(told, Way.PAIRS, element, 3.0, most)
    said = "At the same true ε = 3, element level with pairs sampled beats user level."
    rows.append(compare(said, pairs, find(told, Way.TRUE, user, 3.0, most), tests, repaired=True))
    said = "At the same true ε = 3, sampling pairs beats sampling users."
    rows.append(compare(said, pairs, find(told, Way.TRUE, element, 3.0, most), tests, repaired=True))
    return rows


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
