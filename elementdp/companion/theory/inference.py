"""What someone can conclude about one element from an answer, given what they believed before (exact fractions)."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import product

from elementdp.audit.finite import independent, randomised_response
from elementdp.errors import at_least

Belief = Mapping[tuple[int, ...], Fraction]
"""How likely each list of yes-or-no elements was thought to be before the answer."""


def knowing_the_rest(elements: int) -> Belief:
    """Someone who knows every element but the first, and nothing about that one."""
    rest = (1,) * (at_least("elements", elements, 1) - 1)
    return {(0, *rest): Fraction(1, 2), (1, *rest): Fraction(1, 2)}


def independent_belief(elements: int, chance: Fraction = Fraction(1, 3)) -> Belief:
    """Someone who believes that elements come independently, each with this chance."""
    weight = (1 - chance, chance)
    belief = {}
    for bits in product((0, 1), repeat=at_least("elements", elements, 1)):
        mass = Fraction(1)
        for bit in bits:
            mass *= weight[bit]
        belief[bits] = mass
    return belief


def all_or_none(elements: int) -> Belief:
    """Someone who knows that a person has all of these elements or none."""
    count = at_least("elements", elements, 1)
    return {(0,) * count: Fraction(1, 2), (1,) * count: Fraction(1, 2)}


def odds_moved(belief: Belief, odds: Fraction) -> Fraction:
    """The most by which an answer multiplies the odds of "has element 1" for someone with this belief.

    Every element gets a randomised response with e^ε = ``odds``, so the mechanism is exactly ε-element-private.
    """
    before = {side: sum((mass for bits, mass in belief.items() if bits[0] == side), Fraction(0)) for side in (0, 1)}
    laws = {bits: independent(*(randomised_response(bit, odds) for bit in bits)) for bits in belief}
    worst = Fraction(1)
    for answer in next(iter(laws.values())):
        after = [
            sum((mass * laws[bits][answer] for bits, mass in belief.items() if bits[0] == side), Fraction(0))
            for side in (0, 1)
        ]
        ratio = (after[1] / after[0]) / (before[1] / before[0])
        worst = max(worst, ratio, 1 / ratio)
    return worst
