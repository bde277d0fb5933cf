"""Noisy stochastic approximation on a fixed sample: Theorem 1, its lemmas, and its private form with elements."""

from elementdp.asymptotics.agreement import covariance_agreement, normality_pvalue, projections, simulation_error
from elementdp.asymptotics.iteration import Setting, noisy_averages
from elementdp.asymptotics.lemmas import LemmaErrors, lemma_errors, one_step_distance, predicted_rates
from elementdp.asymptotics.linearised import averaging_factors, finite_covariance, iteration_covariance, matrix_error
from elementdp.asymptotics.losses import Logistic, MarginLoss, PseudoHuber
from elementdp.asymptotics.models import Model, aprox, gradient_map, model_value
from elementdp.asymptotics.multiplier import multiplier_covariance, multiplier_draws
from elementdp.asymptotics.population import Population, logistic_population, robust_population
from elementdp.asymptotics.private import private_averages, private_limit, step_noise, step_scatter
from elementdp.asymptotics.theorem import GAMMAS, RADIUS, SIGMAS, STEP_SIZES, Cell, grid_settings, run_grid
from elementdp.asymptotics.users import UserPopulation, example_users, iid_users

__all__ = [
    "GAMMAS",
    "RADIUS",
    "SIGMAS",
    "STEP_SIZES",
    "Cell",
    "LemmaErrors",
    "Logistic",
    "MarginLoss",
    "Model",
    "Population",
    "PseudoHuber",
    "Setting",
    "UserPopulation",
    "aprox",
    "averaging_factors",
    "covariance_agreement",
    "example_users",
    "finite_covariance",
    "gradient_map",
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
