"""Corollaries 2.1 to 2.3: checked exactly on finite mechanisms, and by linear programs."""

import itertools
import math
import operator
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction

import numpy as np

from elementdp.audit.composition import optimal_delta_equal
from elementdp.audit.finite import (
    Distribution,
    canonical_pair,
    compose,
    delta,
    garble,
    hockey_stick,
    renyi_moment,
)
from elementdp.audit.programs import garbling_distance, hockey_stick_program, sharp_group_delta, worst_group_delta
from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Finding, Gap, printed, repaired, tight
from elementdp.privacy.composition import compose_advanced, compose_advanced_as_printed
from elementdp.privacy.guarantee import Guarantee, Unit

_CASES = {Effort.SMOKE: 20, Effort.QUICK: 200, Effort.PAPER: 1000}


def _random_law(rng: np.random.Generator, outcomes: int, *, positive: bool = False) -> Distribution:
    """A distribution of random fractions."""
    counts = [int(count) for count in rng.integers(1 if positive else 0, 10, outcomes)]
    counts[0] += 1
    return {outcome: Fraction(count, sum(counts)) for outcome, count in enumerate(counts)}


def _random_kernel(rng: np.random.Generator, inputs: int, *, positive: bool = False) -> dict[Hashable, Distribution]:
    """A randomised function to three outcomes."""
    return {z: _random_law(rng, 3, positive=positive) for z in range(inputs)}


@check("post-processing")
def post_processing(effort: Effort, seed: int, sees_the_data: bool = False) -> Finding:
    """Corollary 2.1; ``sees_the_data`` lets the function look at the sample again, which the corollary rules out."""
    rng = np.random.default_rng(seed)
    cases, broken, apart, gap, kept = _CASES[effort], 0, 0.0, 0.0, 0
    for _ in range(cases):
        p, q = _random_law(rng, 4), _random_law(rng, 4)
        odds = Fraction(int(rng.integers(4, 13)), 4)
        table = _random_kernel(rng, 4)
        other = _random_kernel(rng, 4) if sees_the_data else table
        before = delta(p, q, odds)
        broken += delta(garble(p, table.__getitem__), garble(q, other.__getitem__), odds) > before
        kept += delta(garble(p, lambda z: {z: Fraction(1)}), q, odds) == before
        program = max(hockey_stick_program(p, q, float(odds)), hockey_stick_program(q, p, float(odds)))
        apart = max(apart, abs(program - float(before)))
        if before < 1:
            gap = max(gap, garbling_distance(canonical_pair(odds, before), (p, q)))
    return Finding(
        (
            printed(
                f"{cases} random mechanisms and functions, in exact fractions: δ(ε) rose in {broken} of them.",
                broken == 0,
                promised_delta=0.0,
            ),
            printed(
                f"A linear program over all tests gives the same δ(ε) within {apart:.1g}, and another one finds "
                f"every pair to be a post-processing of the canonical (ε, δ) pair (largest miss {gap:.1g}).",
                apart < 1e-9 and gap < 1e-7,
            ),
            tight(f"The identity keeps δ(ε) exactly in {kept} of {cases} cases.", kept == cases),
        )
    )


def printed_group_delta(distance: int, epsilon: float, lost: float) -> float:
    """D e^{(D-1)ε} δ of Corollary 2.2."""
    return distance * math.exp((distance - 1) * epsilon) * lost


