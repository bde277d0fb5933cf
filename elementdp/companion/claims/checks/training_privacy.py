"""Corollaries 3.1 and 3.2 and Equation (16): the printed ε of all iterates against what such runs really have."""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, norm

from elementdp.audit import clopper_pearson
from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Fact, Finding, Gap, printed, repaired
from elementdp.privacy import Sampler, SubsampledGaussian, Unit, account, claimed, rounded_down, rounded_up

_Q, _SIGMA, _STEPS, _DELTA = 0.01, 1.0, 100, 1e-5


@check("sgd-privacy")
def sgd_privacy(effort: Effort, seed: int, sampler: Sampler = Sampler.POISSON_USERS) -> Finding:
    """Corollary 3.1 for users with any number of elements."""
    run = SubsampledGaussian(sampler, _SIGMA, _Q, _STEPS)
    users = SubsampledGaussian(Sampler.POISSON_USERS, _SIGMA, _Q, _STEPS)
    pairs = account(SubsampledGaussian(Sampler.POISSON_PAIRS, _SIGMA, _Q, _STEPS), _DELTA)
    stated, real, revealed = claimed(run, _DELTA), account(run, _DELTA), account(users, _DELTA)
    again = revealed_epsilon_by_sums(_Q, _SIGMA, _STEPS, _DELTA)
    facts = [
        printed(
            f"{sampler.words}, q = {_Q:g}, σ = {_SIGMA:g}, T = {_STEPS}, δ = {_DELTA:g}: the corollary says ε = "
            f"{stated:.4g}; over users with any other elements ε lies in {real:.4g}.",
            real.low <= stated,
            promised_delta=_DELTA,
        )
    ]
    if sampler is Sampler.POISSON_USERS:
        facts.append(_attack(effort, seed))
    return Finding(
        (
            *facts,
            repaired(
                f"Sampling (user, element) pairs, the printed pair is the right one: true ε between {pairs:.4g}, below "
                f"the printed {stated:.4g}.",
                pairs.up <= stated,
            ),
            repaired(
                f"Sampling users, ε = {rounded_up(revealed.up, 4)} is a guarantee: a run is a Gaussian mechanism with "
                f"μ = 2√j/σ, j ~ Bin(T, q) the number of steps the user takes part in (plain sums give {again:.6g}).",
                math.isclose(revealed.up, again, rel_tol=1e-6),
            ),
        ),
        repair="Sample (user, element) pairs, and the corollary holds as printed; or sample users and count E over "
        "j ~ Bin(T, q) of the Gaussian δ(ε; 2√j/σ), without amplification.",
        gap=Gap.SUBSTANCE,
    )


BOTH_SAMPLERS = (Sampler.POISSON_USERS, Sampler.FIXED_USERS)


@check("sgd-user-privacy")
def sgd_user_privacy(effort: Effort, seed: int, samplers: tuple[Sampler, ...] = BOTH_SAMPLERS) -> Finding:
    """Corollary 3.2 for whole users with at most four elements."""
    most = 4
    facts = []
    for sampler in samplers:
        run = SubsampledGaussian(sampler, most * _SIGMA, _Q, _STEPS, Unit.USER, most)
        stated, real = claimed(run, _DELTA), account(run, _DELTA)
        facts.append(
            printed(
                f"{sampler.words}, K∧M = {most}, σ = {most * _SIGMA:g}, q = {_Q:g}, T = {_STEPS}, δ = {_DELTA:g}: "
                f"stated ε = {stated:.4g}, true ε at least {rounded_down(real.low, 4)} and at most "
                f"{rounded_up(real.up, 4)}.",
                real.low <= stated,
                promised_delta=_DELTA,
            )
        )
    poisson = SubsampledGaussian(Sampler.POISSON_USERS, most * _SIGMA, _Q, _STEPS, Unit.USER, most)
    counted = SubsampledGaussian(Sampler.POISSON_PAIRS, 3.0, 0.9, 1, Unit.USER, 8)
    band = account(counted, _DELTA)
    return Finding(
        (
            *facts,
            repaired(
                f"Poisson sampling of users: true ε at most {rounded_up(account(poisson, _DELTA).up, 4)}, below the "
                f"stated {claimed(poisson, _DELTA):.4g}.",
                account(poisson, _DELTA).up <= claimed(poisson, _DELTA),
            ),
            repaired(
                f"For whole users pair sampling is no repair: with K∧M = 8, q = 0.9, σ = 3, one step, the corollary "
                f"would say {claimed(counted, _DELTA):.4g} and the truth lies in {band:.4g}.",
                claimed(counted, _DELTA) < band.low,
            ),
        ),
        repair="Holds for Poisson sampling of users (reading user-level where the corollary prints element-level). For "
        "fixed-size sampling the pair needs the larger swing 2(K∧M): when the changed user is not drawn another is, "
        "who can point the other way. For sampled pairs it needs the binomial count of shown elements.",
        gap=Gap.ASSUMPTION,
    )


