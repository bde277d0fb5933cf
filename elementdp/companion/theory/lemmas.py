"""The lemmas behind Theorem 1, measured: each is an average of errors that has to vanish as k grows."""

from dataclasses import dataclass

import numpy as np

from elementdp.companion.theory.iteration import NoisySteps, Scheme, draw_samples, frequencies
from elementdp.companion.theory.losses import FloatArray
from elementdp.companion.theory.models import aprox
from elementdp.companion.theory.population import Population


@dataclass(frozen=True)
class LemmaErrors:
    """The lemmas' quantities at one (n, k), averaged over replications, and the check of the decomposition itself."""

    distance: float  # E|θ_k - θ̂_n|² (lemma:convergence-of-iterates)
    remainder: float  # E (1/√k) Σ|R_n(θ_i)| (lemma:remainders-go-to-zero)
    local: float  # root mean square of (1/√k) Σ B_i ζ_i (lemma:local-grad-errors-go-to-zero)
    model: float  # E (1/√k) Σ|ε_i| (lemma:subgrad-errors-go-to-zero)
    matrix: float  # root mean square of (1/√k) Σ A_i(∇ℓ_i(θ̂_n) + σZ_i) (lemma:matrix-inverse-errors-go-to-zero)
    projection: float  # E (1/√k) Σ|e_i|, e_i what the projection after the noise takes off (the repair's lemma)
    projected: float  # share of steps that this projection moved
    over_bound: float  # largest |e_i| / (σ|Z_i|), which is at most 1
    residual: float  # largest |decomposition - √k Δ̄_k| with the minus signs it needs
    residual_printed: float  # root mean square of the same with the plus signs printed in eqn:proper-recursion


def predicted_rates(beta: float) -> dict[str, float]:
    """The powers of k the proofs give for the quantities, logarithms aside."""
    return {
        "distance": -beta,
        "remainder": 0.5 - beta,
        "local": -beta / 2,
        "model": 0.5 - beta,
        "matrix": -(1 - beta) / 2,
        "projection": 0.5 - beta,
    }


_FORCES = ("noise", "local", "remainder", "model", "projection")


def lemma_errors(
    population: Population,
    n: int,
    k: int,
    setting: NoisySteps,
    replications: int,
    rng: np.random.Generator,
    scheme: Scheme,
) -> LemmaErrors:
    """Run the iteration (eqn:private-update-sequence) beside the terms of eqn:proper-recursion.

    Σ_i B_i^k e_i is the sum of the linear recursion u_{j+1} = (I - α_j H_n)u_j + α_j e_j, so no matrix
    product is ever formed. Samples are frequencies of atoms, which makes ∇L_n cost J and not n.
    """
    walk = _Walk(population, draw_samples(population, n, replications, rng), setting.sigma, scheme)
    for alpha in setting.step_sizes(k):
        walk.step(float(alpha), rng)
    return walk.errors(k)