@check("group-privacy")
def group_privacy(
    effort: Effort, seed: int, bound: Callable[[int, float, float], float] = printed_group_delta
) -> Finding:
    """Corollary 2.2. Section 2 lets users hold any number of points, so the chains it walks exist."""
    distances = (1, 2, 3, 5) if effort is Effort.SMOKE else (1, 2, 3, 4, 5, 8, 12)
    grid = list(itertools.product(distances, (0.0, 0.1, 0.5, 1.0, 2.0), (1e-6, 1e-3, 0.05)))
    worst = {case: worst_group_delta(*case) for case in grid}
    exceeded = sum(worst[case] > bound(*case) + 1e-9 for case in grid)
    sharp = max(worst[case] - sharp_group_delta(*case) for case in grid)
    leak, steps_close, ends = Fraction(1, 1000), *worst_chain(5, Fraction(2), Fraction(1, 1000))
    named = bound(5, math.log(2), float(leak))
    loss = bound(5, 1.0, 1e-6) / sharp_group_delta(5, 1.0, 1e-6)
    return Finding(
        (
            printed(
                f"A linear program over all chains of {len(grid)} settings (D ≤ {max(distances)}) finds a δ above the "
                f"stated one in {exceeded}.",
                exceeded == 0,
                promised_delta=0.05,
            ),
            printed(
                f"In exact fractions a chain of D = 5 steps with e^ε = 2, δ = 1/1000 reaches δ = {ends} at 5ε, "
                f"stated {named:.4g}; every step of it is (ε, δ)-indistinguishable.",
                steps_close and float(ends) <= named * (1 + 1e-12),
                promised_delta=0.05,
            ),
            tight(
                f"The induction gives δ(e^(Dε)-1)/(e^ε-1), which no chain exceeds (largest excess {sharp:.1g}) and the "
                f"chain above attains; at D = 5, ε = 1 the stated δ is {loss:.4g} times that.",
                math.isclose(loss, 1, rel_tol=0.01),
            ),
        )
    )


def worst_chain(distance: int, odds: Fraction, leak: Fraction) -> tuple[bool, Fraction]:
    """P_i(A) = δ Σ_{j<D-i} e^{jε}: whether every step is (ε, δ)-close, and the δ its ends need at Dε."""
    chance = [leak * sum(odds**j for j in range(distance - i)) for i in range(distance + 1)]
    laws: list[Distribution] = [{1: p, 0: 1 - p} for p in chance]
    close = all(delta(a, b, odds) <= leak for a, b in itertools.pairwise(laws))
    return close, hockey_stick(laws[0], laws[-1], odds**distance)


Combine = Callable[[Fraction, Fraction], Fraction]


@check("composition-basic")
def composition_basic(effort: Effort, seed: int, combine: Combine = operator.add) -> Finding:
    """Corollary 2.3, first part: ε's and δ's add; ``combine`` says what becomes of the δ's."""
    rng, cases = np.random.default_rng(seed), _CASES[effort]
    worst = Fraction(0)
    for _ in range(cases):
        (p, q), (then_p, then_q), joint = _adaptive(rng)
        first, second = Fraction(int(rng.integers(4, 9)), 4), Fraction(int(rng.integers(4, 9)), 4)
        lost = combine(delta(p, q, first), max(delta(then_p[z], then_q[z], second) for z in then_p))
        found = delta(*joint, first * second)
        worst = max(worst, found / lost if lost else Fraction(int(found > 0) * 2))
    leak, odds = Fraction(1, 100), Fraction(2)
    one, other = canonical_pair(odds, leak)
    extremal = delta(compose(one, lambda _: one), compose(other, lambda _: other), odds**2) / combine(leak, leak)
    return Finding(
        (
            printed(
                f"{cases} random adaptive compositions in exact fractions: δ is at most {float(worst):.4g} times the "
                f"stated; two canonical pairs with δ = {leak} have {float(extremal):.4g} times.",
                max(worst, extremal) <= 1,
                promised_delta=0.01,
            ),
            tight("The canonical pairs come within one percent of it.", extremal >= Fraction(99, 100)),
        )
    )


@check("composition-renyi")
def composition_renyi(effort: Effort, seed: int, combine: Combine = operator.mul) -> Finding:
    """Corollary 2.3, third part: Rényi levels of one order add, so their exponentials multiply (``combine``)."""
    rng, cases = np.random.default_rng(seed), _CASES[effort]
    worst = Fraction(0)
    for _ in range(cases):
        (p, q), (then_p, then_q), joint = _adaptive(rng)
        for order in (2, 3):
            second = max(renyi_moment(then_p[z], then_q[z], order) for z in then_p)
            stated = combine(renyi_moment(p, q, order), second)
            worst = max(worst, renyi_moment(*joint, order) / stated)
    text = (
        f"{cases} random adaptive compositions at α = 2 and 3 in exact fractions: exp((α-1)D_α) is at most "
        f"{float(worst):.4g} times the stated."
    )
    return Finding((printed(text, worst <= 1, promised_delta=0.0),))


