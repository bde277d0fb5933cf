"""Noisy stochastic approximation on a fixed sample: Theorem 1, its lemmas, and its private form with elements."""

from elementdp.companion.theory.agreement import covariance_agreement, normality_pvalue, projections, simulation_error
from elementdp.companion.theory.iteration import NoisySteps, Scheme, noisy_averages
from elementdp.companion.theory.lemmas import LemmaErrors, contraction, lemma_errors, one_step_distance, predicted_rates
from elementdp.companion.theory.linearised import (
    averaging_factors,
    finite_covariance,
    iteration_covariance,
    matrix_error,
)
from elementdp.companion.theory.losses import Logistic, MarginLoss, PseudoHuber
from elementdp.companion.theory.models import Model, aprox, model_value
from elementdp.companion.theory.multiplier import multiplier_covariance, multiplier_draws
from elementdp.companion.theory.population import Population, logistic_population, robust_population
from elementdp.companion.theory.private import private_averages, private_limit, step_noise, step_scatter
from elementdp.companion.theory.theorem import (
    GAMMAS,
    INSIDE,
    PRINTED,
    RADIUS,
    SIGMAS,
    STEP_SIZES,
    LawCell,
    grid_settings,
    run_grid,
)
from elementdp.companion.theory.users import UserPopulation, example_users, iid_users

__all__ = [
    "GAMMAS",
    "INSIDE",
    "PRINTED",
    "RADIUS",
    "SIGMAS",
    "STEP_SIZES",
    "LawCell",
    "LemmaErrors",
    "Logistic",
    "MarginLoss",
    "Model",
    "NoisySteps",
    "Population",
    "PseudoHuber",
    "Scheme",
    "UserPopulation",
    "aprox",
    "averaging_factors",
    "contraction",
    "covariance_agreement",
    "example_users",
    "finite_covariance",
    "grid_settings",
    "iid_users",
    "iteration_covariance",
    "lemma_errors",
    "logistic_population",
    "matrix_error",
    "model_value",
    "multiplier_covariance",
    "multiplier_draws",
    "noisy_averages",
    "normality_pvalue",
    "one_step_distance",
    "predicted_rates",
    "private_averages",
    "private_limit",
    "projections",
    "robust_population",
    "run_grid",
    "simulation_error",
    "step_noise",
    "step_scatter",
]
