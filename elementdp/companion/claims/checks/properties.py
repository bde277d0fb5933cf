"""Post-processing, group privacy and composition: checked exactly on finite mechanisms, and by linear programs."""

import itertools
import math
from collections.abc import Hashable
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
from elementdp.companion.claims import Effort, Fact, Finding, Gap, Role, check
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
def post_processing(effort: Effort, seed: int) -> Finding:
    """corollary:post-processing."""
    rng = np.random.default_rng(seed)
    cases, broken, apart, gap, kept = _CASES[effort], 0, 0.0, 0.0, 0
    for _ in range(cases):
        p, q = _random_law(rng, 4), _random_law(rng, 4)
        odds = Fraction(int(rng.integers(4, 13)), 4)
        table = _random_kernel(rng, 4)
        before = delta(p, q, odds)
        broken += delta(garble(p, table.__getitem__), garble(q, table.__getitem__), odds) > before
        kept += delta(garble(p, lambda z: {z: Fraction(1)}), q, odds) == before
        program = max(hockey_stick_program(p, q, float(odds)), hockey_stick_program(q, p, float(odds)))
        apart = max(apart, abs(program - float(before)))
        if before < 1:
            gap = max(gap, garbling_distance(canonical_pair(odds, before), (p, q)))
    return Finding(
        facts=(
            Fact(
                Role.PRINTED,
                f"{cases} random mechanisms and functions, in exact fractions: δ(ε) rose in {broken} of them.",
                broken == 0,
            ),
            Fact(
                Role.PRINTED,
                f"A linear program over all tests gives the same δ(ε) within {apart:.1g}, and another one finds "
                f"every pair to be a post-processing of the canonical (ε, δ) pair (largest miss {gap:.1g}).",
                apart < 1e-9 and gap < 1e-7,
            ),
            Fact(Role.TIGHT, f"The identity keeps δ(ε) exactly in {kept} of {cases} cases.", kept == cases),
        )
    )


@check("group-privacy")
def group_privacy(effort: Effort, seed: int) -> Finding:
    """corollary:group-privacy."""
    distances = (1, 2, 3, 5) if effort is Effort.SMOKE else (1, 2, 3, 4, 5, 8, 12)
    grid = list(itertools.product(distances, (0.0, 0.1, 0.5, 1.0, 2.0), (1e-6, 1e-3, 0.05)))
    worst = {case: worst_group_delta(*case) for case in grid}
    printed = {(d, e, x): d * math.exp((d - 1) * e) * x for d, e, x in grid}
    exceeded = sum(worst[case] > printed[case] + 1e-9 for case in grid)
    sharp = max(worst[case] - sharp_group_delta(*case) for case in grid)
    chain_delta, chain_ends, steps = _worst_chain(distance=5, odds=Fraction(2), leak=Fraction(1, 1000))
    loss = 5 * math.exp(4) / math.fsum(math.exp(i) for i in range(5))
    return Finding(
        facts=(
            Fact(
                Role.PRINTED,
                f"A linear program over all chains of {len(grid)} settings (D ≤ {max(distances)}) finds a δ above the "
                f"printed D e^((D-1)ε) δ in {exceeded}.",
                exceeded == 0,
            ),
            Fact(
                Role.PRINTED,
                f"In exact fractions a chain of D = 5 steps with e^ε = 2, δ = 1/1000 reaches δ = {chain_ends} at 5ε, "
                f"below the printed {5 * 16 * chain_delta}; every step of it is (ε, δ)-indistinguishable.",
                steps and chain_ends <= 5 * 16 * chain_delta,
            ),
            Fact(
                Role.TIGHT,
                f"The induction gives δ(e^(Dε)-1)/(e^ε-1), which no chain exceeds (largest excess {sharp:.1g}) and the "
                f"chain above attains; at D = 5, ε = 1 the printed δ is {loss:.4g} times that.",
                math.isclose(loss, 1, rel_tol=0.01),
            ),
        )
    )


def _worst_chain(distance: int, odds: Fraction, leak: Fraction) -> tuple[Fraction, Fraction, bool]:
    """P_i(A) = δ Σ_{j<D-i} e^{jε}: its δ, what its ends need at Dε, and whether every step is (ε, δ)-close."""
    chance = [leak * sum(odds**j for j in range(distance - i)) for i in range(distance + 1)]
    laws: list[Distribution] = [{1: p, 0: 1 - p} for p in chance]
    close = all(delta(a, b, odds) <= leak for a, b in itertools.pairwise(laws))
    return leak, hockey_stick(laws[0], laws[-1], odds**distance), close


