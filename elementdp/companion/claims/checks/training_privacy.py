"""The check of the privacy of the iterates: the corollaries' ε against what such runs really have."""

import math

import numpy as np
from scipy.stats import beta, binom, norm

from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Fact, Finding, Gap, Role
from elementdp.privacy import Sampler, SubsampledGaussian, Unit, account, claimed
from elementdp.privacy.digits import rounded_down, rounded_up


@check("sgd-privacy")
def sgd_privacy(effort: Effort, seed: int) -> Finding:
    """The ε of the corollaries against what runs with these settings really have."""
    q, sigma, steps, delta = 0.01, 1.0, 100, 1e-5
    users = SubsampledGaussian(Sampler.POISSON_USERS, sigma, q, steps)
    printed, real = claimed(users, delta), account(users, delta)
    attack = _attack(effort, seed)
    growth = [_vanishing(n) for n in (10**2, 10**4, 10**6)]
    pairs = account(SubsampledGaussian(Sampler.POISSON_PAIRS, sigma, q, steps), delta)
    whole = SubsampledGaussian(Sampler.POISSON_USERS, 4 * sigma, q, steps, Unit.USER, 4)
    fixed = SubsampledGaussian(Sampler.FIXED_USERS, 4 * sigma, q, steps, Unit.USER, 4)
    whole_real, fixed_real = account(whole, delta), account(fixed, delta)
    counted = SubsampledGaussian(Sampler.POISSON_PAIRS, 3.0, 0.9, 1, Unit.USER, 8)
    counted_real = account(counted, delta)
    return Finding(
        (
            Fact(
                Role.PRINTED,
                f"Users sampled, q = {q:g}, σ = {sigma:g}, T = {steps}, δ = {delta:g}: the corollary says ε = "
                f"{printed:.4g}. If users have other elements that show their participation, ε is at least "
                f"{rounded_down(real.low, 4)}.",
                real.low <= printed,
            ),
            Fact(Role.PRINTED, attack.text, attack.holds),
            Fact(
                Role.PRINTED,
                "eqn:epsilon-level-sgd with m = 1, T = n, σ = 2, δ = 10⁻³ against the true ε: "
                + "; ".join(f"n = {n:.0e}: {said:.3g} against {true:.3g}" for n, said, true in growth)
                + ". No O(1) factor covers that.",
                growth[-1][2] / growth[-1][1] <= 2 * growth[0][2] / growth[0][1],
            ),
            Fact(
                Role.PRINTED,
                f"Whole users (corollary:all-thetas-user-level), K∧M = 4, σ = {4 * sigma:g}: printed ε = "
                f"{claimed(whole, delta):.4g}, true ε at most {rounded_up(whole_real.up, 4)} under Poisson sampling.",
                whole_real.up <= claimed(whole, delta),
            ),
            Fact(
                Role.PRINTED,
                f"The same with fixed-size sampling: printed ε = {claimed(fixed, delta):.4g}, true ε at least "
                f"{rounded_down(fixed_real.low, 4)}: when the changed user is not drawn another is, who can point the "
                "other way.",
                fixed_real.low <= claimed(fixed, delta),
            ),
            Fact(
                Role.REPAIRED,
                f"Sampling (user, element) pairs instead, the printed pair is the right one: true ε between "
                f"{pairs:.4g}, below the printed {printed:.4g}.",
                pairs.up <= printed,
            ),
            Fact(
                Role.REPAIRED,
                f"For whole users pair sampling is no repair: with K∧M = 8, q = 0.9, σ = 3, one step, the corollary "
                f"would say {claimed(counted, delta):.4g} and the truth lies in {counted_real:.4g}"
                ", so the user-level corollary is kept for Poisson users.",
                claimed(counted, delta) < counted_real.low and whole_real.up <= claimed(whole, delta),
            ),
            Fact(
                Role.REPAIRED,
                f"Sampling users, ε = {rounded_up(real.up, 4)} is a guarantee: a run is a Gaussian mechanism with "
                "μ = 2√j/σ, "
                "j ~ Bin(T, q) the number of steps the user takes part in.",
                math.isclose(real.up, _mixture_epsilon(q, sigma, steps, delta), rel_tol=1e-6),
            ),
        ),
        repair="Element-level: sample (user, element) pairs, and the first corollary holds as printed; or sample users "
        "and count E over j ~ Bin(T, q) of the Gaussian δ(ε; 2√j/σ), without amplification. User-level: holds for "
        "Poisson sampling of users (reading user-level where the corollary prints element-level); for fixed-size "
        "sampling the pair needs the larger swing 2(K∧M), for sampled pairs the binomial count of shown elements.",
        gap=Gap.SUBSTANCE,
    )


def _vanishing(n: int) -> tuple[int, float, float]:
    """eqn:epsilon-level-sgd's infimum with m = 1, T = n, σ = 2, δ = 10⁻³, and the true ε of such a run."""
    delta, sigma = 1e-3, 2.0
    rate = n * (1 / n) ** 2 / sigma**2
    order = min(math.sqrt(math.log(1 / delta) / rate), sigma**2 * math.log(n))
    said = rate + rate * order + math.log(1 / delta) / order
    true = account(SubsampledGaussian(Sampler.POISSON_USERS, sigma, 1 / n, n), delta).low
    return n, said, true


def _mixture_epsilon(q: float, sigma: float, steps: int, delta: float) -> float:
    """A second route to the participation-revealed ε: plain sums and bisection."""
    j = np.arange(1, steps + 1)
    mu = 2 * np.sqrt(j) / sigma

    def excess(epsilon: float) -> float:
        curve = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        return float(binom.pmf(j, steps, q) @ curve) - delta

    low, high = 0.0, 50.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def _attack(effort: Effort, seed: int) -> Fact:
    """Run the mechanism and tell two element-neighbours apart; Clopper-Pearson bounds at 99.9% each."""
    rng = np.random.default_rng([seed, 2])
    runs = {Effort.SMOKE: 200_000, Effort.QUICK: 1_000_000, Effort.PAPER: 10_000_000}[effort]
    q, sigma, steps, others, delta = 0.05, 1.0, 10, 12, 1e-2
    printed = claimed(SubsampledGaussian(Sampler.POISSON_USERS, sigma, q, steps), delta)
    hits = []
    for sign in (1, -1):  # the changed element's clipped gradient, in units of ρ; the user's others sum to ``others``
        count = 0
        for _ in range(runs // 100_000):
            present = rng.random((100_000, steps)) < q
            seen = present * (others + sign) + sigma * rng.normal(size=present.shape)
            # Take part or not is plain to see; then add up what points to +1.
            evidence = np.where(seen > others / 2, 2 * (seen - others) / sigma**2, 0.0).sum(1)
            count += int((evidence > printed).sum())
        hits.append(count)
    low = float(beta.ppf(1e-3, hits[0], runs - hits[0] + 1))
    up = float(beta.ppf(1 - 1e-3, hits[1] + 1, runs - hits[1]))
    found = low - math.exp(printed) * up
    return Fact(
        Role.PRINTED,
        f"Attack on {runs} runs (q = {q:g}, σ = {sigma:g}, T = {steps}, {others} other elements): at the printed ε = "
        f"{printed:.4g} for δ = {delta:g}, P(S) - e^ε Q(S) ≥ {found:.4g} with 99.8% confidence.",
        found <= delta,
    )
