"""Random allocation: its band, against integrals, simulation, sampling that is revealed, and the proof's steps."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp, ndtr
from scipy.stats import norm

from elementdp.errors import ArgumentError, NoGuaranteeError
from elementdp.privacy import (
    FixedOrder,
    RandomAllocation,
    Relation,
    Sampler,
    SubsampledGaussian,
    Unit,
    account,
    calibrate,
    delta_at,
    gaussian_epsilon,
    promise,
)

ADDED = Relation.ADD_REMOVE


def two_steps(sigma: float, gamma: float, there: float, other: float) -> float:
    """H_γ of two steps, the element at ``there`` against ``other``: one integral over the first output.

    Given the first output, the second counts where its own ratio makes up for the first one's: from one point on, or up
    to it, and there the integral is a difference of normal probabilities.
    """
    a = 1 / sigma

    def ratio(z: float, at: float) -> float:
        return math.exp(at * a * z - at * at * a * a / 2)

    def inner(z: float) -> float:
        first = ratio(z, there) - gamma * ratio(z, other)
        grid = np.linspace(-12, 12, 4001)
        value = (
            first
            + np.exp(there * a * grid - there**2 * a * a / 2)
            - gamma * np.exp(other * a * grid - other**2 * a * a / 2)
        )
        if (value > 0).all() or (value <= 0).all():
            return max(0.0, first + 1 - gamma)
        place = int(np.flatnonzero(np.diff(np.sign(value)))[0])
        low, high = grid[place], grid[place + 1]
        for _ in range(60):
            middle = (low + high) / 2
            found = first + ratio(middle, there) - gamma * ratio(middle, other)
            low, high = (middle, high) if (found > 0) == (value[place] > 0) else (low, middle)
        side = 1 if value[-1] > 0 else -1
        mass, mean, rest = (ndtr(side * (at * a - low)) for at in (0.0, there, other))
        return float(first * mass + mean - gamma * rest)

    return quad(lambda z: inner(z) * norm.pdf(z), -11, 11, limit=400, epsabs=1e-13, epsrel=1e-8)[0] / 2


@pytest.mark.parametrize("sigma", [0.8, 2.0])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("relation", list(Relation))
def test_two_steps_are_the_integral(sigma: float, epsilon: float, relation: Relation) -> None:
    gamma, other = math.exp(epsilon), -1.0 if relation is Relation.REPLACE else 0.0
    exact = max(two_steps(sigma, gamma, 1.0, other), two_steps(sigma, gamma, other, 1.0))
    band = delta_at(RandomAllocation(sigma, 2, 2, relation=relation), epsilon)
    assert band.low <= exact * (1 + 1e-6)
    assert exact * (1 - 1e-6) <= band.up
    assert band.up < 1.05 * exact + 1e-9 or relation is ADDED


@pytest.mark.parametrize(
    ("sigma", "batches", "steps", "epsilon"), [(1.0, 10, 30, 2.0), (2.0, 20, 40, 0.5), (0.7, 40, 15, 1.5)]
)
def test_a_simulation_is_within_the_band(sigma: float, batches: int, steps: int, epsilon: float) -> None:
    run, rng, trials = RandomAllocation(sigma, steps, batches), np.random.default_rng(5), 100_000
    outputs = rng.normal(size=(trials, run.epochs, batches)) * sigma
    outputs[np.arange(trials)[:, None], np.arange(run.epochs), rng.integers(batches, size=(trials, run.epochs))] += 1
    outputs = outputs.reshape(trials, -1)
    outputs[:, steps:] = np.nan  # an output that was not made shows nothing: its likelihood ratio is 1
    signed = [np.nan_to_num(sign * outputs / sigma**2 - 0.5 / sigma**2) for sign in (1, -1)]
    loss = sum(
        sign * logsumexp(part.reshape(trials, run.epochs, batches), axis=2).sum(axis=1)
        for sign, part in zip((1, -1), signed, strict=True)
    )
    seen = np.maximum(-np.expm1(epsilon - loss), 0.0)
    error = 5 * seen.std() / math.sqrt(trials)
    band = delta_at(run, epsilon)
    assert band.low <= seen.mean() + error
    assert seen.mean() - error <= band.up


def test_no_other_vectors_are_larger_in_the_convex_order() -> None:
    """Step (ii) of the proof: E₀(L − γL′ − c)₊ for vectors of the plane, c of either sign, by Gauss and Hermite."""
    rng = np.random.default_rng(1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    y = np.stack(np.meshgrid(nodes, nodes), axis=-1)
    chance = np.multiply.outer(weights, weights) / weights.sum() ** 2

    def mean(a: float, x: np.ndarray, other: np.ndarray, gamma: float, c: float) -> float:
        ratios = [np.exp(a * y @ v - a * a * v @ v / 2) for v in (x, other)]
        return float((chance * np.maximum(ratios[0] - gamma * ratios[1] - c, 0.0)).sum())

    for _ in range(60):
        a, gamma, c = rng.uniform(0.2, 1.2), math.exp(rng.uniform(-1, 1)), rng.uniform(-3, 3)
        vectors = rng.normal(size=(2, 2))
        vectors *= rng.uniform(0, 1, size=(2, 1)) / np.linalg.norm(vectors, axis=1, keepdims=True)
        worst = mean(a, np.array([1.0, 0.0]), np.array([-1.0, 0.0]), gamma, c)
        assert mean(a, *vectors, gamma, c) <= worst + 2e-3


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0, 50.0])
@pytest.mark.parametrize("batches", [2, 30])
@pytest.mark.parametrize("relation", list(Relation))
def test_it_is_never_worse_than_a_fixed_order(sigma: float, batches: int, relation: Relation) -> None:
    run = RandomAllocation(sigma, 3 * batches, batches, relation=relation)
    band, order = account(run, 1e-5), account(FixedOrder(sigma, 3, relation=relation), 1e-5)
    assert 0 <= band.low <= band.up <= order.up
    assert account(RandomAllocation(sigma, 3, 1, relation=relation), 1e-5) == order


def test_bands_are_narrow_where_people_train() -> None:
    for sigma, batches, epochs in ((4.0, 100, 5), (1.3, 100, 5), (2.0, 25, 8), (1.0, 1000, 5)):
        run = RandomAllocation(sigma, batches * epochs, batches)
        band = account(run, 5e-5)
        assert band.gap < 0.02
        assert delta_at(run, band.up).low <= 5e-5 <= delta_at(run, band.low).up
        pairs = account(SubsampledGaussian(Sampler.POISSON_PAIRS, sigma, 1 / batches, batches * epochs), 5e-5)
        assert band.estimate == pytest.approx(pairs.estimate, rel=0.02)  # close, in either direction


def test_more_steps_never_show_less() -> None:
    ends = [account(RandomAllocation(1.5, steps, 20), 1e-5) for steps in (5, 15, 20, 21, 40, 41)]
    for one, two in itertools.pairwise(ends):
        assert one.low <= two.up
        assert one.up <= two.up * (1 + 1e-9)
    assert ends[3].up == ends[4].up  # an epoch begun counts as whole


def test_calibrated_noise_meets_the_target() -> None:
    for relation in Relation:
        found = calibrate(RandomAllocation(1.0, 200, 50, relation=relation), 1.0, 1e-4)
        assert 0.99 < account(found, 1e-4).up <= 1.0
        assert promise(found, 1e-4).sampler is Sampler.ALLOCATED_PAIRS


def test_a_user_with_one_vector_is_an_element_and_more_are_refused() -> None:
    user = RandomAllocation(2.0, 20, 10, Unit.USER, 1)
    assert account(user, 1e-4) == account(RandomAllocation(2.0, 20, 10), 1e-4)
    for many in (None, 2):
        with pytest.raises(NoGuaranteeError, match="meet in one step"):
            RandomAllocation(2.0, 20, 10, Unit.USER, many)
    with pytest.raises(ArgumentError, match="RandomAllocation"):
        SubsampledGaussian(Sampler.ALLOCATED_PAIRS, 1.0)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"sigma": 0.0}, "sigma"),
        ({"steps": 0}, "steps"),
        ({"batches": 0}, "batches"),
        ({"unit": "thing"}, "unit"),
        ({"relation": "thing"}, "relation"),
        ({"elements_per_user": 0}, "elements_per_user"),
    ],
)
def test_runs_out_of_range_are_refused_by_name(change: dict[str, float], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        RandomAllocation(**{"sigma": 1.0, "steps": 10, "batches": 2, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("sigma", [0.01, 0.06, 1e3, 1e7])
def test_extreme_noise_is_answered(sigma: float) -> None:
    run = RandomAllocation(sigma, 40, 20)
    band = account(run, 1e-6)
    assert 0 <= band.low <= band.up <= gaussian_epsilon(1e-6, 2 * math.sqrt(2) / sigma) * (1 + 1e-7)


@pytest.mark.parametrize("sigma", [1e3, 1e4])
def test_much_noise_makes_an_epoch_gaussian(sigma: float) -> None:
    """Where σ is large, one step of B is as good as a shift of 1/σ√B: all ratios are near 1, far above 0."""
    run = RandomAllocation(sigma, 10, 10, relation=ADDED)
    limit = gaussian_epsilon(1e-6, 1 / (sigma * math.sqrt(10)))
    band = account(run, 1e-6)
    assert band.low <= limit * (1 + 1e-3)
    assert limit * (1 - 1e-3) <= band.up <= gaussian_epsilon(1e-6, 1 / sigma) * (1 + 1e-7)
