"""Whole-number sums and noise: their law, their sensitivity, and an attack on low bits that they leave nothing to."""

import math
import warnings

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning.oracle import clipped_sum, cross_entropy
from learning.running import trained
from scipy import stats
from scipy.special import ndtri
from torch import nn

from elementdp.errors import ArgumentError
from elementdp.learning import Batch, GroupClipper, UserData
from elementdp.learning.exact import RADIUS, ExactArithmetic, rounded_normal
from elementdp.learning.noise import FloatArithmetic
from elementdp.learning.randomness import Purpose, Randomness

RANDOM = Randomness.seeded(0)


class Words:
    """A stream of given words."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count):
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_small_draws_have_the_law_of_a_rounded_normal(scale):
    count = 200_000
    found = rounded_normal(scale, count, RANDOM.stream(Purpose.NOISE, 1))
    edge = math.ceil(3 * scale)
    seen = [int((found == k).sum()) for k in range(-edge, edge + 1)]
    law = [stats.norm.cdf((k + 0.5) / scale) - stats.norm.cdf((k - 0.5) / scale) for k in range(-edge, edge + 1)]
    rest = count - sum(seen)
    assert stats.chisquare([*seen, rest], [*(count * p for p in law), count * (1 - sum(law))]).pvalue > 1e-3


def test_large_draws_have_the_normal_law():
    found = rounded_normal(3.0 * RADIUS, 100_000, RANDOM.stream(Purpose.NOISE, 2)) / (3.0 * RADIUS)
    assert stats.kstest(found, stats.norm.cdf).pvalue > 1e-3


def test_the_margin_covers_the_error_of_the_inverse():
    """What `rounded_normal` calls sure rests on it: thirty times the largest error found."""
    rng = np.random.default_rng(0)
    tails = np.concatenate([rng.random(300), 10.0 ** -rng.uniform(0, 6, 300)]) / 2
    worst = 0.0
    with mpmath.workprec(160):
        for tail in tails.tolist():
            exact = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(tail))
            worst = max(worst, float(abs(-ndtri(tail) - exact)) / (1 + float(exact)))
    assert 10 * worst < 2.0**-47


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**40), st.floats(0.5, 20.0), st.integers(-3, 3), st.integers(0, 2**64 - 1))
def test_draws_near_a_half_are_settled_by_further_bits(k, sigma, off, further):
    """P just beside the point where scale·|G| is k + ½, known to 63 bits: the rest of its bits decide."""
    scale = sigma * RADIUS
    with mpmath.workprec(300):
        tail = mpmath.erfc((mpmath.mpf(k % int(4 * scale)) + 0.5) / scale / mpmath.sqrt(2))
        bits = min(max(int(tail * 2**63) + off, 0), 2**63 - 1)
        whole = (mpmath.mpf(bits) * 2**64 + further + 0.5) / mpmath.mpf(2) ** 127
        expected = int(mpmath.floor(scale * mpmath.sqrt(2) * mpmath.erfinv(1 - whole) + 0.5))
    for sign in (0, 1):
        found = int(rounded_normal(scale, 1, Words(bits + (sign << 63), further, 0, 0))[0])
        assert abs(found) == expected
        assert found == 0 or (found < 0) == bool(sign)


def test_the_far_tail_is_there():
    assert int(rounded_normal(1000.0, 1, Words(0, 0, 1, 1))[0]) > 15_000


def problem(rows, seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4)).to(dtype)
    return model, torch.randn(rows, 6, dtype=dtype), torch.randint(4, (rows,))


def whole_sum(model, inputs, targets, sizes, rho):
    clipper = GroupClipper(model, cross_entropy, rho, by_group=True)
    return ExactArithmetic(rho, 1.0).sum(clipper, Batch.of(inputs, targets, sizes), 1.0)


@pytest.mark.parametrize("rho", [1e-3, 0.3, 50.0])
def test_whole_sums_are_the_clipped_sums(rho):
    model, inputs, targets = problem(12)
    sizes = (1, 2, 4, 5)
    expected, norms = clipped_sum(model, cross_entropy, inputs, targets, sizes, rho)
    found = whole_sum(model, inputs, targets, sizes, rho)
    assert np.allclose(found.norms.numpy(), norms, rtol=1e-5)
    for one, other in zip(ExactArithmetic(rho, 1.0).released(found.gradients), expected, strict=True):
        assert one.dtype is torch.float64
        assert torch.allclose(one, other, atol=1e-5 * min(rho, max(norms)))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.floats(-1e12, 1e12), st.sampled_from([1e-6, 1.0, 1e6]))
def test_replacing_a_group_moves_the_whole_sum_by_at_most_two_radii(seed, factor, rho):
    """In exact integers, whatever the gradients are."""
    model, inputs, targets = problem(9, seed)
    sums = []
    for change in (1.0, factor):
        moved = inputs.clone()
        moved[7:] *= change
        parts = whole_sum(model, moved, targets, (3, 4, 2), rho).gradients
        sums.append([int(value) for part in parts for value in part.flatten()])
    assert sum((a - b) ** 2 for a, b in zip(*sums, strict=True)) <= (2 * RADIUS) ** 2


def test_with_one_pass_a_group_a_vector_depends_on_its_group_alone():
    """The sensitivity rests on it: to the last bit, whatever else is in the batch."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(33, 65), nn.RMSNorm(65), nn.Linear(65, 4))
    inputs, targets, sizes = torch.randn(30, 33), torch.randint(4, (30,)), (3, 5, 1, 8, 13)

    def vectors(groups):
        owner = torch.repeat_interleave(torch.arange(5), torch.tensor(sizes))
        rows = torch.cat([(owner == group).nonzero().flatten() for group in groups])
        clipper = GroupClipper(model, cross_entropy, 1.0, by_group=True, method="loop")
        found = clipper.each_group(Batch.of(inputs[rows], targets[rows], [sizes[group] for group in groups]))
        return dict(zip(groups, (torch.cat([g.flatten() for g in gradients]) for gradients, _ in found), strict=True))

    together = vectors((0, 1, 2, 3, 4))
    for others in ((4, 2), (3,), (1, 0, 4)):
        for group, vector in vectors(others).items():
            assert torch.equal(vector, together[group])