@check("composition")
def composition(effort: Effort, seed: int) -> Finding:
    """corollary:composition: its basic, its advanced and its Rényi part."""
    rng = np.random.default_rng(seed)
    cases = _CASES[effort]
    basic, renyi = (sum(_adaptive_case(rng, kind) for _ in range(cases)) for kind in ("basic", "renyi"))
    leak, slack = Fraction(1, 10), Fraction(1, 1000)
    apart = delta(*canonical_pair(Fraction(1), leak), Fraction(1))
    alone = compose_advanced_as_printed([_level(0.0, float(leak))], float(slack))
    grid = list(
        itertools.product(
            (1, 2, 5, 20, 100, 1000), (0.0, 0.01, 0.1, 0.5, 1.0, 3.0), (0.0, 1e-6, 1e-3), (1e-9, 1e-5, 1e-2, 0.5)
        )
    )
    false, broken, broken_half = 0, 0, 0
    for k, epsilon, lost, free in grid:
        parts = [_level(epsilon, lost)] * k
        printed, repaired = compose_advanced_as_printed(parts, free), compose_advanced(parts, free)
        exact = optimal_delta_equal(printed.epsilon, epsilon, lost, k)
        false += exact > printed.delta * (1 + 1e-6)
        broken += exact > (free + k * lost) * (1 + 1e-6)
        broken_half += optimal_delta_equal(repaired.epsilon, epsilon, lost, k) > repaired.delta * (1 + 1e-6)
    return Finding(
        facts=(
            Fact(
                Role.PRINTED,
                f"Basic (Σε, Σδ): {cases} random adaptive compositions in exact fractions, {basic} violations.",
                basic == 0,
            ),
            Fact(
                Role.PRINTED,
                f"Rényi parts add: {cases} random adaptive compositions at α = 2 and 3 in exact fractions, "
                f"{renyi} violations.",
                renyi == 0,
            ),
            Fact(
                Role.PRINTED,
                f"k = 1, ε = 0, δ = {leak}, δ₀ = {slack}: printed ({alone.epsilon:.4g}, {alone.delta:.4g}); but a "
                f"(0, δ)-private mechanism can have total variation {apart}, twice the printed δ as δ₀ → 0.",
                float(apart) <= alone.delta,
            ),
            Fact(
                Role.PRINTED,
                f"On a grid of {len(grid)} settings (k up to 1000) the exact optimal composition exceeds the printed "
                f"δ₀ + Σδ/(1+e^ε) at the printed ε in {false}.",
                false == 0,
            ),
            Fact(
                Role.REPAIRED,
                f"With δ₀ + Σδ for the printed δ the printed ε is a bound on the whole grid ({broken} violations), "
                f"and so is the smaller Σε tanh(ε/2) + √(2Σε² log(1/δ₀)) ({broken_half} violations).",
                broken == 0 and broken_half == 0,
            ),
        ),
        repair="The composition is (½Σε² + √(2Σε² log(1/δ₀)), δ₀ + Σδ)-private, hence also with the printed, larger ε: "
        "no factor 1/(1+e^ε) on the δ's. Basic and Rényi parts stand as printed.",
        gap=Gap.CONSTANT,
    )


def _level(epsilon: float, lost: float) -> Guarantee:
    return Guarantee(epsilon, lost, Unit.ELEMENT)


def _adaptive_case(rng: np.random.Generator, kind: str) -> bool:
    """Whether one random adaptive composition of two mechanisms violates the basic or the Rényi statement."""
    p, q = (_random_law(rng, 3, positive=True) for _ in range(2))
    then_p, then_q = (_random_kernel(rng, 3, positive=True) for _ in range(2))
    joint = compose(p, then_p.__getitem__), compose(q, then_q.__getitem__)
    if kind == "renyi":
        return any(
            renyi_moment(*joint, order)
            > renyi_moment(p, q, order) * max(renyi_moment(then_p[z], then_q[z], order) for z in then_p)
            for order in (2, 3)
        )
    first, second = Fraction(int(rng.integers(4, 9)), 4), Fraction(int(rng.integers(4, 9)), 4)
    lost = delta(p, q, first) + max(delta(then_p[z], then_q[z], second) for z in then_p)
    return delta(*joint, first * second) > lost
