"""Subsampled finite mechanisms, enumerated: every subsample with its exact probability (Corollary 2.4).

A user is a tuple of elements, a sample a tuple of users; ``None`` is an element without data.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, product

from elementdp.audit.finite import Distribution, delta, independent, mixture, randomised_response, worst_odds
from elementdp.errors import at_least

User = tuple[int | None, ...]
Sample = tuple[User, ...]
Mechanism = Callable[[Sample], Distribution]
Subsampler = Callable[[Sample], Iterator[tuple[Fraction, Sample]]]


def poisson_users(rate: Fraction, *, emptied: bool = False) -> Subsampler:
    """Π_q: each user independently with probability q, all elements together.

    The others leave the sample, as printed; or stay without data (``emptied``), as in Equation (4), where a user
    who is not drawn adds zero and nobody sees how many were drawn.
    """

    def draw(sample: Sample) -> Iterator[tuple[Fraction, Sample]]:
        for kept in product((False, True), repeat=len(sample)):
            drawn = zip(sample, kept, strict=True)
            part = tuple(user if keep else (None,) * len(user) for user, keep in drawn if keep or emptied)
            yield _chance(kept, rate), part

    return draw


def fixed_users(size: int) -> Subsampler:
    """Π_m^wo: ``size`` of the users, uniformly, all elements together."""
    at_least("size", size, 0)

    def draw(sample: Sample) -> Iterator[tuple[Fraction, Sample]]:
        subsamples = list(combinations(sample, size))
        for subsample in subsamples:
            yield Fraction(1, len(subsamples)), subsample

    return draw


def poisson_pairs(rate: Fraction) -> Subsampler:
    """The repair: each (user, element) pair independently with probability q; all users stay, emptied if not drawn."""

    def draw(sample: Sample) -> Iterator[tuple[Fraction, Sample]]:
        places = [(u, k) for u, user in enumerate(sample) for k, element in enumerate(user) if element is not None]
        for kept in product((False, True), repeat=len(places)):
            held = {place for place, keep in zip(places, kept, strict=True) if keep}
            yield (
                _chance(kept, rate),
                tuple(
                    tuple(element if (u, k) in held else None for k, element in enumerate(user))
                    for u, user in enumerate(sample)
                ),
            )

    return draw


def _chance(kept: tuple[bool, ...], rate: Fraction) -> Fraction:
    return rate ** sum(kept) * (1 - rate) ** (len(kept) - sum(kept))


def subsampled(mechanism: Mechanism, subsampler: Subsampler) -> Mechanism:
    """The mechanism applied to a random subsample, as one exact mechanism."""
    return lambda sample: mixture((weight, mechanism(part)) for weight, part in subsampler(sample))


def element_neighbours(sample: Sample, values: tuple[int | None, ...]) -> Iterator[Sample]:
    """Every sample that differs in one element of one user (Equation (3) at most 1)."""
    for u, user in enumerate(sample):
        for k, element in enumerate(user):
            for value in values:
                if value != element:
                    changed = (*user[:k], value, *user[k + 1 :])
                    yield (*sample[:u], changed, *sample[u + 1 :])


def worst_case(mechanism: Mechanism, samples: list[Sample], values: tuple[int | None, ...]) -> Fraction | None:
    """The smallest e^ε for which the mechanism is ε-element private on these samples and all their neighbours."""
    worst = Fraction(1)
    for sample in samples:
        law = mechanism(sample)
        for other in element_neighbours(sample, values):
            odds = worst_odds(law, mechanism(other))
            if odds is None:
                return None
            worst = max(worst, odds)
    return worst


def worst_delta(
    mechanism: Mechanism, samples: list[Sample], values: tuple[int | None, ...], odds: Fraction
) -> Fraction:
    """The smallest δ beside e^ε = ``odds`` for which the mechanism is element private on these samples."""
    return max(
        delta(mechanism(sample), mechanism(other), odds)
        for sample in samples
        for other in element_neighbours(sample, values)
    )


def show_size(odds: Fraction) -> Mechanism:
    """Counterexample (i): publish how many users there are, and randomised responses of each one's first element.

    With ``e^ε = odds`` it is exactly ε-element private on samples of every size.
    """

    def run(sample: Sample) -> Distribution:
        return independent({len(sample): Fraction(1)}, *(_respond(user[0], odds) for user in sample))

    return run


def respond_to_all(odds: Fraction) -> Mechanism:
    """Counterexample (ii): a randomised response of every element of every user, each exactly ε-private."""

    def run(sample: Sample) -> Distribution:
        return independent(*(_respond(element, odds) for user in sample for element in user))

    return run


def _respond(element: int | None, odds: Fraction) -> Distribution:
    """Randomised response of a bit; an element without data answers as a 0 does."""
    return randomised_response(element or 0, odds)


def leaky(mechanism: Mechanism, leak: Fraction) -> Mechanism:
    """Publish the whole sample with probability δ, else run the mechanism: (ε, δ)-private where that was ε-private."""
    return lambda sample: mixture([(leak, {("leaked", sample): Fraction(1)}), (1 - leak, mechanism(sample))])


def claimed_odds(odds: Fraction, rate: Fraction) -> Fraction:
    """e^ε' of the corollary as printed: 1 + q(e^ε - 1)."""
    return 1 + rate * (odds - 1)


def identity_pair(elements: int) -> tuple[Sample, Sample]:
    """Two users, K elements each: elements 2, …, K tell them apart, element 1 of the first user is the secret."""
    at_least("elements", elements, 1)
    rest = elements - 1
    other: User = (0,) * elements
    return ((0, *(1,) * rest), other), ((1, *(1,) * rest), other)


def identity_odds(odds: Fraction, elements: int, rate: Fraction) -> Fraction:
    """The closed form of the counterexample: (1 - q + q e^{Kε})/(1 - q + q e^{(K-1)ε}), from 1 + q(e^ε - 1) to e^ε."""
    return (1 - rate + rate * odds**elements) / (1 - rate + rate * odds ** (elements - 1))
