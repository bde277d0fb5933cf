"""Finite mechanisms in exact arithmetic: distributions of fractions, and how far apart two of them are.

Privacy levels appear as the *odds* e^ε, a fraction, so that no step rounds.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from itertools import product as cartesian

from elementdp.errors import ArgumentError

Distribution = Mapping[Hashable, Fraction]
"""The probability of each outcome; outcomes that are missing have none."""

Kernel = Callable[[Hashable], Distribution]
"""A randomised function of an outcome."""


def checked(distribution: Distribution) -> Distribution:
    """Return the distribution if its probabilities are non-negative and add up to exactly one."""
    if any(mass < 0 for mass in distribution.values()) or sum(distribution.values()) != 1:
        raise ArgumentError("distribution", dict(distribution), "non-negative fractions that add up to 1")
    return distribution


def mixture(parts: Iterable[tuple[Fraction, Distribution]]) -> Distribution:
    """The mixture of distributions with the given weights."""
    total: dict[Hashable, Fraction] = defaultdict(Fraction)
    for weight, part in parts:
        for outcome, mass in part.items():
            total[outcome] += weight * mass
    return dict(total)


def garble(distribution: Distribution, kernel: Kernel) -> Distribution:
    """Post-processing: the law of ``kernel(Z)`` for Z with this distribution."""
    return mixture((mass, kernel(outcome)) for outcome, mass in distribution.items())


def independent(*parts: Distribution) -> Distribution:
    """The joint law of independent outcomes, as tuples."""
    joint: dict[Hashable, Fraction] = {}
    for cells in cartesian(*(part.items() for part in parts)):
        mass = Fraction(1)
        for _, share in cells:
            mass *= share
        joint[tuple(outcome for outcome, _ in cells)] = mass
    return joint


def compose(first: Distribution, then: Kernel) -> Distribution:
    """Adaptive composition: the joint law of Z₁ and Z₂ drawn from ``then(Z₁)`` (Corollary 2.3)."""
    return mixture(
        (mass, {(seen, outcome): share for outcome, share in then(seen).items()}) for seen, mass in first.items()
    )


def hockey_stick(p: Distribution, q: Distribution, odds: Fraction) -> Fraction:
    """The smallest δ with P(A) ≤ e^ε Q(A) + δ for every event A: Σ (p - e^ε q)₊, one direction."""
    return sum(
        (max(Fraction(0), mass - odds * q.get(outcome, Fraction(0))) for outcome, mass in p.items()), Fraction(0)
    )


def delta(p: Distribution, q: Distribution, odds: Fraction) -> Fraction:
    """The smallest δ for which the two distributions are (ε, δ)-indistinguishable, both directions (Definition 2.1)."""
    return max(hockey_stick(p, q, odds), hockey_stick(q, p, odds))


def worst_odds(p: Distribution, q: Distribution) -> Fraction | None:
    """The smallest e^ε with δ = 0, or None if an outcome is possible under only one of the two."""
    outcomes = {outcome for law in (p, q) for outcome, mass in law.items() if mass}
    if any(not p.get(outcome) or not q.get(outcome) for outcome in outcomes):
        return None
    return max(max(p[outcome] / q[outcome], q[outcome] / p[outcome]) for outcome in outcomes)


def renyi_moment(p: Distribution, q: Distribution, order: int) -> Fraction:
    """Σ p^α q^(1-α) for a whole α ≥ 2: exp((α-1) D_α(P‖Q)), exactly (Definition 2.2)."""
    return sum((mass**order / q[outcome] ** (order - 1) for outcome, mass in p.items() if mass), Fraction(0))


def randomised_response(bit: int, odds: Fraction) -> Distribution:
    """Tell the truth with odds e^ε to one: exactly ε-private in its bit."""
    return {bit: odds / (1 + odds), 1 - bit: 1 / (1 + odds)}


def canonical_pair(odds: Fraction, leak: Fraction) -> tuple[Distribution, Distribution]:
    """The most revealing (ε, δ)-indistinguishable pair: the answer itself with probability δ, else a random response.

    Every other (ε, δ)-indistinguishable pair is a garbling of it (Kairouz, Oh and Viswanath, 2015).
    """
    keep = 1 - leak
    high, low = keep * odds / (1 + odds), keep / (1 + odds)
    return {"leak 0": leak, 0: high, 1: low}, {"leak 1": leak, 0: low, 1: high}
