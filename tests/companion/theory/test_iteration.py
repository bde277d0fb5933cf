"""The vectorised iteration against the definition, step by step, and the finite populations against quadrature."""

import numpy as np
import pytest
from scipy import integrate

from elementdp.companion.theory import (
    RADIUS,
    Logistic,
    Model,
    NoisySteps,
    Population,
    Scheme,
    averaging_factors,
    contraction,
    covariance_agreement,
    finite_covariance,
    iteration_covariance,
    lemma_errors,
    logistic_population,
    matrix_error,
    multiplier_covariance,
    multiplier_draws,
    noisy_averages,
    normality_pvalue,
    one_step_distance,
    robust_population,
    run_grid,
)
from elementdp.companion.theory.iteration import draw_samples, frequencies


class Recorded:
    """A generator that hands out the numbers of another and keeps them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.indices: list[np.ndarray] = []
        self.normals: list[np.ndarray] = []
        self.sample: np.ndarray | None = None

    def choice(self, *args: object, **kwargs: object) -> np.ndarray:
        self.sample = self.rng.choice(*args, **kwargs)  # type: ignore[call-overload]
        assert self.sample is not None
        return self.sample

    def integers(self, *args: object, **kwargs: object) -> np.ndarray:
        self.indices.append(self.rng.integers(*args, **kwargs))  # type: ignore[call-overload]
        return self.indices[-1]

    def standard_normal(self, size: tuple[int, ...]) -> np.ndarray:
        self.normals.append(self.rng.standard_normal(size))
        return self.normals[-1]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("population", [logistic_population(), robust_population()])
def test_iteration_is_the_printed_one(population: Population, inside: bool) -> None:
    """eqn:sgd-update-sequence written as in the paper, with loops, on the same random numbers."""
    rng, n, radius = Recorded(3), 30, 0.4
    chosen = [NoisySteps(0.3, 0.6, 0.0), NoisySteps(0.2, 0.8, 1.5)]
    got = noisy_averages(population, n, [5, 100], chosen, 4, rng, Scheme(radius=radius, inside=inside))  # type: ignore[arg-type]
    assert rng.sample is not None
    index = np.concatenate(rng.indices)
    noise = np.concatenate(rng.normals)[:, :, 0, :]
    for s, setting in enumerate(chosen):
        for r in range(4):
            theta, total = np.zeros(2), np.zeros(2)
            for k in range(1, 101):
                total += theta
                alpha = setting.alpha * k**-setting.beta
                atom = rng.sample[r, index[k - 1, r]]
                x, y = population.x[atom], population.y[atom]
                step = theta - alpha * float(population.loss.slope(np.asarray(x @ theta), np.asarray(y))) * x
                projected = step * min(1.0, radius / float(np.linalg.norm(step)))
                mapped = (theta - projected) / alpha
                theta = theta - alpha * (mapped + setting.sigma * noise[k - 1, :, r])
                if inside:
                    theta = theta * min(1.0, radius / float(np.linalg.norm(theta)))
                if k in (5, 100):
                    np.testing.assert_allclose(got[[5, 100].index(k), s, r], total / k, atol=1e-12)


def test_bad_input_is_refused_before_work() -> None:
    population, rng = logistic_population(), np.random.default_rng(0)
    for beta in (0.5, 1.0):
        with pytest.raises(ValueError, match="beta"):
            NoisySteps(1.0, beta)
    with pytest.raises(ValueError, match="checkpoints"):
        noisy_averages(population, 10, [5, 3], [NoisySteps(1.0, 0.7)], 2, rng)
    with pytest.raises(ValueError, match="p must be"):
        Population(Logistic(), np.ones((2, 1)), np.ones(2), np.array([0.5, 0.6]))


def test_population_moments_against_quadrature() -> None:
    """Gauss-Hermite atoms of a logistic model: Hessian against adaptive quadrature; information equality."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    theta = np.array([0.4, -0.9])
    x = np.repeat(np.column_stack([np.ones(60), nodes]), 2, axis=0)
    y = np.tile([1.0, -1.0], 60)
    population = Population(Logistic(), x, y, np.repeat(weights, 2) / (1 + np.exp(-y * (x @ theta))))
    np.testing.assert_allclose(population.optimum, theta, atol=1e-9)

    def curve(v: float, power: int) -> float:
        p = 1 / (1 + np.exp(-(theta[0] + theta[1] * v)))
        return float(p * (1 - p) * v**power * np.exp(-v * v / 2) / np.sqrt(2 * np.pi))

    exact = [integrate.quad(curve, -12, 12, args=(power,))[0] for power in (0, 1, 2)]
    hessian = population.hessian(theta)
    np.testing.assert_allclose([hessian[0, 0], hessian[0, 1], hessian[1, 1]], exact, atol=1e-8)
    np.testing.assert_allclose(population.covariance(theta), hessian, atol=1e-9)


