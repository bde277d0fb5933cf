"""Photos that users share: clipped sums over distinct photos are those of gradients formed group by group."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from elementdp.companion.data.pseudo_users import pseudo_users
from elementdp.companion.experiments.images.shared_photos import PhotoData
from elementdp.learning import GroupClipper, Noise, Plan, train
from elementdp.privacy import Sampler, Unit

CLASSES, WIDTH, PHOTOS, USERS = 5, 7, 30, 12


def cross_entropy(outputs, targets):
    return functional.cross_entropy(outputs, targets, reduction="none")


def data_and_layer(k, seed, images=6, photos=PHOTOS):
    rng = np.random.default_rng([seed, k])
    inputs = torch.from_numpy(rng.normal(size=(photos, WIDTH)).astype(np.float32))
    labels = torch.from_numpy(rng.integers(CLASSES, size=photos))
    held = pseudo_users(rng.permutation(photos) % 6, USERS, images, k, rng)
    layer = nn.Linear(WIDTH, CLASSES)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(size=tuple(parameter.shape))))
    return PhotoData(inputs, labels, held, "test"), layer


def one_by_one(data, layer, unit, chosen, rho):
    """Every group's mean gradient by autograd in double precision, clipped, summed."""
    exact = nn.Linear(WIDTH, CLASSES).double()
    exact.load_state_dict(layer.state_dict())
    total = [torch.zeros_like(p) for p in exact.parameters()]
    norms = []
    for group in chosen:
        inputs, labels = data.fetch(torch.from_numpy(data.groups(unit).rows(np.array([group]))[0]))
        loss = functional.cross_entropy(exact(inputs.double()), labels)
        gradient = torch.autograd.grad(loss, list(exact.parameters()))
        norms.append(math.sqrt(sum(float(g.square().sum()) for g in gradient)))
        for part, g in zip(total, gradient, strict=True):
            part += g * min(1.0, rho / norms[-1])
    return total, sorted(norms)


def _alone(data, layer, unit, chosen, rho):
    """What single groups put into the sum, measured in double precision: never more than ρ."""
    clipper = data.clipper(layer, cross_entropy, Plan(1, rho))
    for group in chosen[:5]:
        found = clipper(data.batch(unit, np.array([group])))
        yield math.sqrt(sum(float(part.double().square().sum()) for part in found.gradients))


@settings(deadline=None, max_examples=25)
@given(
    k=st.integers(1, 6),
    seed=st.integers(0, 99),
    unit=st.sampled_from(Unit),
    rho=st.sampled_from([0.05, 0.5, 50.0]),
    share=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_clipped_sums_are_those_of_groups_one_by_one(k, seed, unit, rho, share):
    data, layer = data_and_layer(k, seed)
    groups = data.groups(unit)
    chosen = np.flatnonzero(np.random.default_rng(seed).random(len(groups)) < share)
    found = data.clipper(layer, cross_entropy, Plan(1, rho))(data.batch(unit, chosen))
    total, norms = one_by_one(data, layer, unit, chosen, rho)
    for mine, right in zip(found.gradients, total, strict=True):
        torch.testing.assert_close(mine.double(), right, rtol=1e-4, atol=1e-5)
    assert sorted(found.norms.tolist()) == pytest.approx(norms, rel=1e-4)
    assert all(norm <= rho * (1 + 1e-6) for norm in _alone(data, layer, unit, chosen, rho))


def test_photos_that_cancel_are_still_clipped():
    """Two photos with opposite gradients: the mean is zero, and the norm must not be taken for less than it may be."""
    inputs = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    labels = torch.tensor([0, 1])
    held = pseudo_users(np.zeros(2, dtype=np.int64), 1, 2, 1, np.random.default_rng(3))
    held.image[:] = [0, 1]
    layer = nn.Linear(2, 2)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    data = PhotoData(inputs, labels, held, "test")
    found = data.clipper(layer, cross_entropy, Plan(1, 1.0))(data.batch(Unit.USER, np.array([0])))
    assert 0 < float(found.norms[0]) < 1e-2
    assert all(float(part.abs().max()) < 1e-6 for part in found.gradients)


@pytest.mark.parametrize("sampler", [Sampler.POISSON_PAIRS, Sampler.POISSON_USERS])
def test_training_is_the_same_as_without_sharing(sampler):
    data, start = data_and_layer(3, 0)
    weights = []
    for shared in (True, False):
        layer = nn.Linear(WIDTH, CLASSES)
        layer.load_state_dict(start.state_dict())
        # One more module is all it takes to fall back to the rules for any model.
        model = layer if shared else nn.Sequential(layer)
        assert (type(data.clipper(model, cross_entropy, Plan(1, 1.0))) is GroupClipper) == (not shared)
        plan = Plan(20, 0.3, 0.4, sampler, 0.5)
        train(model, data, loss=cross_entropy, privacy=Noise(0.5, 1e-3), plan=plan, seed=1, progress=False)
        weights.append(layer.weight.detach())
    torch.testing.assert_close(*weights, rtol=1e-4, atol=1e-5)
    assert not torch.equal(weights[0], start.weight)


def test_an_empty_step_adds_nothing():
    data, layer = data_and_layer(2, 1)
    found = data.clipper(layer, cross_entropy, Plan(1, 1.0))(data.batch(Unit.ELEMENT, np.zeros(0, dtype=np.int64)))
    assert not len(found.norms) and all(not part.any() for part in found.gradients)
