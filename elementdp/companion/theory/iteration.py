"""The noisy iteration on a fixed sample (eqn:sgd-update-sequence), many replications and settings at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elementdp.companion.theory.losses import FloatArray
from elementdp.companion.theory.models import Model, aprox
from elementdp.companion.theory.population import Population
from elementdp.errors import ArgumentError, at_least, nonnegative, positive

_CHUNK = 64  # steps whose random numbers are drawn together: large enough to amortise, small enough for the cache


@dataclass(frozen=True)
class Setting:
    """Step sizes α_k = α₀k^(-β) and noise level σ of one run."""

    alpha: float
    beta: float
    sigma: float = 0.0

    def __post_init__(self) -> None:
        positive("alpha", self.alpha)
        nonnegative("sigma", self.sigma)
        if not 0.5 < self.beta < 1:
            raise ArgumentError("beta", self.beta, "in (1/2, 1)")

    def step_sizes(self, steps: int) -> FloatArray:
        """α_1, ..., α_steps."""
        return np.asarray(self.alpha * np.arange(1, steps + 1) ** -self.beta)


def noisy_averages(
    population: Population,
    n: int,
    checkpoints: Sequence[int],
    settings: Sequence[Setting],
    replications: int,
    rng: np.random.Generator,
    *,
    model: Model = Model.FIRST_ORDER,
    radius: float = np.inf,
    inside: bool = False,
    start: FloatArray | None = None,
    block: int = 500,
) -> FloatArray:
    """θ̄_k at every checkpoint k, as an array (checkpoint, setting, replication, d).

    Each replication draws its own sample of n observations, then indices uniform on {1..n} and standard
    normal Z; its settings share these draws. θ_k does not depend on where the run stops, so one run to
    γn gives every smaller γ. Θ is the ball of ``radius``; as printed, noise is added after the projection and
    may leave Θ, and ``inside`` projects once more (the repair). Replications go through in
    blocks small enough to stay in the cache.
    """
    at_least("n", n, 1)
    at_least("replications", replications, 1)
    if list(checkpoints) != sorted(set(checkpoints)) or checkpoints[0] < 1:
        raise ArgumentError("checkpoints", list(checkpoints), "increasing whole numbers >= 1")
    theta1 = np.zeros(population.dimension) if start is None else np.asarray(start, dtype=float)
    run = _Run(population, n, tuple(checkpoints), tuple(settings), model, radius, inside, theta1)
    sizes = [min(block, replications - done) for done in range(0, replications, block)]
    return np.concatenate([run.block(size, rng) for size in sizes], axis=2)


@dataclass(frozen=True, eq=False)
class _Run:
    population: Population
    n: int
    checkpoints: tuple[int, ...]
    settings: tuple[Setting, ...]
    model: Model
    radius: float
    inside: bool
    start: FloatArray

    def block(self, size: int, rng: np.random.Generator) -> FloatArray:
        """The averages of ``size`` replications; vectors are (d, setting, replication) throughout."""
        population, n, d, last = self.population, self.n, self.population.dimension, self.checkpoints[-1]
        steps = np.stack([setting.step_sizes(last) for setting in self.settings], axis=1)[:, :, None]
        sigma = np.array([setting.sigma for setting in self.settings])[:, None]
        noisy = bool(np.any(sigma > 0))
        sample = draw_samples(population, n, size, rng)
        theta = np.tile(self.start[:, None, None], (1, len(self.settings), size))
        total = np.zeros_like(theta)
        averages = np.empty((len(self.checkpoints), len(self.settings), size, d))
        rows = np.arange(size)
        columns = population.x.T.copy()
        z = np.zeros((1, d, 1, size))
        marks = {k: position for position, k in enumerate(self.checkpoints)}
        for k in range(last):
            if k % _CHUNK == 0:
                length = min(_CHUNK, last - k)
                atoms = sample[rows, rng.integers(n, size=(length, size))]
                if noisy:
                    z = rng.standard_normal((length, d, 1, size))
            total += theta
            atom = atoms[k % _CHUNK]
            x, y = columns[:, None, atom], population.y[atom]
            theta = aprox(self.model, population.loss, theta, x, y, steps[k], self.radius)
            if noisy:
                theta -= (steps[k] * sigma) * z[k % _CHUNK]
                if self.inside:
                    theta *= np.minimum(1.0, self.radius / np.maximum(np.sqrt((theta**2).sum(axis=0)), 1e-300))
            if k + 1 in marks:
                averages[marks[k + 1]] = np.moveaxis(total / (k + 1), 0, -1)
        return averages


def draw_samples(population: Population, n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """``size`` samples of n observations each, as the numbers of their atoms."""
    kind = np.uint8 if len(population.p) <= 256 else np.uint16
    return rng.choice(len(population.p), size=(size, n), p=population.p).astype(kind)


def frequencies(population: Population, sample: np.ndarray) -> FloatArray:
    """The weights (row, atom) that turn the population's expectations into a sample's averages."""
    size, n = sample.shape
    atoms = len(population.p)
    flat = (np.arange(size)[:, None] * atoms + sample).ravel()
    return np.asarray(np.bincount(flat, minlength=size * atoms).reshape(size, atoms) / n)
