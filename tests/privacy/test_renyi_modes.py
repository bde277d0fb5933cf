"""Large orders: the integrand has modes between the two that are known."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from elementdp.privacy import printed_renyi


@pytest.mark.parametrize(("order", "q", "sigma"), [(10_000, 0.3, 100.0), (20_000, 0.1, 100.0), (2_000, 0.3, 40.0)])
def test_large_orders_against_a_sum_over_the_whole_line(order, q, sigma):
    z = np.linspace(-20 * sigma, 2 * order + 20 * sigma, 400_001)

    def log_mixture(mean):
        return np.logaddexp(math.log(q) - 0.5 * ((z - mean) / sigma) ** 2, math.log1p(-q) - 0.5 * (z / sigma) ** 2)

    exponent = order * log_mixture(1.0) + (1 - order) * log_mixture(-1.0)
    total = logsumexp(exponent) + math.log((z[1] - z[0]) / sigma) - 0.5 * math.log(2 * math.pi)
    assert printed_renyi(order, q, sigma) == pytest.approx(total / (order - 1), rel=1e-9)
