"""The symmetrised pair: its curve by the roots of the likelihood ratio, its products against the accountant."""

import numpy as np
import pytest

from elementdp.audit.mixtures import hockey_stick
from elementdp.companion.theory.symmetrised import composed_epsilon, curves, step_pair
from elementdp.privacy import Sampler, SubsampledGaussian, account


@pytest.mark.parametrize("swing", [1.0, 2.0, 5.0])
def test_curves_by_the_roots_of_the_likelihood_ratio(swing):
    first, second = step_pair(0.05, 2.0, swing)
    epsilons = np.array([0.0, 0.02, 0.1])
    found = curves(first, second, np.exp(epsilons))
    for i, epsilon in enumerate(epsilons):
        assert found["A against B"][i] == pytest.approx(hockey_stick(first, second, epsilon), rel=1e-4, abs=1e-12)
        assert found["B against A"][i] == pytest.approx(hockey_stick(second, first, epsilon), rel=1e-4, abs=1e-12)


def test_neither_direction_dominates():
    gammas = np.array([0.9, 1.1])
    found = curves(*step_pair(0.05, 2.0, 2.0), gammas)
    least = np.maximum(1 - gammas, 0)
    assert (found["A against B"] - least)[0] < 1e-9 < 0.004 < (found["B against A"] - least)[0]
    assert found["A against B"][1] > found["B against A"][1]


def test_a_curve_is_convex_falls_and_starts_at_one():
    gammas = np.linspace(0, 3, 301)
    curve = curves(*step_pair(0.05, 2.0, 4.0), gammas)["symmetrised"]
    assert curve[0] == pytest.approx(1.0)
    assert (np.diff(curve) <= 1e-12).all()
    assert (np.diff(curve, 2) >= -1e-9).all()
    assert (curve >= np.maximum(1 - gammas, 0) - 1e-12).all()


@pytest.mark.parametrize(("bound", "steps"), [(2, 1000), (4, 100)])
def test_products_agree_with_the_accountant(bound, steps):
    run = SubsampledGaussian(Sampler.POISSON_USERS, 4.0, 0.01, steps, elements_per_user=bound)
    band = account(run, 1e-5)
    assert composed_epsilon(0.01, 4.0, bound, steps, 1e-5) == pytest.approx(band.up, rel=2e-3)
    assert composed_epsilon(0.01, 4.0, bound, steps, 1e-5, "A against B") < band.up * (1 - 1e-2)
