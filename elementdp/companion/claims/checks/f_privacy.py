"""The last sentence of Section 2.3: which corollaries have an analogue in f-differential privacy.

A trade-off function tells the largest power of a test at each level. One pair of laws is harder to tell apart than
another at every level exactly if its hockey-stick divergence is smaller at every ε, so either may be compared.
"""

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from elementdp.audit.finite import Distribution, canonical_pair, compose, garble, randomised_response
from elementdp.audit.mixtures import hockey_stick, pair_sampled, user_sampled
from elementdp.audit.sampled import identity_pair, poisson_pairs, poisson_users, respond_to_all, subsampled
from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Fact, Finding, Gap, printed, repaired

COROLLARIES = ("post-processing", "group-privacy", "composition", "subsampling", "moments-accountant")
"""The preceding corollaries, in order."""
_LEVELS = [Fraction(i, 16) for i in range(1, 16)]


def power(p: Distribution, q: Distribution, level: Fraction) -> Fraction:
    """The largest power P(reject) of a test of Q against P with Q(reject) = ``level``: Neyman and Pearson."""
    total, spent = Fraction(0), Fraction(0)
    ratio = {z: (p.get(z, Fraction(0)), q.get(z, Fraction(0))) for z in {*p, *q}}
    free = sum((mass for mass, other in ratio.values() if other == 0), Fraction(0))
    for mass, other in sorted((r for r in ratio.values() if r[1] > 0), key=lambda r: r[0] / r[1], reverse=True):
        share = min(Fraction(1), (level - spent) / other)
        total, spent = total + share * mass, spent + share * other
        if spent >= level:
            break
    return free + total


@check("f-privacy")
def f_privacy(effort: Effort, seed: int, corollaries: Sequence[str] = COROLLARIES) -> Finding:
    """Each corollary's natural analogue, tried exactly."""
    makers = {
        "post-processing": _processed,
        "group-privacy": _grouped,
        "composition": _composed,
        "subsampling": _subsampled,
        "moments-accountant": _summed,
    }
    cases = 20 if effort is Effort.SMOKE else 100
    return Finding(
        (*(makers[name](cases, np.random.default_rng(seed)) for name in corollaries), *_pairs()),
        repair="Post-processing, group privacy and composition have analogues. Subsampling and the moments accountant "
        "have them for sampled (user, element) pairs; for sampled users they would imply Corollaries 2.4 and 2.5, "
        "which fail.",
        gap=Gap.SUBSTANCE,
    )


def _respond(odds: Fraction) -> tuple[Distribution, Distribution]:
    return randomised_response(1, odds), randomised_response(0, odds)


def _kernel(rng: np.random.Generator) -> dict[int, Distribution]:
    rows = rng.integers(1, 10, (4, 3))
    return {z: {i: Fraction(int(v), int(row.sum())) for i, v in enumerate(row)} for z, row in enumerate(rows)}


def _processed(cases: int, rng: np.random.Generator) -> Fact:
    worse = 0
    for _ in range(cases):
        table = _kernel(rng)
        p, q = table[2], table[3]
        after = garble(p, table.__getitem__), garble(q, table.__getitem__)  # type: ignore[arg-type]
        worse += any(power(*after, level) > power(p, q, level) for level in _LEVELS)
    text = f"post-processing: in {worse} of {cases} random cases some test got stronger"
    return printed(text, worse == 0, promised_delta=0.0)


def _grouped(cases: int, rng: np.random.Generator) -> Fact:
    """Chains of two steps, each within the trade-off of randomised response: the ends are within its composition."""
    step, worse = _respond(Fraction(3)), 0
    for number in range(1, cases + 1):
        chance = [Fraction(number, 2 * cases)]
        for _ in range(2):
            chance.append(power(*step, chance[-1]))
        laws: list[Distribution] = [{1: c, 0: 1 - c} for c in chance]
        worse += any(power(laws[2], laws[0], level) > power(*step, power(*step, level)) for level in _LEVELS)
    text = f"group privacy: in {worse} of {cases} extremal chains of two steps some test beat f∘f"
    return printed(text, worse == 0, promised_delta=0.0)


def _composed(cases: int, rng: np.random.Generator) -> Fact:
    """An adaptive second step that is a garbling of randomised response against the product of two responses."""
    odds, worse = Fraction(3), 0
    p, q = canonical_pair(odds, Fraction(0))
    product = compose(p, lambda _: p), compose(q, lambda _: q)
    for _ in range(cases):
        tables = [_kernel(rng), _kernel(rng)]

        def second(z: object, law: Distribution, tables: list[dict[int, Distribution]] = tables) -> Distribution:
            chosen = tables[0 if z == 0 else 1]
            return garble(law, lambda answer: chosen[int(answer == 1)])

        joint = compose(p, lambda z: second(z, p)), compose(q, lambda z: second(z, q))
        worse += any(power(*joint, level) > power(*product, level) for level in _LEVELS)
    text = f"composition: in {worse} of {cases} adaptive cases some test beat the product"
    return printed(text, worse == 0, promised_delta=0.0)


def _subsampled(cases: int, rng: np.random.Generator) -> Fact:
    """q f + (1 - q) Id at the level of the one-coin counterexample with two elements."""
    odds, half, (one, other) = Fraction(3), Fraction(1, 2), identity_pair(2)
    run = subsampled(respond_to_all(odds), poisson_users(half, emptied=True))
    level = Fraction(1, 8)
    really = power(run(other[:1]), run(one[:1]), level)
    allowed = half * power(*_respond(odds), level) + (1 - half) * level
    return printed(
        f"subsampling: two elements, e^ε = {odds}, q = 1/2: at level {level} a test has power {really}, and "
        f"qf + (1-q)Id allows {allowed}",
        really <= allowed,
        promised_delta=0.0,
    )


def _summed(cases: int, rng: np.random.Generator) -> Fact:
    q, sigma, epsilon = 0.05, 2.0, 0.2
    users = hockey_stick(user_sampled(q, sigma, 3, 1), user_sampled(q, sigma, 3, -1), epsilon)
    stated = hockey_stick(user_sampled(q, sigma, 0, 1), user_sampled(q, sigma, 0, -1), epsilon)
    return printed(
        f"moments accountant: q = {q:g}, σ = {sigma:g}, four elements a user: δ({epsilon:g}) is {users:.4g}, that of "
        f"the printed pair's trade-off {stated:.4g}",
        users <= stated,
        promised_delta=stated,
    )


def _pairs() -> list[Fact]:
    odds, half, (one, other) = Fraction(3), Fraction(1, 2), identity_pair(2)
    run = subsampled(respond_to_all(odds), poisson_pairs(half))
    laws = run(other[:1]), run(one[:1])
    fine = all(power(*laws, level) <= half * power(*_respond(odds), level) + (1 - half) * level for level in _LEVELS)
    q, sigma = 0.05, 2.0
    ratios = [
        hockey_stick(pair_sampled(q, sigma, (1.0,) * others, 1), pair_sampled(q, sigma, (1.0,) * others, -1), epsilon)
        / hockey_stick(user_sampled(q, sigma, 0, 1), user_sampled(q, sigma, 0, -1), epsilon)
        for others, epsilon in itertools.product((0, 3), (0.05, 0.2))
    ]
    text = (
        f"with pairs sampled both hold: power within qf + (1-q)Id at {len(_LEVELS)} levels, and δ(ε) at most "
        f"{max(ratios):.4g} of the printed pair's"
    )
    return [repaired(text, fine and max(ratios) <= 1 + 1e-9)]
