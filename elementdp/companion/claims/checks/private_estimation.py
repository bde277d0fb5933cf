"""proposition:private-normality and the example on generalized linear models."""

import math

import numpy as np
from scipy import stats

from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Fact, Finding, Gap, Role
from elementdp.companion.theory.agreement import covariance_agreement, normality_pvalue
from elementdp.companion.theory.glm import (
    misspecified_population,
    partition_effect,
    printed_risk,
    tied_optimum,
    tied_users,
    wellspecified_population,
)
from elementdp.companion.theory.iteration import Setting
from elementdp.companion.theory.linearised import iteration_covariance
from elementdp.companion.theory.privacy_rates import printed_rate, run, true_rate
from elementdp.companion.theory.private import private_averages, step_noise
from elementdp.companion.theory.users import UserPopulation, example_users, iid_users
from elementdp.privacy import Sampler, Unit, account, gaussian_delta, rounded_down, rounded_up

_SIZES = {Effort.SMOKE: (400, 100), Effort.QUICK: (1000, 400), Effort.PAPER: (8000, 4000)}  # n, replications
_LEVEL = 1e-4  # of each test: a repaired statement must not be doubted by bad luck
_TOGETHER, _APART = (3.0, 3.0, 3.0), (3.0, -3.0, 3.0)


@check("private-normality")
def private_normality(effort: Effort, seed: int) -> Finding:
    """The limit law for sampled users (printed) and sampled pairs (repaired); then the ε of both."""
    rng = np.random.default_rng(seed)
    return Finding(
        facts=(
            *(
                _law_fact(Role.PRINTED, sampler, effort, rng)
                for sampler in (Sampler.POISSON_USERS, Sampler.FIXED_USERS)
            ),
            _instance_fact(),
            _element_fact(),
            _user_fact(effort),
            _law_fact(Role.REPAIRED, Sampler.POISSON_PAIRS, effort, rng),
            _pair_fact(effort),
        ),
        repair=(
            "Project once, at the end of a step (or ask for losses Lipschitz on the whole space), and let every (user, "
            "element) pair flip its own coin of chance q = m/n. Then √n(θ̄ - θ*) is asymptotically "
            "normal with covariance H⁻¹(Σ_el + (S/m + ρ²σ²I/m²)/γ)H⁻¹, S = E Σ_k g_k g_kᵀ the second moments of the "
            "elements' gradients at θ*, and the run is (O(1)ε(σ), δ)-element-private. Sampling users keeps the printed "
            "covariance, but its element-level ε does not go to 0 with n unless the number of elements a user may hold "
            "is bounded, and then with a constant that grows with that number."
        ),
        gap=Gap.SUBSTANCE,
    )


def _law_fact(role: Role, sampler: Sampler, effort: Effort, rng: np.random.Generator) -> Fact:
    n, replications = _SIZES[effort]
    m, setting, gammas = 2, Setting(0.25, 0.7, 0.5), (0.5, 2.0)
    pvalues, wrong, normal = [], [], []
    for tilt in (_TOGETHER, _APART):
        users = example_users(tilt)
        other = Sampler.POISSON_USERS if sampler is Sampler.POISSON_PAIRS else Sampler.POISSON_PAIRS
        steps = [round(gamma * n) for gamma in gammas]
        averages = private_averages(users, sampler, n, m, steps, setting, replications, rng)
        for k, average in zip(steps, averages, strict=True):
            draws = math.sqrt(n) * (average - users.optimum)
            pvalues.append(covariance_agreement(draws, finite_law(users, sampler, n, m, k, setting)).pvalue)
            wrong.append(covariance_agreement(draws, finite_law(users, other, n, m, k, setting)).pvalue)
            normal.append(normality_pvalue(draws))
    return Fact(
        role,
        f"{sampler.words}, m = {m}, σ = {setting.sigma:g}, n = {n}, {replications} replications, γ = 1/2 and 2, "
        f"users whose elements pull together or apart: the covariance passes its test "
        f"(smallest p-value {min(pvalues):.2g}) and so does normality ({min(normal):.2g}); "
        f"with the other sampler's covariance the smallest is {min(wrong):.1g}.",
        min(pvalues) > _LEVEL and min(normal) > _LEVEL,
    )


def finite_law(users: UserPopulation, sampler: Sampler, n: int, m: int, k: int, setting: Setting) -> np.ndarray:
    """n·cov(θ̄_k) of the linearised private iteration: the proposition before its limit."""
    noise = step_noise(users, sampler, m, users.element_lipschitz, setting.sigma)
    inside = iteration_covariance(users.hessian, noise, k, setting)
    return np.asarray(users.sandwich(users.user_scatter) + inside * n / k)


