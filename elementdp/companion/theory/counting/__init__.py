"""The mechanisms of Section 3 on a users × items matrix, with floating-point noise: what proofs and figures need.

For a release to others use :mod:`elementdp.histogram`: the same mechanism for a table of events, in whole numbers.
"""

from elementdp.companion.theory.counting.averages import (
    GaussianMechanism,
    LaplaceMechanism,
    Release,
    gaussian_average,
    laplace_average,
)
from elementdp.companion.theory.counting.calibration import (
    Calibration,
    paper_formula_is_proved,
    paper_variance,
    unit_sigma,
    wasted_variance,
)
from elementdp.companion.theory.counting.heavy_hitters import (
    heavy_hitters,
    indicator_sensitivity,
    item_users,
    ordering_loss,
)
from elementdp.companion.theory.counting.histograms import (
    PAPER_RHOS,
    HistogramRelease,
    cluster_sensitivity,
    histogram_noise_sd,
    mean_histogram,
)
from elementdp.companion.theory.counting.projection import project, projected_means
from elementdp.companion.theory.counting.radius import (
    RadiusGrid,
    TwoStageRelease,
    rho_for,
    two_stage_histogram,
    validate_rho,
)

__all__ = [
    "PAPER_RHOS",
    "Calibration",
    "GaussianMechanism",
    "HistogramRelease",
    "LaplaceMechanism",
    "RadiusGrid",
    "Release",
    "TwoStageRelease",
    "cluster_sensitivity",
    "gaussian_average",
    "heavy_hitters",
    "histogram_noise_sd",
    "indicator_sensitivity",
    "item_users",
    "laplace_average",
    "mean_histogram",
    "ordering_loss",
    "paper_formula_is_proved",
    "paper_variance",
    "project",
    "projected_means",
    "rho_for",
    "two_stage_histogram",
    "unit_sigma",
    "validate_rho",
    "wasted_variance",
]
