"""Sensitivity by brute force over small users, the mechanism's noise, and both ways to choose ρ."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

from elementdp.companion.theory.counting import (
    cluster_sensitivity,
    mean_histogram,
    project,
    rho_for,
    two_stage_histogram,
    unit_sigma,
    validate_rho,
)
from elementdp.companion.theory.counting.radius import cluster_masses, mean_norms
from elementdp.elements import Clusters, Partition, element_sensitivity
from elementdp.privacy import Unit, gaussian_delta


@pytest.mark.parametrize(("labels", "factor"), [([0, 1, 2], 1.0), ([0, 0, 1], math.sqrt(2)), ([0, 0, 0], math.sqrt(2))])
@pytest.mark.parametrize("rho", [1.0, 2.5])
def test_sensitivity_by_brute_force(labels: list[int], factor: float, rho: float) -> None:
    clusters = Clusters.from_labels(labels)
    space = [dict(enumerate(x)) for x in product(range(4), repeat=3)]
    by_label = Partition.from_key(lambda j: labels[j])
    found = element_sensitivity(
        lambda x: project(csr_array([[x[j] for j in range(3)]]), clusters, rho).toarray()[0],
        space,
        by_label,  # type: ignore[index]
    )
    assert found == pytest.approx(factor * rho)
    assert cluster_sensitivity(clusters, rho).max() == pytest.approx(found)


def test_each_cluster_gets_its_own_noise() -> None:
    clusters = Clusters.from_labels([0] * 3000 + list(range(1, 3001)))
    counts = csr_array((10, 6000))
    release = mean_histogram(counts, clusters, 2.0, 1.0, 1e-6, np.random.default_rng(0))
    unit = unit_sigma(1.0, 1e-6)
    assert np.std(release.value[:3000]) == pytest.approx(math.sqrt(2) * 2 * unit / 10, rel=0.05)
    assert np.std(release.value[3000:]) == pytest.approx(2 * unit / 10, rel=0.05)
    assert release.guarantee.unit is Unit.ELEMENT
    assert (
        mean_histogram(counts, Clusters.single(6000), 2.0, 1.0, 1e-6, np.random.default_rng(0)).guarantee.unit
        is Unit.USER
    )


def test_validation_error_is_the_mean_over_noise() -> None:
    rng = np.random.default_rng(5)
    clusters = Clusters.from_labels(np.arange(30) // 3)
    counts = csr_array(rng.poisson(2.0, size=(50, 30)))
    target = np.full(30, 2.0)
    grid = validate_rho(counts, target, clusters, 50, 2.0, 1e-3, rhos=[1.0, 4.0, 20.0])
    simulated = [
        np.mean(
            [np.square(mean_histogram(counts, clusters, r, 2.0, 1e-3, rng).value - target).sum() for _ in range(400)]
        )
        for r in grid.rhos
    ]
    assert grid.errors == pytest.approx(simulated, rel=0.08)
    assert grid.best == grid.rhos[np.argmin(simulated)]


def test_two_stages_pay_for_both() -> None:
    rng = np.random.default_rng(2)
    n, m = 400, 200
    p = np.r_[np.full(10, 0.05), np.full(50, 0.01)]
    counts = csr_array(rng.multinomial(m, p, size=n))
    clusters = Clusters.from_labels(np.arange(60) // 5)
    release = two_stage_histogram(counts, clusters, m, 1.0, 1e-5, rng, share=0.2)
    assert release.estimate == pytest.approx(0.25, abs=0.1)
    assert release.histogram.rho < m
    assert release.histogram.rho == rho_for(release.estimate, m, math.log(n))
    # what stage two shows, and what the budget leaves for stage one, add up in μ² to the target
    mu_two = (cluster_sensitivity(clusters, release.histogram.rho) / (n * release.histogram.noise_sd)).max()
    mu_one = mu_two * math.sqrt(0.2 / 0.8)
    assert gaussian_delta(1.0, math.hypot(mu_one, mu_two)) == pytest.approx(1e-5, rel=1e-6)
    capped = two_stage_histogram(counts, clusters, m, 1.0, 1e-5, rng, cap=60.0)
    assert capped.histogram.rho == pytest.approx((math.sqrt(capped.estimate) + 1) ** 2)
    norms = np.linalg.norm(counts.toarray().reshape(n, 12, 5), axis=2)
    assert mean_norms(counts, clusters, 60.0) == pytest.approx(norms.mean(axis=0))
    assert mean_norms(counts, clusters, 10.0) == pytest.approx(np.minimum(norms, 10.0).mean(axis=0))
    counts.indptr, counts.indices = counts.indptr.astype(np.int64), counts.indices.astype(np.int64)
    untouched = counts.toarray()
    masses = cluster_masses(counts, clusters, m)
    assert np.array_equal(counts.toarray(), untouched)
    assert masses == pytest.approx(counts.toarray().reshape(n, 12, 5).sum(axis=2).mean(axis=0) / m)
    assert cluster_masses(csr_array([[100, 0]]), Clusters.singletons(2), 50).tolist() == [1.0, 0.0]
