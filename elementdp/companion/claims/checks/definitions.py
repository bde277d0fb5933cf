"""Definitions 2.1 to 2.3, the distances they rest on, Figure 1's caption, and what side information does."""

import math
from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from elementdp.audit.finite import Distribution, hockey_stick
from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Finding, Gap, printed, repaired
from elementdp.companion.theory.inference import (
    Belief,
    all_or_none,
    independent_belief,
    knowing_the_rest,
    odds_moved,
)
from elementdp.elements import Partition, are_neighbours, sample_distance, user_distance

_TRIALS = {Effort.SMOKE: 40, Effort.QUICK: 400, Effort.PAPER: 4000}
Users = list[dict[str, int]]
_WORDS = Partition.identity()


def random_users(rng: np.random.Generator, users: int) -> Users:
    """Users with random counts of three words."""
    return [dict(zip("abc", map(int, rng.integers(0, 3, 3)), strict=True)) for _ in range(users)]


def _law(rng: np.random.Generator, outcomes: int) -> dict[Hashable, Fraction]:
    weights = [int(weight) for weight in rng.integers(1, 20, outcomes)]
    return {outcome: Fraction(weight, sum(weights)) for outcome, weight in enumerate(weights)}


def worst_event(p: Distribution, q: Distribution, odds: Fraction) -> Fraction:
    """max over all events A of P(A) - e^ε Q(A), by listing the events."""
    events = ([z for bit, z in enumerate(p) if number >> bit & 1] for number in range(2 ** len(p)))
    return max(sum((p[z] - odds * q[z] for z in event), Fraction(0)) for event in events)


@check("def-dp")
def def_dp(
    effort: Effort, seed: int, smallest_delta: Callable[[Distribution, Distribution, Fraction], Fraction] = hockey_stick
) -> Finding:
    """Definition 2.1: its inequality over events is a divergence, and with Hamming distance it is the usual one."""
    rng = np.random.default_rng(seed)
    trials = _TRIALS[effort]
    laws = [(_law(rng, 4), _law(rng, 4), Fraction(int(rng.integers(4, 13)), 4)) for _ in range(trials)]
    same = sum(smallest_delta(p, q, odds) == worst_event(p, q, odds) for p, q, odds in laws)
    pairs = [(random_users(rng, 4), random_users(rng, 4)) for _ in range(trials)]
    hamming = sum(sample_distance(a, b, Partition.single()) == _hamming(a, b) for a, b in pairs)
    return Finding(
        (
            printed(
                f"the smallest δ over all events equals Σ(p - e^ε q)₊ exactly for {same} of {trials} random finite "
                "mechanisms",
                same == trials,
                promised_delta=0.0,
            ),
            printed(
                f"with one cluster it is the order-free Hamming distance on {hamming} of {trials} random pairs",
                hamming == trials,
            ),
        )
    )


def _hamming(sample: Users, other: Users) -> int:
    """The order-free Hamming distance of the paper, by listing the permutations."""
    return min(sum(x != y for x, y in zip(sample, order, strict=True)) for order in permutations(other))


