"""One seeded audit decides: it refutes the printed ε for rich users, never ours, and nothing under pair sampling."""

import numpy as np
import pytest

from elementdp.audit.experiment import audit, noise_as_printed
from elementdp.errors import ArgumentError
from elementdp.privacy.accountant import account, claimed
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.guarantee import Sampler


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_run_decides(seed):
    rows = audit(0.05, 2.0, 20, 1e-4, elements=(1, 2, 8, 30), trials=20_000, rng=np.random.default_rng(seed))
    unbounded = account(SubsampledGaussian(Sampler.POISSON_USERS, sigma=2.0, q=0.05, steps=20), 1e-4)
    assert [row.elements for row in rows] == [1, 2, 8, 30]
    for row in rows:
        assert row.users <= row.promised_users.up <= unbounded.up * (1 + 1e-3)
        assert row.pairs <= row.promised_pairs.up <= row.claimed
        if row.elements >= 8:
            assert row.users > 1.5 * row.claimed
        if row.elements == 1:
            assert row.users <= row.claimed


@pytest.mark.parametrize(("q", "steps", "epsilon"), [(0.01, 200, 1.0), (0.1, 1000, 3.0), (0.003, 40_000, 0.5)])
def test_noise_as_printed_inverts_the_claim(q, steps, epsilon):
    sigma = noise_as_printed(q, steps, epsilon, 1e-4)
    run = SubsampledGaussian(Sampler.POISSON_USERS, sigma=sigma, q=q, steps=steps)
    assert claimed(run, 1e-4) == pytest.approx(epsilon, rel=1e-4)


def test_noise_as_printed_refuses_nonsense():
    with pytest.raises(ArgumentError, match="epsilon"):
        noise_as_printed(0.1, 10, 0.0, 1e-4)
