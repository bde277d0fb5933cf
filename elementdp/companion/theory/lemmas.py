"""The five lemmas behind Theorem 1, measured: each is an average of errors that has to vanish as k grows."""

from dataclasses import dataclass

import numpy as np

from elementdp.companion.theory.iteration import Setting, draw_samples, frequencies
from elementdp.companion.theory.losses import FloatArray
from elementdp.companion.theory.models import Model, aprox
from elementdp.companion.theory.population import Population


@dataclass(frozen=True)
class LemmaErrors:
    """The five quantities at one (n, k), averaged over replications, and the check of the decomposition itself."""

    distance: float  # E|θ_k - θ̂_n|² (lemma:convergence-of-iterates)
    remainder: float  # E (1/√k) Σ|R_n(θ_i)| (lemma:remainders-go-to-zero)
    local: float  # root mean square of (1/√k) Σ B_i ζ_i (lemma:local-grad-errors-go-to-zero)
    model: float  # E (1/√k) Σ|ε_i| (lemma:subgrad-errors-go-to-zero)
    matrix: float  # root mean square of (1/√k) Σ A_i(∇ℓ_i(θ̂_n) + σZ_i) (lemma:matrix-inverse-errors-go-to-zero)
    residual: float  # largest |decomposition - √k Δ̄_k| with the minus signs it needs
    residual_printed: float  # root mean square of the same with the plus signs printed in eqn:proper-recursion


def predicted_rates(beta: float) -> dict[str, float]:
    """The powers of k the proofs give for the five quantities, logarithms aside."""
    return {
        "distance": -beta,
        "remainder": 0.5 - beta,
        "local": -beta / 2,
        "model": 0.5 - beta,
        "matrix": -(1 - beta) / 2,
    }


def lemma_errors(
    population: Population,
    n: int,
    k: int,
    setting: Setting,
    replications: int,
    rng: np.random.Generator,
    *,
    model: Model = Model.PROXIMAL,
    radius: float = np.inf,
) -> LemmaErrors:
    """Run the iteration (eqn:private-update-sequence) beside the terms of eqn:proper-recursion.

    Σ_i B_i^k e_i is the sum of the linear recursion u_{j+1} = (I - α_j H_n)u_j + α_j e_j, so no matrix
    product is ever formed. Samples are frequencies of atoms, which makes ∇L_n cost J and not n.
    """
    d = population.dimension
    weights = frequencies(population, draw_samples(population, n, replications, rng))
    fitted = population.minimiser(weights)
    hessian = population.hessian(fitted, weights)
    cumulative = np.cumsum(weights, axis=1)
    alpha = setting.step_sizes(k)

    theta = np.zeros((replications, d))
    first = theta - fitted
    walks = {name: np.zeros((replications, d)) for name in ("start", "noise", "local", "remainder", "model")}
    walks["start"] = first.copy()
    sums = {name: np.zeros((replications, d)) for name in walks}
    noise_sum, delta_sum = np.zeros((replications, d)), np.zeros((replications, d))
    remainder_size, model_size = np.zeros(replications), np.zeros(replications)
    for a in alpha:
        delta = theta - fitted
        delta_sum += delta
        atom = np.minimum((cumulative < rng.random((replications, 1))).sum(axis=1), len(population.p) - 1)
        x, y = population.x[atom], population.y[atom]
        at_fit = population.loss.slope((x * fitted).sum(axis=1), y)[:, None] * x
        here = population.loss.slope((x * theta).sum(axis=1), y)[:, None] * x
        z = rng.standard_normal((replications, d))
        noise = at_fit + setting.sigma * z
        full = population.gradient(theta, weights)
        remainder = full - np.einsum("rab,rb->ra", hessian, delta)
        local = (here - at_fit) - full
        moved = aprox(model, population.loss, theta.T, x.T, y, a, radius).T
        model_error = (theta - moved) / a - here
        theta = moved - a * setting.sigma * z
        noise_sum += noise
        remainder_size += np.linalg.norm(remainder, axis=1)
        model_size += np.linalg.norm(model_error, axis=1)
        driven = {"start": 0.0, "noise": noise, "local": local, "remainder": remainder, "model": model_error}
        for name, force in driven.items():
            walks[name] = walks[name] - a * np.einsum("rab,rb->ra", hessian, walks[name]) + a * force
            sums[name] += walks[name]
    root = np.sqrt(k)
    inverse = np.linalg.inv(hessian)
    forced = sums["noise"] + sums["local"] + sums["remainder"] + sums["model"]
    shifted = delta_sum - first + (theta - fitted)  # the recursion sums θ_2..θ_{k+1}, the average θ_1..θ_k
    matrix = (sums["noise"] - np.einsum("rab,rb->ra", inverse, noise_sum)) / root
    return LemmaErrors(
        distance=float(((theta - fitted) ** 2).sum(axis=1).mean()),
        remainder=float(remainder_size.mean() / root),
        local=_rms(sums["local"] / root),
        model=float(model_size.mean() / root),
        matrix=_rms(matrix),
        residual=float(np.abs(shifted - (sums["start"] - forced)).max() / root),
        residual_printed=_rms((shifted - (sums["start"] + forced)) / root),
    )


def one_step_distance(
    population: Population, theta: FloatArray, centre: FloatArray, alpha: float, sigma: float, radius: float = np.inf
) -> float:
    """E[|θ_{k+1} - centre|² | θ_k = θ] of eqn:sgd-update-sequence on the whole population: an exact sum."""
    column = theta[:, None] * np.ones(len(population.p))
    moved = aprox(Model.FIRST_ORDER, population.loss, column, population.x.T, population.y, alpha, radius)
    inside = ((moved - centre[:, None]) ** 2).sum(axis=0)
    return float(population.p @ inside + alpha**2 * sigma**2 * population.dimension)


def _rms(vectors: FloatArray) -> float:
    return float(np.sqrt((vectors**2).sum(axis=1).mean()))