def test_the_norms_that_are_checked_are_those_of_the_whole_numbers():
    """Small numbers beside a large one, whose squares float32 would lose: the check has to see them all."""
    torch.manual_seed(0)
    vector = torch.cat([torch.tensor([2.0**29]), torch.randint(1, 4096, (200_000,)).float()])
    model = nn.Linear(len(vector), 1, bias=False)
    rho = float(RADIUS)  # a grid step of one, so that numbers stay nearly what they are
    batch = Batch.of(vector[None], torch.zeros(1), (1,))
    clipper = GroupClipper(model, lambda outputs, _: outputs[:, 0], rho, by_group=True, method="loop")
    found = ExactArithmetic(rho, 1.0).sum(clipper, batch, 1.0)
    exact = math.isqrt(sum(int(value) ** 2 for value in vector.tolist()))
    assert abs(float(found.norms) - exact) <= 1
    assert float(torch.linalg.vector_norm(vector)) != float(found.norms)
    assert all(abs(int(a) - int(b)) <= 1 + int(b) / 2**19 for a, b in zip(found.gradients[0][0], vector, strict=True))


def test_scalar_parameters_are_rounded_too():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.scale = nn.Linear(3, 1), nn.Parameter(torch.tensor(2.0))

        def forward(self, x):
            return self.inner(x)[:, 0] * self.scale

    torch.manual_seed(0)
    model, batch = Scaled(), Batch.of(torch.randn(4, 3), torch.zeros(4), (2, 2))
    sums = []
    for clipper in (GroupClipper(model, lambda o, _: o, 0.3, by_group=whole) for whole in (False, True)):
        arithmetic = ExactArithmetic(0.3, 1.0) if clipper.rules == {} else FloatArithmetic(0.3)
        sums.append(arithmetic.released(arithmetic.sum(clipper, batch, 1.0).gradients))
    for one, other in zip(*sums, strict=True):
        assert torch.allclose(one.double(), other, atol=1e-6)


