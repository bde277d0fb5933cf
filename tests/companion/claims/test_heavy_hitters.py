"""The counterexample of Section 3.1, once more by simulation."""

import math

import numpy as np
import pytest

from elementdp.companion.claims.checks.heavy_hitters import ordering_chances, two_levels
from elementdp.companion.theory.ordering import expected_ordering_loss, presence, printed_gamma


def test_counterexample_by_simulation() -> None:
    n, m, items = 5000, 50, 51
    p, gamma, t = two_levels(n, m, items, 0.0, 2.0, printed_gamma)
    assert p.sum() == pytest.approx(1.0)
    assert p.max() <= 1 / (2 * m)
    assert gamma >= printed_gamma(n, m, 2 * items, t, 0.0, p.max()) * (1 - 1e-9)
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(12):
        h = (rng.multinomial(m, p, size=n) > 0).sum(axis=0)
        losses.append(np.count_nonzero(h[:items, None] < h[None, items:]))
    error = np.std(losses, ddof=1) / math.sqrt(len(losses))
    assert np.mean(losses) - 5 * error > t * t
    assert abs(np.mean(losses) - expected_ordering_loss(p, n, m, 0.0, gamma * 0.999)) < 5 * error


def test_printed_loss_counts_the_right_order() -> None:
    right, wrong = ordering_chances(np.array([0.9, 0.1]), 2, 1)
    assert (right, wrong) == pytest.approx((0.81, 0.01))  # two users with one item each
    assert presence(0.25, 2) == pytest.approx(1 - 0.75**2)
