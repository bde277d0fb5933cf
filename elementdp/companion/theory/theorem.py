"""Theorem 1 (theorem:normality) over its grid: simulated laws of √n(θ̄ - θ*) beside the limit and the finite-n law."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elementdp.companion.theory.agreement import CovarianceAgreement, covariance_agreement, normality_pvalue
from elementdp.companion.theory.iteration import NoisySteps, Scheme, noisy_averages
from elementdp.companion.theory.linearised import finite_covariance
from elementdp.companion.theory.losses import FloatArray
from elementdp.companion.theory.population import Population

GAMMAS = (0.5, 1.0, 2.0, 4.0)
SIGMAS = (0.0, 0.5, 2.0)
STEP_SIZES = {0.55: 0.06, 0.75: 0.15, 0.9: 0.35}
"""α₀ for each β. Both example problems have curvature between 3 and 13, so α₀ times curvature stays between 0.2 and 5:
much less and the start is never forgotten, much more and the first steps fly off."""
RADIUS = 0.5
"""Θ is the ball of this radius; both θ* lie well inside."""
PRINTED, INSIDE = Scheme(radius=RADIUS), Scheme(radius=RADIUS, inside=True)
"""The iteration as printed, and with one more projection after the noise."""


@dataclass(frozen=True, eq=False)
class LawCell:
    """One (γ, β, σ): the draws of √n(θ̄ - θ*) and how they compare."""

    gamma: float
    setting: NoisySteps
    draws: FloatArray
    limit: FloatArray  # covariance of Theorem 1
    finite: FloatArray  # the same before the limit, linearised
    against_limit: CovarianceAgreement
    against_finite: CovarianceAgreement
    normality: float  # p-value, corrected for the projections

    @property
    def shift(self) -> float:
        """|mean of the draws| in units of the limit law: the bias that has not died out yet."""
        mean = self.draws.mean(axis=0)
        return float(np.sqrt(mean @ np.linalg.solve(self.limit, mean)))


def grid_settings(sigmas: Sequence[float] = SIGMAS) -> list[NoisySteps]:
    """Every (β, σ) of the grid."""
    return [NoisySteps(alpha, beta, sigma) for beta, alpha in STEP_SIZES.items() for sigma in sigmas]


def run_grid(
    population: Population,
    n: int,
    replications: int,
    rng: np.random.Generator,
    *,
    settings: Sequence[NoisySteps] | None = None,
    gammas: Sequence[float] = GAMMAS,
    scheme: Scheme = PRINTED,
) -> list[LawCell]:
    """Simulate every cell: replications with samples of size n, run to the largest γ and read off on the way."""
    chosen = grid_settings() if settings is None else list(settings)
    steps = [round(gamma * n) for gamma in gammas]
    averages = noisy_averages(population, n, steps, chosen, replications, rng, scheme)
    cells = []
    for row, gamma in enumerate(gammas):
        for column, setting in enumerate(chosen):
            draws = np.sqrt(n) * (averages[row, column] - population.optimum)
            limit = population.limit_covariance(gamma, setting.sigma)
            finite = finite_covariance(population, n, steps[row], setting)
            cells.append(
                LawCell(
                    gamma,
                    setting,
                    draws,
                    limit,
                    finite,
                    covariance_agreement(draws, limit),
                    covariance_agreement(draws, finite),
                    normality_pvalue(draws),
                )
            )
    return cells
