"""Section 4.2: the batched simulation against a plain one, its noise against the accountants, its lines' structure."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter

from elementdp.companion.experiments.logistic import (
    PAPER,
    WITHOUT_COINS,
    CellBatch,
    Design,
    LogisticPlan,
    draw,
    event,
    figure,
    iterate,
    noise_for,
    true_epsilon,
)
from elementdp.companion.experiments.logistic import LogisticMethod as Method
from elementdp.errors import ArgumentError
from elementdp.privacy import Correlation, Sampler, claimed

SMALL = Design(users=30, points=12, dimension=4, elements=5, steps=7)


def plain_iteration(sample, q_one_steps, step, clip, whole_user=False):
    """Algorithm 1 and eqn:private-element-sgd without noise or sampling, in plain loops and double precision."""
    n, m, d = sample.x.shape
    theta = np.zeros(d)
    path = []
    for k in range(1, q_one_steps + 1):
        total = np.zeros(d)
        for user in range(n):
            labels = np.zeros(m, dtype=int) if whole_user else sample.element[user]
            for label in np.unique(labels):
                rows = labels == label
                x, y = sample.x[user, rows], sample.y[user, rows]
                gradient = np.mean(
                    [-yi * xi / (1 + math.exp(yi * (xi @ theta))) for xi, yi in zip(x, y, strict=True)], 0
                )
                delta = -gradient
                total += delta * min(1.0, clip / np.linalg.norm(delta))
        theta = theta + step / math.sqrt(k) * total / n
        path.append(theta)
    return path


@pytest.mark.parametrize("whole_user", [False, True])
def test_iteration_equals_plain_loops(whole_user):
    sample = draw(SMALL, 3, np.random.default_rng(1))
    groups = sample.by_user() if whole_user else sample.by_element()
    steps, clips = np.array([0.5, 2.0, 1.0]), np.array([0.05, 0.2, 1e6])
    for way in (Sampler.POISSON_USERS, Sampler.POISSON_PAIRS):
        found = iterate(groups, CellBatch(steps, np.zeros(3), clips), 1.0, way, SMALL.steps, seed=0)
        for cell, (step, clip) in enumerate(zip(steps, clips, strict=True)):
            path = plain_iteration(sample, SMALL.steps, step, clip, whole_user)
            np.testing.assert_allclose(found.last[cell], path[-1], atol=2e-5)
            half = SMALL.steps // 2
            np.testing.assert_allclose(found.averaged[cell], np.mean(path[half:], axis=0), atol=2e-5)


def test_noise_and_sampling_have_the_printed_variance():
    """One step from θ = 0: mean α·mean Δ, covariance from the coins and from ρσ/(qn), by hand."""
    sample = draw(SMALL, 3, np.random.default_rng(2))
    groups, q, sigma, clip, step = sample.by_element(), 0.4, 3.0, 0.2, 1.5
    delta = 0.5 * (groups.signed * groups.weight[..., None]).sum(axis=1, dtype=float)
    delta *= np.minimum(1.0, clip / np.linalg.norm(delta, axis=1, keepdims=True))
    per_user = np.zeros((SMALL.users, SMALL.dimension))
    np.add.at(per_user, groups.user, delta)
    scale = step / (q * SMALL.users)
    for way, parts in ((Sampler.POISSON_USERS, per_user), (Sampler.POISSON_PAIRS, delta)):
        # The cells of one run share their coins: many seeds, one cell each.
        cells = CellBatch(np.array([step]), np.array([sigma]), np.array([clip]))
        found = np.array([iterate(groups, cells, q, way, 1, seed).last[0] for seed in range(3000)])
        covariance = scale**2 * (q * (1 - q) * parts.T @ parts + (clip * sigma) ** 2 * np.eye(SMALL.dimension))
        centred = found - scale * q * parts.sum(axis=0)
        # T² of the mean is chi-square with d degrees of freedom.
        mean = centred.mean(axis=0)
        t2 = len(found) * mean @ np.linalg.solve(covariance, mean)
        assert stats.chi2.sf(t2, SMALL.dimension) > 1e-4
        np.testing.assert_allclose(np.trace(np.cov(centred.T)), np.trace(covariance), rtol=0.08)


def test_epochs_see_every_pair_once_and_noise_is_filtered():
    """Steps so small that θ stays at 0: an epoch's updates, each times √k, add up to all users' clipped updates."""
    sample = draw(SMALL, 3, np.random.default_rng(2))
    groups, q, clip = sample.by_element(), 0.25, 0.2
    delta = 0.5 * (groups.signed * groups.weight[..., None]).sum(axis=1, dtype=float)
    delta *= np.minimum(1.0, clip / np.linalg.norm(delta, axis=1, keepdims=True))

    def updates(way, sigma, correlation):
        cells = CellBatch(np.array([1e-6]), np.array([sigma]), np.array([clip]))
        ends = [iterate(groups, cells, q, way, steps, 3, correlation).last[0] for steps in range(1, 9)]
        return np.diff(ends, axis=0, prepend=0) * np.sqrt(np.arange(1, 9))[:, None] * q * SMALL.users / 1e-6

    for way in (Sampler.FIXED_ORDER, Sampler.ALLOCATED_PAIRS):
        seen = updates(way, 0.0, Correlation())
        np.testing.assert_allclose(seen[:4].sum(axis=0), delta.sum(axis=0), rtol=2e-3)
        np.testing.assert_allclose(seen[4:].sum(axis=0), delta.sum(axis=0), rtol=2e-3)
        assert np.allclose(seen[0], seen[4], rtol=2e-3) == (way is Sampler.FIXED_ORDER)
    root = Correlation.inverse_root(3)
    alone, together = (updates(Sampler.FIXED_ORDER, 1e4, one) for one in (Correlation(), root))
    np.testing.assert_allclose(together, lfilter(root.weights, [1.0], alone, axis=0), rtol=0.02, atol=20)


def test_methods_without_coins_have_the_epsilon_they_say():
    design = Design(users=60, points=10, dimension=3, elements=4, steps=10)
    plan = LogisticPlan(design, (2,), (2.0,), (0.25,), (0.5, 2.0), (0.3,), tuning=1, screening=1, repetitions=2)
    points, _ = figure(plan, methods=WITHOUT_COINS)
    assert {p.method for p in points} == {str(method) for method in WITHOUT_COINS}
    assert all(1.98 < p.true_up <= 2.0 for p in points)


def test_model_is_the_papers():
    design = Design(users=400, points=50)
    sample = draw(design, 2, np.random.default_rng(3))
    assert np.isclose(np.linalg.norm(sample.theta), 1)
    assert all(len(np.unique(row)) <= 2 for row in sample.element)
    counts = np.bincount(sample.element.ravel(), minlength=10)
    assert counts.min() > 0
    # Within an element, x minus its centre is uniform on the sphere: unit distance from the centre, mean zero.
    for label in range(10):
        x = sample.x[sample.element == label]
        centre = x.mean(axis=0)
        assert abs(np.linalg.norm(centre) - 1) < 0.2
        np.testing.assert_allclose(np.linalg.norm(x - centre, axis=1).mean(), 1.0, atol=0.05)
    # Labels follow the logistic model: a calibration test in ten bins.
    p = 1 / (1 + np.exp(-(sample.x @ sample.theta))).ravel()
    hit = (sample.y.ravel() > 0).astype(float)
    for low in np.arange(0, 1, 0.1):
        rows = (p >= low) & (p < low + 0.1)
        if rows.sum() > 50:
            z = (hit[rows] - p[rows]).sum() / math.sqrt((p[rows] * (1 - p[rows])).sum())
            assert abs(z) < 4
    groups = sample.by_element()
    assert np.allclose(groups.weight.sum(axis=1), 1)
    assert (np.diff(groups.size) >= 0).all()


def test_noise_reports_the_asked_epsilon():
    design = Design(users=200, steps=20)
    for q in (0.05, 0.3):
        sigma = noise_for(Method.ELEMENT_PRINTED, design, q, 1.0)
        assert claimed(event(Method.ELEMENT_PRINTED, design, q, sigma), design.delta) == pytest.approx(1.0, rel=1e-5)
        band = true_epsilon(Method.ELEMENT_REPAIRED, design, q, noise_for(Method.ELEMENT_REPAIRED, design, q, 1.0))
        assert 0.99 < band.low <= band.up <= 1.0
        # K ∧ M times the noise makes the whole user what the element was.
        assert noise_for(Method.USER_SUMMED, design, q, 1.0) == pytest.approx(10 * sigma, rel=1e-4)


def test_printed_noise_is_not_private_at_small_rates():
    """Sampling users does not amplify: at q = 0.05 the run's ε is above the claim by both ends of the band."""
    design = Design()
    sigma = noise_for(Method.ELEMENT_PRINTED, design, 0.05, 1.0)
    assert true_epsilon(Method.ELEMENT_PRINTED, design, 0.05, sigma).low > 1.5
    # K = 1 has no other elements that give the user away.
    assert true_epsilon(Method.USER_PRINTED, design, 0.05, noise_for(Method.USER_PRINTED, design, 0.05, 1.0)).up < 1


def test_figure_has_every_point_and_reports_fresh_repetitions():
    design = Design(users=60, points=10, dimension=3, elements=4, steps=10)
    plan = LogisticPlan(
        design, (2,), (1.0, 4.0), (0.3,), (0.5, 2.0, 8.0), (0.1, 0.3), tuning=3, screening=1, repetitions=4, seed=5
    )
    points, rates = figure(plan)
    assert {(p.method, p.epsilon, p.estimate) for p in points} == {
        (str(method), epsilon, estimate)
        for method in PAPER
        for epsilon in ((math.inf,) if method is Method.NON_PRIVATE else (1.0, 4.0))
        for estimate in ("last", "averaged")
    }
    assert len(rates) == 5 * 2 + 1
    assert points == figure(plan)[0]
    assert points == figure(plan, workers=2)[0]
    # Recompute one reported point by itself, from its own repetitions.
    point = next(p for p in points if p.method == Method.NON_PRIVATE and p.estimate == "last")
    assert point.repetitions == 4 and point.tuned_error != point.error


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="k must be"):
        draw(SMALL, 6, np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="repetitions"):
        LogisticPlan(repetitions=1)
    with pytest.raises(ArgumentError, match="rates"):
        LogisticPlan(rates=())
