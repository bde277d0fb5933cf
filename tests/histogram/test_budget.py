"""The ledger of a release adds up to the (ε, δ) asked for, and refuses what it cannot prove."""

import math

import mpmath as mp
import pytest

from elementdp.errors import ArgumentError, NoGuaranteeError
from elementdp.histogram.budget import Budget, Ledger, Spent, Split

STAGES = ("discovery", "radius", "clipping", "release")


def exact_delta(epsilon: float, mu: float) -> mp.mpf:
    with mp.workdps(40):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


def full(ledger: Ledger, scale: float = 2.0**30) -> Ledger:
    for stage in STAGES:
        if mu := ledger.mu_for(stage):
            delta = ledger.threshold_delta if stage == "discovery" else 0.0
            ledger.pay(Spent(stage, mu, delta, 1.0, 1 / mu), grid_scale=scale, coordinates=1000)
    return ledger


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-9), (1.0, 1e-6), (8.0, 1e-5), (1.0, 0.4)])
@pytest.mark.parametrize("discovers", [False, True])
@pytest.mark.parametrize("chooses", [False, True])
def test_stages_add_up_to_the_budget_by_an_independent_sum(
    epsilon: float, delta: float, discovers: bool, chooses: bool
) -> None:
    ledger = full(Ledger(Budget(epsilon, delta), discovers, chooses))
    ledger.check()
    mu = math.sqrt(sum(one.mu**2 for one in ledger.spent))
    total = float(exact_delta(epsilon, mu)) + sum(one.delta for one in ledger.spent)
    assert 0.999 * delta <= total <= delta
    assert len(ledger.spent) == 2 + discovers + chooses
    assert total <= ledger.total_delta() <= delta


def test_coarse_noise_is_refused() -> None:
    with pytest.raises(NoGuaranteeError, match="not proved"):
        full(Ledger(Budget(1.0, 1e-6), True, True), scale=50.0).check()


def test_more_counts_than_the_proof_covers_are_refused() -> None:
    ledger = full(Ledger(Budget(0.1, 1e-3), False, False))
    ledger.check()
    ledger.pay(Spent("more", 0.0, 0.0, 1.0, 1.0), grid_scale=1e30, coordinates=2**24)
    with pytest.raises(NoGuaranteeError, match="shorter list of items"):
        ledger.check()


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-6), (-1, 0.1), (math.nan, 0.1), (math.inf, 0.1), (200, 1e-6)])
def test_epsilon_out_of_range(epsilon: float, delta: float) -> None:
    with pytest.raises(ArgumentError, match="epsilon"):
        Ledger(Budget(epsilon, delta), True, True)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_delta_out_of_range(delta: float) -> None:
    with pytest.raises(ArgumentError, match="delta"):
        Ledger(Budget(1.0, delta), True, True)


def test_split_leaves_something_for_the_release() -> None:
    with pytest.raises(ArgumentError, match="release"):
        Split(discovery=0.6, radius=0.4)
    with pytest.raises(ArgumentError, match="radius"):
        Split(radius=0.0)
    without = Ledger(Budget(1.0, 1e-6, Split(clipping=0.0)), True, True)
    assert without.mu_for("clipping") == 0.0
    assert without.mu_for("release") > Ledger(Budget(1.0, 1e-6), True, True).mu_for("release")
