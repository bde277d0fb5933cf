"""Counting: the mechanisms of Section 3 (projection, radius, noise, heavy hitters), and their release for a table."""

from elementdp.histogram.additive import (
    GaussianMechanism,
    LaplaceMechanism,
    Release,
    gaussian_average,
    laplace_average,
)
from elementdp.histogram.budget import Spent, Split
from elementdp.histogram.calibration import (
    Calibration,
    paper_formula_is_proved,
    paper_variance,
    unit_sigma,
    wasted_variance,
)
from elementdp.histogram.discrete import (
    IntegerRelease,
    discrete_gaussian,
    discrete_heavy_hitters,
    discrete_histogram,
)
from elementdp.histogram.errors import TableError
from elementdp.histogram.heavy_hitters import heavy_hitters, indicator_sensitivity, item_users, ordering_loss
from elementdp.histogram.matrix import project, project_to_integers, projected_means
from elementdp.histogram.means import (
    PAPER_RHOS,
    HistogramRelease,
    cluster_sensitivity,
    histogram_noise_sd,
    mean_histogram,
)
from elementdp.histogram.output import write_release
from elementdp.histogram.release import PrivateHistogram, private_histogram
from elementdp.histogram.two_stage import RadiusGrid, TwoStageRelease, rho_for, two_stage_histogram, validate_rho
from elementdp.privacy.curves import gaussian_delta, gaussian_epsilon, gaussian_mu

__all__ = [
    "PAPER_RHOS",
    "Calibration",
    "GaussianMechanism",
    "HistogramRelease",
    "IntegerRelease",
    "LaplaceMechanism",
    "PrivateHistogram",
    "RadiusGrid",
    "Release",
    "Spent",
    "Split",
    "TableError",
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
    "mean_histogram",
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
    "write_release",
]
