"""The noise for which the paper prints an ε, and its δ."""

import pytest

from elementdp.errors import ArgumentError
from elementdp.privacy import Sampler, SubsampledGaussian, Unit, calibrate_as_printed, claimed, paper_delta

USERS = Sampler.POISSON_USERS


@pytest.mark.parametrize(
    ("run", "epsilon"),
    [
        (SubsampledGaussian(USERS, 1.0, 0.01, 200), 1.0),
        (SubsampledGaussian(USERS, 1.0, 0.1, 1000), 3.0),
        (SubsampledGaussian(USERS, 1.0, 0.003, 40_000), 0.5),
        (SubsampledGaussian(USERS, 1.0, 0.01, 500, Unit.USER, 20), 2.0),
        (SubsampledGaussian(USERS, 1.0, 1.0, 1), 2000.0),  # less noise than where the search starts
    ],
)
def test_the_claim_is_inverted(run: SubsampledGaussian, epsilon: float) -> None:
    found = calibrate_as_printed(run, epsilon, 1e-4)
    assert claimed(found, 1e-4) == pytest.approx(epsilon, rel=1e-4)
    assert (found.q, found.steps, found.unit) == (run.q, run.steps, run.unit)


def test_nonsense_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match="epsilon"):
        calibrate_as_printed(SubsampledGaussian(USERS, 1.0, 0.1, 10), 0.0, 1e-4)
    with pytest.raises(ArgumentError, match="users"):
        paper_delta(0)


def test_the_delta_of_ten_thousand_users() -> None:
    assert paper_delta(10_000) == pytest.approx(10**-4.4)
