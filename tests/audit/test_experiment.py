"""One seeded audit decides: it refutes the printed ε for rich users, never ours, and nothing under pair sampling."""

import numpy as np
import pytest

from elementdp.audit.experiment import audit
from elementdp.privacy import Sampler, SubsampledGaussian, account


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