def _adaptive(
    rng: np.random.Generator,
) -> tuple[
    tuple[Distribution, Distribution],
    tuple[dict[Hashable, Distribution], dict[Hashable, Distribution]],
    tuple[Distribution, Distribution],
]:
    """Two laws, two kernels that see the first output, and the laws of both outputs together."""
    first = _random_law(rng, 3, positive=True), _random_law(rng, 3, positive=True)
    then = _random_kernel(rng, 3, positive=True), _random_kernel(rng, 3, positive=True)
    joint = compose(first[0], then[0].__getitem__), compose(first[1], then[1].__getitem__)
    return first, then, joint


Composition = Callable[[Sequence[Guarantee], float], Guarantee]


@check("composition-advanced")
def composition_advanced(effort: Effort, seed: int, stated: Composition = compose_advanced_as_printed) -> Finding:
    """Corollary 2.3, second part, against the exact optimal composition of equal mechanisms."""
    leak, slack = Fraction(1, 10), Fraction(1, 1000)
    apart = delta(*canonical_pair(Fraction(1), leak), Fraction(1))
    alone = stated([_level(0.0, float(leak))], float(slack))
    grid = list(
        itertools.product(
            (1, 2, 5, 20, 100, 1000), (0.0, 0.01, 0.1, 0.5, 1.0, 3.0), (0.0, 1e-6, 1e-3), (1e-9, 1e-5, 1e-2, 0.5)
        )
    )
    ratios = np.array(
        [[_excess(rule, *case) for rule in (stated, _printed_epsilon, compose_advanced)] for case in grid]
    )
    worst = ratios.max(axis=0)
    return Finding(
        (
            printed(
                f"k = 1, ε = 0, δ = {leak}, δ₀ = {slack}: stated ({alone.epsilon:.4g}, {alone.delta:.4g}); but a "
                f"(0, δ)-private mechanism can have total variation {apart}.",
                float(apart) <= alone.delta,
                promised_delta=alone.delta,
            ),
            printed(
                f"On a grid of {len(grid)} settings (k up to 1000) the exact optimal composition exceeds the stated δ "
                f"at the stated ε in {int((ratios[:, 0] > 1 + 1e-6).sum())}, by a factor of up to {worst[0]:.4g}.",
                worst[0] <= 1 + 1e-6,
                promised_delta=1e-3,
            ),
            repaired(
                f"With δ₀ + Σδ for the printed δ the printed ε is a bound on the whole grid (exact δ at most "
                f"{worst[1]:.4g} times that), and so is the smaller Σε tanh(ε/2) + √(2Σε² log(1/δ₀)) ({worst[2]:.4g}).",
                max(worst[1:]) <= 1 + 1e-6,
            ),
        ),
        repair="The composition is (½Σε² + √(2Σε² log(1/δ₀)), δ₀ + Σδ)-private, hence also with the printed, larger ε: "
        "no factor 1/(1+e^ε) on the δ's.",
        gap=Gap.CONSTANT,
    )


def _printed_epsilon(parts: Sequence[Guarantee], free: float) -> Guarantee:
    """The printed ε with the δ it can have."""
    lost = free + sum(part.delta for part in parts)
    return Guarantee(compose_advanced_as_printed(parts, free).epsilon, min(lost, 1.0), Unit.ELEMENT)


def _excess(rule: Composition, k: int, epsilon: float, lost: float, free: float) -> float:
    """The exact δ of k equal mechanisms at the ε a rule names, over the δ it names."""
    told = rule([_level(epsilon, lost)] * k, free)
    return optimal_delta_equal(told.epsilon, epsilon, lost, k) / told.delta


def _level(epsilon: float, lost: float) -> Guarantee:
    return Guarantee(epsilon, lost, Unit.ELEMENT)