Curve = Callable[[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


def renyi_curve(p: NDArray[np.float64], q: NDArray[np.float64], orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """D_α(P‖Q) of Definition 2.2 at each order."""
    exponents = np.log(q) + orders[:, None] * np.log(p / q)
    return np.asarray(np.logaddexp.reduce(exponents, axis=1) / (orders - 1))


@check("def-rdp")
def def_rdp(effort: Effort, seed: int, curve: Curve = renyi_curve) -> Finding:
    """Definition 2.2: at order 1 read as the limit, the divergence runs from the average to the worst log ratio."""
    rng = np.random.default_rng(seed)
    orders = np.array([1 + 1e-6, 1.1, 1.5, 2, 4, 16, 64, 256, 2048])
    ends = rises = 0.0
    trials = _TRIALS[effort]
    for _ in range(trials):
        p, q = (np.array([float(mass) for mass in _law(rng, 4).values()]) for _ in range(2))
        ratio, found = np.log(p / q), curve(p, q, orders)
        ends = max(ends, abs(found[0] - float(p @ ratio)), ratio.max() - found[-1] - math.log(20 * 4) / 2047)
        rises = max(rises, float(np.max(found[:-1] - found[1:])))
    return Finding(
        (
            printed(
                f"order 1 gives the average log ratio, and order 2048 the worst, up to {max(ends, 0.0):.1e} "
                f"({trials} random pairs)",
                ends < 1e-4,
            ),
            printed(f"the divergence never falls as the order grows (largest fall {rises:.1e})", rises < 1e-8),
        )
    )


def element_distance(a: Users, b: Users) -> int:
    """Equation (3) with every word an element."""
    return sample_distance(a, b, _WORDS)


@check("def-element")
def def_element(effort: Effort, seed: int, distance: Callable[[Users, Users], int] = element_distance) -> Finding:
    """Definition 2.3: the sample distance is a metric computed by assignment, and K = 1 is user-level."""
    rng = np.random.default_rng(seed)
    trials = _TRIALS[effort]
    triples = [(random_users(rng, 3), random_users(rng, 3), random_users(rng, 3)) for _ in range(trials)]
    assigned = sum(distance(a, b) == listed_distance(a, b) for a, b, _ in triples)
    metric = sum(distance(a, c) <= distance(a, b) + distance(b, c) for a, b, c in triples)
    single = sum(sample_distance(a, b, Partition.single()) == _hamming(a, b) for a, b, _ in triples)
    return Finding(
        (
            printed(
                f"the minimum over permutations equals the assignment optimum on {assigned} of {trials} random pairs, "
                f"and the triangle inequality holds on {metric} of {trials} triples",
                assigned == metric == trials,
            ),
            printed(f"one cluster counts the users that differ, on {single} of {trials} pairs", single == trials),
        )
    )


def listed_distance(a: Users, b: Users) -> int:
    """Equation (3) by listing the permutations."""
    return min(sum(user_distance(x, y, _WORDS) for x, y in zip(a, order, strict=True)) for order in permutations(b))


CASUAL = (["yo", "bro"] * 3, ["yo"] * 4 + ["bro"] * 4)
"""Figure 1's first conversation, and one that uses the same two words with other counts."""


@check("figure-1")
def figure_1(effort: Effort, seed: int, conversations: tuple[list[str], list[str]] = CASUAL) -> Finding:
    """The caption of Figure 1: conversations of yo and bro with other counts, called neighbouring."""
    first, second = conversations
    apart = user_distance(first, second, _WORDS)
    between = ["yo"] * second.count("yo") + ["bro"] * first.count("bro")
    chain = [user_distance(first, between, _WORDS), user_distance(between, second, _WORDS)]
    return Finding(
        (
            printed(
                f"the two conversations are at distance {apart}; neighbours are at distance at most 1",
                are_neighbours([first], [second], _WORDS),
            ),
            repaired(
                f"they are linked by a chain of neighbours at distances {chain[0]} and {chain[1]}, so group privacy "
                f"covers them with {sum(chain)}ε",
                max(chain) <= 1 and apart == sum(chain),
            ),
        ),
        repair="The conversations are close, at distance 2, not neighbouring: an ε-private mechanism treats them as "
        "2ε-indistinguishable. The definition stands.",
        gap=Gap.WORDING,
    )


EVERYONE: dict[str, Callable[[int], Belief]] = {
    "knows all the others": knowing_the_rest,
    "believes them independent": independent_belief,
    "knows that it is all or none": all_or_none,
}
"""Three people with different side information about one user's elements."""


@check("side-information")
def side_information(effort: Effort, seed: int, people: dict[str, Callable[[int], Belief]] = EVERYONE) -> Finding:
    """Randomised response on each of k elements; how far the odds of one element move, for each kind of person."""
    odds, counts = Fraction(3), range(1, 5 if effort is Effort.SMOKE else 7)
    moved = {name: [odds_moved(belief(k), odds) for k in counts] for name, belief in people.items()}
    together = [odds_moved(all_or_none(k), odds) for k in counts]
    apart = [odds_moved(belief(k), odds) for belief in (knowing_the_rest, independent_belief) for k in counts]
    return Finding(
        (
            *(
                printed(
                    f"e^ε = {odds}, k = 1, …, {counts[-1]} elements, someone who {name}: the odds of the first move by "
                    f"{', '.join(map(str, found))} (exact), promised at most {odds}",
                    max(found) <= odds,
                )
                for name, found in moved.items()
            ),
            repaired(
                f"for someone who knows the other elements, or believes them independent, they move by at most "
                f"{max(apart)}",
                max(apart) <= odds,
            ),
            repaired(
                f"for all or none they move by exactly e^(kε), what group privacy allows for k elements; at ε = 1, "
                f"k = 10 that is {math.exp(10):,.0f}",
                together == [odds**k for k in counts],
            ),
        ),
        repair="Against someone who already knows all of a user's other elements, or believes them independent of this "
        "one, an answer changes the odds about one element by at most e^ε. Whatever people know, the answer would have "
        "been nearly as likely had this one element been another. If k elements go together, group privacy's e^(kε) is "
        "the promise, and it is attained.",
        gap=Gap.ASSUMPTION,
    )