@check("sgd-rate")
def sgd_rate(effort: Effort, seed: int, sampler: Sampler = Sampler.POISSON_USERS) -> Finding:
    """Equation (16) with m = 1, T = n: the true ε over the infimum as n grows; an O(1) would be bounded."""
    sizes = (10**2, 10**4, 10**6)
    ratios = [_true_over_stated(sampler, n) for n in sizes]
    pairs = [_true_over_stated(Sampler.POISSON_PAIRS, n) for n in sizes]
    return Finding(
        (
            printed(
                f"{sampler.words}, m = 1, T = n, σ = 2, δ = 10⁻³: the true ε is "
                + ", ".join(f"{ratio:.3g} (n = {n:.0e})" for n, ratio in zip(sizes, ratios, strict=True))
                + " times the stated infimum.",
                ratios[-1] <= 2 * max(ratios[0], 1.0),
                promised_delta=1e-3,
            ),
            repaired(
                "With pairs sampled it is " + ", ".join(f"{ratio:.3g}" for ratio in pairs) + " times.", max(pairs) <= 2
            ),
        ),
        repair="Sample (user, element) pairs: the O(1) is then at most 2. For sampled users ε does not fall with n.",
        gap=Gap.SUBSTANCE,
    )


def _true_over_stated(sampler: Sampler, n: int) -> float:
    delta, sigma = 1e-3, 2.0
    rate = n * (1 / n) ** 2 / sigma**2
    order = min(math.sqrt(math.log(1 / delta) / rate), sigma**2 * math.log(n))
    stated = rate + rate * order + math.log(1 / delta) / order
    band = account(SubsampledGaussian(sampler, sigma, 1 / n, n), delta)
    return (band.low if sampler is Sampler.POISSON_USERS else band.up) / stated


def revealed_epsilon_by_sums(q: float, sigma: float, steps: int, delta: float) -> float:
    """A second route to the participation-revealed ε: plain sums."""
    j = np.arange(1, steps + 1)
    mu = 2 * np.sqrt(j) / sigma

    def excess(epsilon: float) -> float:
        curve = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        return float(binom.pmf(j, steps, q) @ curve) - delta

    return float(brentq(excess, 0.0, 50.0, xtol=1e-12))


def _attack(effort: Effort, seed: int) -> Fact:
    """Run the mechanism and tell two element-neighbours apart; Clopper-Pearson bounds at 99.9% each."""
    rng = np.random.default_rng([seed, 2])
    runs = {Effort.SMOKE: 200_000, Effort.QUICK: 1_000_000, Effort.PAPER: 10_000_000}[effort]
    q, sigma, steps, others, delta = 0.05, 1.0, 10, 12, 1e-2
    stated = claimed(SubsampledGaussian(Sampler.POISSON_USERS, sigma, q, steps), delta)
    hits = []
    for sign in (1, -1):  # the changed element's clipped gradient, in units of ρ; the user's others sum to ``others``
        count = 0
        for _ in range(runs // 100_000):
            present = rng.random((100_000, steps)) < q
            seen = present * (others + sign) + sigma * rng.normal(size=present.shape)
            # Take part or not is plain to see; then add up what points to +1.
            evidence = np.where(seen > others / 2, 2 * (seen - others) / sigma**2, 0.0).sum(1)
            count += int((evidence > stated).sum())
        hits.append(count)
    low, _ = clopper_pearson(hits[0], runs, 0.999)
    _, up = clopper_pearson(hits[1], runs, 0.999)
    found = low - math.exp(stated) * up
    return printed(
        f"Attack on {runs} runs (q = {q:g}, σ = {sigma:g}, T = {steps}, {others} other elements): at the printed ε = "
        f"{stated:.4g} for δ = {delta:g}, P(S) - e^ε Q(S) ≥ {found:.4g} with 99.8% confidence.",
        found <= delta,
        promised_delta=delta,
    )
