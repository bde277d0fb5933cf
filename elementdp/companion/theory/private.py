"""Private M-estimation with elements (eqn:private-element-sgd), for three samplers, and its limiting covariances."""

from collections.abc import Sequence

import numpy as np

from elementdp.companion.theory.iteration import NoisySteps
from elementdp.companion.theory.losses import FloatArray
from elementdp.companion.theory.users import UserPopulation
from elementdp.errors import ArgumentError, at_least, positive
from elementdp.privacy import Sampler

SAMPLERS = (Sampler.POISSON_USERS, Sampler.FIXED_USERS, Sampler.POISSON_PAIRS)


def step_scatter(users: UserPopulation, sampler: Sampler) -> FloatArray:
    """m times the covariance, as n → ∞ with q = m/n, of one step's sampled average gradient at θ*.

    Σ_el when users are sampled (either way: the mean gradient is 0 at θ*, so the second moment of
    Poisson sampling is the covariance of fixed-size sampling); E Σ_k g_k g_kᵀ when pairs are.
    """
    if sampler in (Sampler.POISSON_USERS, Sampler.FIXED_USERS):
        return users.user_scatter
    if sampler is Sampler.POISSON_PAIRS:
        return users.pair_scatter
    raise ArgumentError("sampler", sampler, "one of " + ", ".join(SAMPLERS))


def step_noise(users: UserPopulation, sampler: Sampler, m: int, rho: float, sigma: float) -> FloatArray:
    """Covariance of one step's gradient error: the sampler's over m, and the privacy noise (ρσ/m)²I."""
    return step_scatter(users, sampler) / m + (rho * sigma / m) ** 2 * np.eye(users.dimension)


def private_limit(
    users: UserPopulation, sampler: Sampler, m: int, gamma: float, rho: float, sigma: float
) -> FloatArray:
    """Limiting covariance of √n(θ̄ - θ*): H⁻¹(Σ_el + (S/m + ρ²σ²I/m²)/γ)H⁻¹ with the sampler's S.

    With users sampled this is proposition:private-normality; with pairs it is its counterpart for the repaired method.
    """
    return users.sandwich(users.user_scatter + step_noise(users, sampler, m, rho, sigma) / gamma)


def private_averages(
    users: UserPopulation,
    sampler: Sampler,
    n: int,
    m: int,
    checkpoints: Sequence[int],
    setting: NoisySteps,
    replications: int,
    rng: np.random.Generator,
    *,
    rho: float | None = None,
    start: FloatArray | None = None,
) -> FloatArray:
    """θ̄_k at every checkpoint, (checkpoint, replication, d), of θ - α_k(sampled sum + ρσW)/m.

    The sign is that of descent; Θ is the whole space and ρ at least the Lipschitz constant, so neither
    projection acts. Users of one kind are exchangeable, so a step needs only how many of each kind (or
    pair) were drawn: binomial or hypergeometric counts, exact in distribution.
    """
    at_least("m", m, 1)
    if m > n:
        raise ArgumentError("m", m, f"at most n = {n}")
    rho = users.element_lipschitz if rho is None else positive("rho", rho)
    if rho < users.element_lipschitz:
        raise ArgumentError("rho", rho, f"at least {users.element_lipschitz:.4g}, below which clipping moves θ*")
    step_scatter(users, sampler)  # refuses an unknown sampler before any work
    d = users.dimension
    counts = rng.multinomial(n, users.p, size=replications).T.copy()
    first = np.zeros(d) if start is None else start
    theta = np.tile(first[:, None], (1, replications))
    total = np.zeros_like(theta)
    averages = np.empty((len(checkpoints), replications, d))
    marks = {k: position for position, k in enumerate(checkpoints)}
    pair_counts = counts[users.pair_owner]
    responses, labels = users.x, users.y[:, None]
    for k, alpha in enumerate(setting.step_sizes(checkpoints[-1]), start=1):
        total += theta
        if sampler is Sampler.POISSON_PAIRS:
            drawn = rng.binomial(pair_counts, m / n)
        elif sampler is Sampler.POISSON_USERS:
            drawn = rng.binomial(counts, m / n)[users.pair_owner]
        else:
            drawn = _without_replacement(counts, m, rng)[users.pair_owner]
        weight = drawn[users.pair] * users.share[:, None]
        summed = users.x.T @ (weight * users.loss.slope(responses @ theta, labels))
        theta = theta - (alpha / m) * (summed + rho * setting.sigma * rng.standard_normal(theta.shape))
        if k in marks:
            averages[marks[k]] = (total / k).T
    return averages


def _without_replacement(counts: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """m users drawn from each column's n without replacement, counted by kind: one hypergeometric draw at a time."""
    drawn = np.empty_like(counts)
    left = np.full(counts.shape[1], m)
    behind = counts.sum(axis=0)
    for kind, number in enumerate(counts):
        behind = behind - number
        drawn[kind] = rng.hypergeometric(number, behind, left)
        left = left - drawn[kind]
    return drawn
