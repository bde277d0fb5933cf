"""Checks of Definitions 1 to 3 and of the distances they rest on."""

from collections.abc import Hashable
from fractions import Fraction
from itertools import permutations
from math import log

import numpy as np

from elementdp.audit.finite import hockey_stick
from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Fact, Finding, Gap, Role
from elementdp.elements import Partition, sample_distance, user_distance

_TRIALS = {Effort.SMOKE: 40, Effort.QUICK: 400, Effort.PAPER: 4000}
Sample = list[dict[str, int]]


def _sample(rng: np.random.Generator, users: int) -> Sample:
    return [dict(zip("abc", map(int, rng.integers(0, 3, 3)), strict=True)) for _ in range(users)]


def _law(rng: np.random.Generator, outcomes: int) -> dict[Hashable, Fraction]:
    weights = [int(weight) for weight in rng.integers(1, 20, outcomes)]
    return {outcome: Fraction(weight, sum(weights)) for outcome, weight in enumerate(weights)}


def _worst_event(p: dict[Hashable, Fraction], q: dict[Hashable, Fraction], odds: Fraction) -> Fraction:
    """max over all events A of P(A) - e^ε Q(A), by listing the events."""
    events = ([z for bit, z in enumerate(p) if number >> bit & 1] for number in range(2 ** len(p)))
    return max(sum((p[z] - odds * q[z] for z in event), Fraction(0)) for event in events)


@check("def-dp")
def def_dp(effort: Effort, seed: int) -> Finding:
    """Definition 1: the event-wise inequality is a divergence, and with Hamming distance it is the usual definition."""
    rng = np.random.default_rng(seed)
    trials = _TRIALS[effort]
    laws = [(_law(rng, 4), _law(rng, 4), Fraction(int(rng.integers(4, 13)), 4)) for _ in range(trials)]
    same = sum(hockey_stick(p, q, odds) == _worst_event(p, q, odds) for p, q, odds in laws)
    single = Partition.single()
    pairs = [(_sample(rng, 4), _sample(rng, 4)) for _ in range(trials)]
    hamming = sum(sample_distance(a, b, single) == _hamming(a, b) for a, b in pairs)
    return Finding(
        (
            Fact(
                Role.PRINTED,
                f"the smallest δ over all events equals Σ(p - e^ε q)₊ exactly for {same} of {trials} random finite "
                "mechanisms",
                same == trials,
            ),
            Fact(
                Role.PRINTED,
                f"with one cluster it is the order-free Hamming distance on {hamming} of {trials} random pairs",
                hamming == trials,
            ),
        )
    )


def _hamming(sample: Sample, other: Sample) -> int:
    """The order-free Hamming distance of the paper, by listing the permutations."""
    return min(sum(x != y for x, y in zip(sample, order, strict=True)) for order in permutations(other))


@check("def-rdp")
def def_rdp(effort: Effort, seed: int) -> Finding:
    """Definition 2: at order 1 read as the limit, the divergence runs from the average to the worst log ratio."""
    rng = np.random.default_rng(seed)
    orders = np.array([1 + 1e-6, 1.1, 1.5, 2, 4, 16, 64, 256, 2048])
    ends = rises = 0.0
    for _ in range(_TRIALS[effort]):
        p, q = (np.array([float(mass) for mass in _law(rng, 4).values()]) for _ in range(2))
        ratio = np.log(p / q)
        exponents = np.log(q) + orders[:, None] * ratio
        curve = np.logaddexp.reduce(exponents, axis=1) / (orders - 1)
        ends = max(ends, abs(curve[0] - float(p @ ratio)), ratio.max() - curve[-1] - log(20 * 4) / 2047)
        rises = max(rises, float(np.max(curve[:-1] - curve[1:])))
    return Finding(
        (
            Fact(
                Role.PRINTED,
                f"order 1 gives the average log ratio, and order 2048 the worst, up to {max(ends, 0.0):.1e}",
                ends < 1e-4,
            ),
            Fact(
                Role.PRINTED, f"the divergence never falls as the order grows (largest fall {rises:.1e})", rises < 1e-8
            ),
        )
    )


@check("def-element")
def def_element(effort: Effort, seed: int) -> Finding:
    """Definition 3: the sample distance is a metric computed by assignment, K = 1 is user-level; Figure 1's caption."""
    rng = np.random.default_rng(seed)
    trials = _TRIALS[effort]
    words = Partition.identity()
    triples = [(_sample(rng, 3), _sample(rng, 3), _sample(rng, 3)) for _ in range(trials)]

    def distance(a: Sample, b: Sample) -> int:
        return sample_distance(a, b, words)

    def listed(a: Sample, b: Sample) -> int:
        return min(sum(user_distance(x, y, words) for x, y in zip(a, o, strict=True)) for o in permutations(b))

    assigned = sum(distance(a, b) == listed(a, b) for a, b, _ in triples)
    metric = sum(distance(a, c) <= distance(a, b) + distance(b, c) for a, b, c in triples)
    first, second = ["yo", "bro"] * 3, ["yo"] * 4 + ["bro"] * 4
    apart = user_distance(first, second, words)
    middle = ["yo"] * 4 + ["bro"] * 3
    chain = [user_distance(first, middle, words), user_distance(middle, second, words)]
    return Finding(
        (
            Fact(
                Role.PRINTED,
                f"the minimum over permutations equals the assignment optimum on {assigned} of {trials} random pairs, "
                f"and the triangle inequality holds on {metric} of {trials} triples",
                assigned == metric == trials,
            ),
            Fact(
                Role.PRINTED, f"two conversations of yo and bro with other counts are at distance {apart}", apart == 2
            ),
            Fact(
                Role.PRINTED,
                f"the caption of Figure 1 calls conversations at distance {apart} neighbouring, and neighbours are at "
                "distance at most 1",
                apart <= 1,
            ),
            Fact(
                Role.REPAIRED,
                f"they are linked by a chain of neighbours at distances {chain[0]} and {chain[1]}, so group privacy "
                "covers them with 2ε",
                chain == [1, 1] and apart == sum(chain),
            ),
        ),
        repair="The definition stands. The caption should say that the three conversations are close, at distance 2, "
        "not that they are neighbouring: an ε-private mechanism treats them as 2ε-indistinguishable.",
        gap=Gap.TYPO,
    )
