"""Noisy stochastic approximation on a fixed sample: Theorem 1, its lemmas, and its private form with elements."""

from elementdp.companion.theory.agreement import covariance_agreement, normality_pvalue
from elementdp.companion.theory.iteration import NoisySteps, Scheme, noisy_averages
from elementdp.companion.theory.lemmas import contraction, lemma_errors, one_step_distance
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
from elementdp.companion.theory.private import private_averages, private_limit, step_scatter
from elementdp.companion.theory.theorem import RADIUS, STEP_SIZES, grid_settings, run_grid
from elementdp.companion.theory.users import UserPopulation, example_users, iid_users
