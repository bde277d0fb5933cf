"""The mechanisms of Section 3 on a users × items matrix, with floating-point noise: what proofs and figures need.

For a release to others use :mod:`elementdp.histogram`: the same mechanism for a table of events, in whole numbers.
"""

from elementdp.companion.theory.counting.averages import (
    GaussianMechanism,
    LaplaceMechanism,
    gaussian_average,
    laplace_average,
)
from elementdp.companion.theory.counting.calibration import paper_variance, unit_sigma, wasted_variance
from elementdp.companion.theory.counting.heavy_hitters import (
    heavy_hitters,
    indicator_sensitivity,
    item_users,
    ordering_loss,
)
from elementdp.companion.theory.counting.histograms import (
    PAPER_RHOS,
    cluster_sensitivity,
    histogram_noise_sd,
    mean_histogram,
    one_word_errors,
)
from elementdp.companion.theory.counting.projection import project, projected_means
from elementdp.companion.theory.counting.radius import rho_for, two_stage_histogram, validate_rho