def test_a_group_without_finite_gradient_adds_nothing():
    model, inputs, targets = problem(6)
    alone = whole_sum(model, inputs[:4], targets[:4], (4,), 0.5).gradients
    inputs[5] = math.nan
    found = whole_sum(model, inputs, targets, (4, 2), 0.5)
    assert found.skipped == 1
    assert all(torch.equal(a, b) for a, b in zip(found.gradients, alone, strict=True))


def test_what_is_released_is_a_whole_number_of_grid_steps():
    """One step of size qn: the parameters move by the released sum itself."""
    model, inputs, targets = problem(20, dtype=torch.float64)
    start = [p.detach().clone() for p in model.parameters()]
    data = UserData.of(inputs, targets, range(20), [0] * 20, 20)
    rho = 0.5
    trained(model, data, cross_entropy, rho=rho, q=1.0, steps=1, sigma=2.0, delta=1e-3, step_size=20.0, noise="exact")
    steps = torch.cat([((a - b) / (rho / RADIUS)).flatten() for a, b in zip(start, model.parameters(), strict=True)])
    assert (steps - steps.round()).abs().max() < 1e-4
    assert steps.abs().max() > 1e8


def test_exact_noise_needs_noise_that_fits():
    model, inputs, targets = problem(20)
    data = UserData.of(inputs, targets, range(20), [0] * 20, 20)
    for sigma in (0.0, 1e6):
        with pytest.raises(ArgumentError, match="sigma"):
            trained(model, data, cross_entropy, rho=1.0, steps=1, sigma=sigma, delta=1e-3, noise="exact")


# ------------------------------------------------------------------------------------------------- a precision attack

RELEASES = 4_000


def ours_in_floats(total):
    FloatArithmetic(1.0).add_noise([total], 1.0, RANDOM, 3)
    return total


def opacus_in_floats(total):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        generate = pytest.importorskip("opacus.optimizers.optimizer")._generate_noise
    torch.manual_seed(0)
    return total + generate(1.0, total)


def ours_exactly(total):
    arithmetic = ExactArithmetic(1.0, 1.0)
    whole = (total.double() * RADIUS).to(torch.int64)
    arithmetic.add_noise([whole], 1.0, RANDOM, 3)
    return arithmetic.released([whole])[0].float()


def fine(release, grid):
    """How many releases near zero are no multiple of the grid: floats are finer there."""
    near = release[release.abs() < 0.25].double()
    return int((torch.frac(near / grid) != 0).sum()), len(near)


@pytest.mark.parametrize("mechanism", [ours_in_floats, opacus_in_floats])
def test_low_bits_of_float_noise_tell_whether_an_element_is_there(mechanism):
    """An element adds 1. Without it a release near zero has all its bits; with it, 1 + noise near zero has lost some.

    So one fine bit proves that the element is missing: no ε holds for that.
    """
    grid = 2.0**-24
    without, near = fine(mechanism(torch.zeros(RELEASES)), grid)
    with_element, _ = fine(mechanism(torch.ones(RELEASES)), grid)
    assert with_element == 0
    assert without > near / 2 > 100


def test_whole_numbers_have_no_low_bits_to_tell():
    grid = 1 / RADIUS
    for total in (torch.zeros(RELEASES), torch.ones(RELEASES)):
        wrong, near = fine(ours_exactly(total), grid)
        assert wrong == 0
        assert near > 100