def _instance_fact() -> Fact:
    """Algorithm 1 on Θ = [-1, 1] with two 1-Lipschitz elements, by hand: ρ = L₀ = 1, m = 1, no noise."""
    alpha, rho = 0.2, 1.0

    def clipped(theta: float, gradient: float) -> tuple[float, float]:
        moved = min(1.0, max(-1.0, theta - alpha * gradient))
        length = (moved - theta) / alpha
        return length, max(-rho, min(rho, length))

    inside = 0.9
    ends = inside + alpha * 2 * clipped(inside, -1.0)[1]
    outside = 1.5
    length, cut = clipped(outside, 0.0)
    return Fact(
        Role.PRINTED,
        f"an instance of eqn:sgd-update-sequence: on Θ = [-1, 1] from θ = {inside:g} with α = {alpha:g}, two "
        f"elements of gradient -1 step to 1 each and together to {ends:.3g}, outside Θ; from θ = {outside:g}, where "
        f"noise may lead, the step back has length {abs(length):.3g} and is clipped to {abs(cut):.3g} although ρ = L₀.",
        ends <= 1 and length == cut,
    )


def _element_fact() -> Fact:
    """(i): as n grows ε(σ) → 0, but participations are Poisson(γm) and each is shown by the user's other elements."""
    m, gamma, sigma, delta = 5, 1.0, math.sqrt(2), 1e-6
    sizes = (10**3, 10**6)
    truth = [true_rate(Sampler.POISSON_USERS, n, m, gamma, sigma, delta) for n in sizes]
    printed = [printed_rate(n, m, gamma, sigma, delta) for n in sizes]
    counts = np.arange(1, 400)
    limit = float(
        stats.poisson.pmf(counts, gamma * m) @ [gaussian_delta(truth[1], 2 * math.sqrt(j) / sigma) for j in counts]
    )
    return Fact(
        Role.PRINTED,
        f"(i) with users sampled, m = {m}, γ = 1, σ² = 2, δ = {delta:g}, no bound on a user's elements: "
        f"from n = {sizes[0]} to {sizes[1]} the printed ε(σ) falls from {printed[0]:.3g} to {printed[1]:.3g}, "
        f"the true ε goes from {truth[0]:.4g} to {truth[1]:.4g} (at which Poisson(γm) participations, the limit n → ∞, "
        f"leave δ = {limit:.3g}): the ratio grows from {truth[0] / printed[0]:.3g} to "
        f"{truth[1] / printed[1]:.3g} and has no bound.",
        truth[1] / printed[1] <= truth[0] / printed[0],
    )


def _user_fact(effort: Effort) -> Fact:
    """(ii): the printed pair is the right one when a whole user is replaced, so only the O(1) is in question."""
    m, gamma, tau, delta, elements = 5, 1.0, math.sqrt(2), 1e-6, 3
    sizes = (10**3, 10**4) if effort is Effort.SMOKE else (10**3, 10**4, 10**5)
    events = [run(Sampler.POISSON_USERS, n, m, gamma, elements * tau, elements, Unit.USER) for n in sizes]
    ratios = [account(e, delta).up / printed_rate(n, m, gamma, tau, delta) for e, n in zip(events, sizes, strict=True)]
    return Fact(
        Role.PRINTED,
        f"(ii) for whole users with at most {elements} elements and σ² = {elements**2}·2 the true ε is "
        + ", ".join(f"{ratio:.2g}" for ratio in ratios)
        + " times ε(τ) for n = "
        + ", ".join(map(str, sizes))
        + ": an O(1).",
        max(ratios) <= 2,
    )


def _pair_fact(effort: Effort) -> Fact:
    m, gamma, delta = 5, 1.0, 1e-6
    sizes = (10**3, 10**4) if effort is Effort.SMOKE else (10**3, 10**4, 10**5, 10**6)
    ratios = [
        true_rate(Sampler.POISSON_PAIRS, n, m, gamma, sigma, delta) / printed_rate(n, m, gamma, sigma, delta)
        for sigma in (math.sqrt(2), 4.0)
        for n in sizes
    ]
    return Fact(
        Role.REPAIRED,
        f"(i) with pairs sampled, same m, γ, δ, σ² = 2 and 16, n = {sizes[0]} to {sizes[-1]}: the true ε is between "
        f"{rounded_down(min(ratios))} and {rounded_up(max(ratios))} times the printed ε(σ), whatever a user's other "
        f"elements.",
        max(ratios) <= 2,  # the printed bound drops a factor 2 of the pair's leading term, no more
    )


