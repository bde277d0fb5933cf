"""The mechanisms of Section 3 for counts and averages, each with the guarantee it carries."""

from elementdp.mechanisms.additive import (
    GaussianMechanism,
    LaplaceMechanism,
    Release,
    gaussian_average,
    laplace_average,
)
from elementdp.mechanisms.discrete import (
    IntegerRelease,
    discrete_gaussian,
    discrete_heavy_hitters,
    discrete_histogram,
)
from elementdp.mechanisms.heavy_hitters import heavy_hitters, indicator_sensitivity, item_users, ordering_loss
from elementdp.mechanisms.histogram import (
    PAPER_RHOS,
    HistogramRelease,
    cluster_sensitivity,
    histogram_noise_sd,
    private_histogram,
)
from elementdp.mechanisms.noise import (
    Calibration,
    paper_formula_is_proved,
    paper_variance,
    unit_sigma,
    wasted_variance,
)
from elementdp.mechanisms.projection import project, project_to_integers, projected_means
from elementdp.mechanisms.radius import RadiusGrid, TwoStageRelease, rho_for, two_stage_histogram, validate_rho
from elementdp.privacy.curves import gaussian_delta, gaussian_epsilon, gaussian_mu

__all__ = [
    "PAPER_RHOS",
    "Calibration",
    "GaussianMechanism",
    "HistogramRelease",
    "IntegerRelease",
    "LaplaceMechanism",
    "RadiusGrid",
    "Release",
    "TwoStageRelease",
    "cluster_sensitivity",
    "discrete_gaussian",
    "discrete_heavy_hitters",
    "discrete_histogram",
    "gaussian_average",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "heavy_hitters",
    "histogram_noise_sd",
    "indicator_sensitivity",
    "item_users",
    "laplace_average",
    "ordering_loss",
    "paper_formula_is_proved",
    "paper_variance",
    "private_histogram",
    "project",
    "project_to_integers",
    "projected_means",
    "rho_for",
    "two_stage_histogram",
    "unit_sigma",
    "validate_rho",
    "wasted_variance",
]