def test_robust_problem_does_not_commute_and_logistic_does() -> None:
    for population, commutes in ((logistic_population(), True), (robust_population(), False)):
        h, s = population.hessian(population.optimum), population.covariance(population.optimum)
        assert bool(np.abs(h @ s - s @ h).max() < 1e-9) is commutes


def test_sample_minimisers_have_no_gradient() -> None:
    population, rng = robust_population(), np.random.default_rng(1)
    weights = frequencies(population, draw_samples(population, 200, 7, rng))
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(population.gradient(population.minimiser(weights), weights), 0, atol=1e-11)


def test_averaging_factors_are_the_printed_sums() -> None:
    setting, h, k = NoisySteps(0.4, 0.7), 1.3, 12
    alpha = setting.step_sizes(k)
    expected = [
        alpha[i] * sum(np.prod([1 - alpha[line] * h for line in range(i + 1, j + 1)]) for j in range(i, k))
        for i in range(k)
    ]
    np.testing.assert_allclose(averaging_factors(h, setting, k), expected, rtol=1e-12)


def test_linear_iteration_covariance_by_propagation() -> None:
    """The covariance of the average against the moments followed step by step (an independent recursion)."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2, 2))
    hessian, noise = np.array([[2.0, 0.5], [0.5, 1.0]]), root @ root.T
    setting, k = NoisySteps(0.3, 0.7), 40
    cov, cross, total = np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2))
    for alpha in setting.step_sizes(k):  # moments of (θ_{j+1}, Σθ_{2..j+1})
        turn = np.eye(2) - alpha * hessian
        cov = turn @ cov @ turn.T + alpha**2 * noise
        cross = cross @ turn.T + cov
        total = total + cross + cross.T - cov
    np.testing.assert_allclose(iteration_covariance(hessian, noise, k, setting), total / k, rtol=1e-10)


def test_theorem_limit_is_reached_by_the_linearised_form() -> None:
    population, setting = robust_population(), NoisySteps(0.06, 0.55, 0.5)
    limit = population.limit_covariance(2.0, 0.5)
    gaps = [np.abs(finite_covariance(population, n, 2 * n, setting) - limit).max() for n in (100, 2000, 40_000)]
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2]
    assert matrix_error(population, 40_000, setting) < matrix_error(population, 400, setting) / 2


def test_covariance_test_has_its_level_and_power() -> None:
    rng = np.random.default_rng(5)
    truth = np.array([[2.0, 0.4], [0.4, 1.0]])
    draws = rng.multivariate_normal(np.zeros(2), truth, size=(400, 300))
    pvalues = np.array([covariance_agreement(sample, truth).pvalue for sample in draws])
    rejected = int((pvalues < 0.05).sum())
    assert 5 <= rejected <= 38  # 400 tests of level 5%: mean 20, four standard deviations either way
    wrong = [covariance_agreement(sample, 1.5 * truth).pvalue for sample in draws[:20]]
    assert max(wrong) < 0.01
    assert np.mean([normality_pvalue(sample) < 0.05 for sample in draws[:200]]) < 0.12
    assert normality_pvalue(rng.exponential(size=(500, 2))) < 1e-6


def test_grid_agrees_with_theory_and_models_agree_with_each_other() -> None:
    chosen = [NoisySteps(0.15, 0.75, 0.5)]
    for model in Model:
        cells = run_grid(
            robust_population(),
            400,
            200,
            np.random.default_rng(2),
            settings=chosen,
            gammas=(1.0, 2.0),
            scheme=Scheme(model, RADIUS),
        )
        assert [cell.gamma for cell in cells] == [1.0, 2.0]
        assert min(cell.against_finite.pvalue for cell in cells) > 1e-3
        assert min(cell.normality for cell in cells) > 1e-3


def test_decomposition_is_exact_only_with_minus_signs() -> None:
    rng = np.random.default_rng(0)
    for model in Model:
        for inside in (False, True):
            scheme = Scheme(model, 0.5, inside)
            found = lemma_errors(logistic_population(), 80, 60, NoisySteps(0.15, 0.75, 2.0), 5, rng, scheme)
            assert found.residual < 1e-12 < 0.1 < found.residual_printed
            assert (found.projected > 0) is inside
            assert found.over_bound <= 1 + 1e-12


def test_first_order_model_has_no_model_error_away_from_the_boundary() -> None:
    found = lemma_errors(robust_population(), 80, 60, NoisySteps(0.05, 0.75), 5, np.random.default_rng(0), Scheme())
    assert found.model < 1e-12 < found.remainder


def test_one_step_distance_by_enumeration() -> None:
    population, alpha, sigma = logistic_population(), 0.1, 3.0
    theta, centre = np.array([0.2, 0.1]), population.optimum
    slopes = population.loss.slope(population.x @ theta, population.y)
    moved = theta - alpha * slopes[:, None] * population.x
    expected = population.p @ ((moved - centre) ** 2).sum(axis=1) + alpha**2 * sigma**2 * 2
    assert one_step_distance(population, theta, centre, alpha, sigma) == pytest.approx(expected)


@pytest.mark.parametrize("gamma", [0.5, 3.0])
def test_multipliers_against_literal_draws(gamma: float) -> None:
    """Counts of indices drawn one by one, as the proof defines M; and the closed form of their covariance."""
    population, rng, n = robust_population(), np.random.default_rng(4), 60
    k = round(gamma * n)
    g = population.loss.slope(population.x @ population.optimum, population.y)[:, None] * population.x
    literal = []
    for _ in range(4000):
        sample = rng.choice(len(population.p), size=n, p=population.p)
        counts = np.bincount(rng.integers(n, size=k), minlength=n)
        literal.append(np.sqrt(n / k) * (counts - k / n) @ g[sample] / np.sqrt(n))
    draws, plain = multiplier_draws(population, n, k, 1, 4000, rng)
    exact = multiplier_covariance(population, n, k, 1)
    # Heavier tails than normal: compare entries within six of their own standard errors instead of the normal test.
    for found in (np.array(literal), draws):
        products = np.einsum("ra,rb->rab", found, found)
        error = products.std(axis=0) / np.sqrt(len(found))
        assert (np.abs(products.mean(axis=0) - exact) < 6 * error).all()
    tie = np.einsum("ra,rb->rab", draws, plain)
    assert (np.abs(tie.mean(axis=0)) < 6 * tie.std(axis=0) / np.sqrt(4000)).all()


def test_contraction_lies_below_the_growth_of_the_risk_everywhere() -> None:
    """2(L(θ) - L(θ*)) ≥ c₀|θ - θ*|² at random points of Θ, and c₀ is λ itself where Θ is no larger than the ball."""
    population, rng = logistic_population(), np.random.default_rng(0)
    centre = population.optimum
    reach = RADIUS - float(np.linalg.norm(centre))
    c0 = contraction(population, reach, 2 * RADIUS)
    points = rng.uniform(-RADIUS, RADIUS, (500, 2))
    points = points[np.linalg.norm(points, axis=1) <= RADIUS]
    growth = 2 * (population.risk(points) - population.risk(centre)) / ((points - centre) ** 2).sum(axis=1)
    assert 0 < c0 <= growth.min()
    curvature = np.linalg.eigvalsh(population.hessian(centre)).min()
    assert contraction(population, 1e-6, 1e-6) == pytest.approx(curvature, rel=1e-4)