class _Walk:
    """All replications of one run, with the recursion of every error term beside it."""

    def __init__(self, population: Population, sample: np.ndarray, sigma: float, scheme: Scheme) -> None:
        self.population, self.sigma, self.scheme = population, sigma, scheme
        self.weights = frequencies(population, sample)
        self.fitted = population.minimiser(self.weights)
        self.hessian = population.hessian(self.fitted, self.weights)
        self.cumulative = np.cumsum(self.weights, axis=1)
        shape = self.fitted.shape
        self.theta = np.zeros(shape)
        self.first = self.theta - self.fitted
        self.walks = {name: np.zeros(shape) for name in _FORCES} | {"start": self.first.copy()}
        self.sums = {name: np.zeros(shape) for name in self.walks}
        self.noise_sum, self.delta_sum = np.zeros(shape), np.zeros(shape)
        self.sizes = {name: np.zeros(len(sample)) for name in ("remainder", "model", "projection")}
        self.moved, self.over = 0.0, 0.0

    def step(self, alpha: float, rng: np.random.Generator) -> None:
        """One step of the iteration and of every recursion."""
        forces = self._forces(alpha, rng)
        self.noise_sum += forces["noise"]
        for name, size in self.sizes.items():
            size += np.linalg.norm(forces[name], axis=1)
        for name, walk in self.walks.items():
            turned = walk - alpha * np.einsum("rab,rb->ra", self.hessian, walk)
            self.walks[name] = turned + alpha * forces[name] if name in forces else turned
            self.sums[name] += self.walks[name]

    def _forces(self, alpha: float, rng: np.random.Generator) -> dict[str, FloatArray]:
        """Move θ, and return the gradient noise and the four errors of this step."""
        population, theta, fitted = self.population, self.theta, self.fitted
        delta = theta - fitted
        self.delta_sum += delta
        replications = len(theta)
        atom = np.minimum((self.cumulative < rng.random((replications, 1))).sum(axis=1), len(population.p) - 1)
        x, y = population.x[atom], population.y[atom]
        at_fit = population.loss.slope((x * fitted).sum(axis=1), y)[:, None] * x
        here = population.loss.slope((x * theta).sum(axis=1), y)[:, None] * x
        z = self.sigma * rng.standard_normal(theta.shape)
        full = population.gradient(theta, self.weights)
        near = aprox(self.scheme.model, population.loss, theta.T, x.T, y, alpha, self.scheme.radius).T
        noisy = near - alpha * z
        self.theta = self.scheme.back(noisy.T).T
        taken = (noisy - self.theta) / alpha
        size = np.linalg.norm(taken, axis=1)
        self.moved += float((size > 1e-12).mean())
        if self.sigma:
            self.over = max(self.over, float((size / np.linalg.norm(z, axis=1)).max()))
        return {
            "noise": at_fit + z,
            "local": (here - at_fit) - full,
            "remainder": full - np.einsum("rab,rb->ra", self.hessian, delta),
            "model": (theta - near) / alpha - here,
            "projection": taken,
        }

    def errors(self, k: int) -> LemmaErrors:
        """What the lemmas speak about, after k steps."""
        root, sums = np.sqrt(k), self.sums
        forced = sum((sums[name] for name in _FORCES), np.zeros_like(self.theta))
        # The recursion sums θ_2..θ_{k+1}, the average θ_1..θ_k.
        shifted = self.delta_sum - self.first + (self.theta - self.fitted)
        plain = np.einsum("rab,rb->ra", np.linalg.inv(self.hessian), self.noise_sum)
        return LemmaErrors(
            distance=float(((self.theta - self.fitted) ** 2).sum(axis=1).mean()),
            remainder=float(self.sizes["remainder"].mean() / root),
            local=_rms(sums["local"] / root),
            model=float(self.sizes["model"].mean() / root),
            matrix=_rms((sums["noise"] - plain) / root),
            projection=float(self.sizes["projection"].mean() / root),
            projected=self.moved / k,
            over_bound=self.over,
            residual=float(np.abs(shifted - (sums["start"] - forced)).max() / root),
            residual_printed=_rms((shifted - (sums["start"] + forced)) / root),
        )


def one_step_distance(
    population: Population, theta: FloatArray, centre: FloatArray, alpha: float, sigma: float, radius: float = np.inf
) -> float:
    """E[|θ_{k+1} - centre|² | θ_k = θ] of eqn:sgd-update-sequence on the whole population: an exact sum."""
    column = theta[:, None] * np.ones(len(population.p))
    moved = aprox(Scheme().model, population.loss, column, population.x.T, population.y, alpha, radius)
    inside = ((moved - centre[:, None]) ** 2).sum(axis=0)
    return float(population.p @ inside + alpha**2 * sigma**2 * population.dimension)


def contraction(population: Population, reach: float, diameter: float, points: int = 41) -> float:
    """The c₀ = λ min{1, r/D} of the repaired recursion lemma, r = ``reach``, D = ``diameter``.

    λ is the least curvature of the risk within r of its minimiser (on a grid). Within r the risk exceeds its minimum
    by λd²/2; beyond, convexity makes it grow at least linearly along a ray, so by λrd/2 ≥ (λr/D)d²/2.
    """
    side = np.linspace(-reach, reach, points)
    shifts = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    shifts = shifts[np.linalg.norm(shifts, axis=1) <= reach]
    lowest = np.linalg.eigvalsh(population.hessian(population.optimum + shifts)).min()
    return float(lowest) * min(1.0, reach / diameter)


def _rms(vectors: FloatArray) -> float:
    return float(np.sqrt((vectors**2).sum(axis=1).mean()))