@check("glm")
def glm(effort: Effort, seed: int) -> Finding:
    """θ*, information and variance under partitions of the covariates, of the labels, and with dependent labels."""
    rng = np.random.default_rng(seed)
    well, bad = wellspecified_population(), misspecified_population()
    partitions = {"one element": [0] * 8, "two": [0, 0, 0, 0, 0, 0, 1, 1], "four": [0, 0, 1, 1, 2, 2, 3, 3]}
    mixed, fixed = {1: 0.5, 3: 0.5}, {3: 1.0}
    effects = {name: partition_effect(iid_users(well, mixed, np.array(c))) for name, c in partitions.items()}
    balanced = {name: partition_effect(iid_users(well, fixed, np.array(c))) for name, c in partitions.items()}
    missed = [partition_effect(iid_users(bad, mixed, np.array(c))).optimum for c in partitions.values()]
    labels = partition_effect(iid_users(well, mixed, np.tile([0, 1], 4)))
    moved = max(float(np.linalg.norm(optimum - missed[0])) for optimum in missed)
    drift = max(float(np.abs(effect.optimum - well.optimum).max()) for effect in effects.values())
    pooled, tied = tied_users(0.1, split=True), tied_users(0.1, split=False)
    theta = np.array([0.2, -0.4])
    uneven = np.array([0.7])
    point_gap = abs(printed_risk(tied, uneven, "point") - tied.risk(uneven))
    lopsided = _uneven_users()
    user_gap = abs(printed_risk(lopsided, theta, "user") - lopsided.risk(theta))
    random = [iid_users(well, mixed, np.repeat(rng.integers(4, size=4), 2)) for _ in range(8)]
    random_drift = max(float(np.abs(users.optimum - well.optimum).max()) for users in random)
    random_gap = max(abs(printed_risk(users, theta) - users.risk(theta)) for users in random)
    return Finding(
        facts=(
            Fact(
                Role.PRINTED,
                f"well specified, labels independent given their own covariates: three partitions of the covariates "
                f"into 1, 2 and 4 elements leave θ* where it was, to {drift:.0e}.",
                drift < 1e-9,
            ),
            Fact(
                Role.PRINTED,
                "asymptotic variance (trace) with 1, 2, 4 elements: users with one or three data points "
                + ", ".join(f"{effect.variance:.4g}" for effect in effects.values())
                + " (finer is better); users with three data points each "
                + ", ".join(f"{effect.variance:.4g}" for effect in balanced.values())
                + " (splitting makes it worse): it may go either way.",
                effects["four"].variance < effects["one element"].variance
                and balanced["two"].variance > balanced["one element"].variance,
            ),
            Fact(
                Role.PRINTED,
                f"any partition: if elements may depend on the label, splitting by y moves θ* by "
                f"{float(np.linalg.norm(labels.optimum - well.optimum)):.3g} in the same well-specified model.",
                float(np.linalg.norm(labels.optimum - well.optimum)) < 1e-9,
            ),
            Fact(
                Role.PRINTED,
                f"a logistic model that is right for a random data point (θ = 0), where users with one point say "
                f"yes more often than users with three: one element per point gives θ* = "
                f"{float(pooled.optimum[0]):.1g}, one element for all gives "
                f"{float(tied.optimum[0]):.4g} (closed form {tied_optimum(0.1):.4g}).",
                abs(float(tied.optimum[0]) - float(pooled.optimum[0])) < 1e-9,
            ),
            Fact(
                Role.PRINTED,
                f"R_el = Σ p_k E[ℓ | X ∈ c_k]: if X is any data point, off by {point_gap:.3g} for those users; if X is "
                f"a random data point of a random user, off by {user_gap:.3g} where some users hold one "
                f"point and others five.",
                max(point_gap, user_gap) < 1e-12,
            ),
            Fact(
                Role.REPAIRED,
                f"with every label's mean right given all the user's covariates, eight random partitions of the "
                f"covariates move θ* by at most {random_drift:.0e}; with data points drawn independently from one law, "
                f"whatever their number, the formula for R_el is off by at most {random_gap:.0e}; misspecified, θ* "
                f"moves by up to {moved:.3g} between them.",
                random_drift < 1e-9 and random_gap < 1e-12 and moved > 1e-3,
            ),
        ),
        repair=(
            "θ* stays for partitions of the covariates (not of the labels) if, given all of a user's covariates, each "
            "label's mean is the model's at its own covariate. The formula for R_el needs the user's data points to be "
            "independent draws of one law, the same for users with many points as for users with few."
        ),
        gap=Gap.ASSUMPTION,
    )


def _uneven_users() -> UserPopulation:
    """Two kinds of users: one point in element 0 and four in element 1; or a single point in element 0."""
    well = wellspecified_population()
    x = well.x[[0, 2, 2, 4, 6, 6]]
    return UserPopulation(
        well.loss,
        x,
        np.array([1.0, 1.0, -1.0, 1.0, -1.0, -1.0]),
        np.array([0, 0, 0, 0, 0, 1]),
        np.array([0, 1, 1, 1, 1, 0]),
        np.array([0.5, 0.5]),
    )
