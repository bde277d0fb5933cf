"""Training through the data in epochs: who is seen when, which noise is added, and what is promised."""

import numpy as np
import pytest
import torch
from learning.running import trained
from scipy.signal import lfilter
from torch import nn

from elementdp.errors import ArgumentError
from elementdp.learning import Plan, Target, UserData
from elementdp.learning.randomness import Purpose, Randomness
from elementdp.learning.sampling import allocated, dealt
from elementdp.privacy import Correlation, FixedOrder, RandomAllocation, Sampler, Unit, account

ORDER = Sampler.FIXED_ORDER


def people(n_users=10, each=3):
    rows = torch.arange(n_users * each)
    inputs = torch.randn(len(rows), 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return UserData.of(inputs, inputs.sum(1), users=rows // each, elements=rows % each, n_users=n_users)


def run(loss, data=None, **options):
    torch.manual_seed(0)
    options = {"rho": 1.0, "steps": 10, "q": 0.25, "sampler": ORDER, "sigma": 0.5, "delta": 1e-3, "seed": 4, **options}
    return trained(nn.Linear(2, 1).double(), data or people(), loss, **options)


def squares(outputs, targets):
    return (outputs[:, 0] - targets).square()


def test_every_user_is_in_one_batch_and_batches_are_equal_but_for_one():
    batch = dealt(103, 10, Randomness.seeded(1).stream(Purpose.SAMPLING))
    assert set(np.bincount(batch, minlength=10)) == {10, 11}
    again = dealt(103, 10, Randomness.seeded(2).stream(Purpose.SAMPLING))
    assert not np.array_equal(batch, again)


def test_an_epoch_sees_every_group_once():
    done = run(squares, steps=9)
    groups = done.history.groups
    assert sum(groups[:4]) == sum(groups[4:8]) == 30
    assert groups[:4] == groups[4:8]
    assert groups[8] == groups[0]


def test_allocated_pairs_enter_one_step_of_every_epoch_and_another_in_the_next():
    done = run(squares, steps=9, sampler=Sampler.ALLOCATED_PAIRS)
    groups = done.history.groups
    assert sum(groups[:4]) == sum(groups[4:8]) == 30
    places = [allocated(30, 4, Randomness.seeded(4).stream(Purpose.SAMPLING, epoch)) for epoch in range(3)]
    assert groups == [np.sum(places[k // 4] == k % 4) for k in range(9)]
    assert not np.array_equal(places[0], places[1])


def test_places_are_uniform_and_independent():
    places = allocated(70_000, 7, Randomness.seeded(3).stream(Purpose.SAMPLING))
    assert np.abs(np.bincount(places, minlength=7) - 10_000).max() < 5 * np.sqrt(10_000)
    together = np.bincount(7 * places[:-1] + places[1:], minlength=49)
    assert np.abs(together - 70_000 / 49).max() < 5 * np.sqrt(70_000 / 49)


@pytest.mark.parametrize("unit", list(Unit))
def test_the_guarantee_of_allocated_pairs_is_the_accountants(unit):
    done = run(squares, privacy=Target(1.5, 1e-4, unit), sampler=Sampler.ALLOCATED_PAIRS)
    event = RandomAllocation(done.sigma, 10, 4)
    assert done.guarantee.epsilon == account(event, 1e-4).up
    assert 1.49 < done.guarantee.epsilon <= 1.5


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("correlation", [Correlation(), Correlation.optimised(3, 10, 4)])
def test_the_guarantee_is_the_accountants_and_meets_the_target(unit, correlation):
    done = run(squares, privacy=Target(1.5, 1e-4, unit), correlation=correlation)
    event = FixedOrder(done.sigma, 10, 4, unit, 1 if unit is Unit.USER else None, correlation=correlation)
    assert done.guarantee.epsilon == account(event, 1e-4).up
    assert 1.49 < done.guarantee.epsilon <= 1.5
    assert (done.guarantee.unit, done.guarantee.sampler) == (unit, ORDER)


def test_correlated_noise_is_the_filter_of_independent_noise():
    """A loss without a gradient leaves nothing but noise in every step."""

    def released(correlation):
        path = []
        done = run(
            lambda outputs, targets: outputs[:, 0] * 0.0,
            correlation=correlation,
            on_step=lambda step: path.append(torch.cat([p.detach().flatten() for p in step.model.parameters()])),
        )
        torch.manual_seed(0)
        start = torch.cat([p.detach().flatten() for p in nn.Linear(2, 1).double().parameters()])
        assert done.guarantee.epsilon < np.inf
        return np.diff(torch.stack([start, *path]).numpy(), axis=0)

    correlation = Correlation.inverse_root(4)
    alone, together = released(Correlation()), released(correlation)
    np.testing.assert_allclose(together, lfilter(correlation.weights, [1.0], alone, axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"q": 0.4}, "q"),
        ({"q": 0.4, "sampler": "allocated-pairs"}, "q"),
        ({"sampler": "poisson-users", "correlation": Correlation.inverse_root(2)}, "correlation"),
        ({"noise": "exact", "correlation": Correlation.inverse_root(2)}, "correlation"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(options, name):
    with pytest.raises(ArgumentError, match=name):
        Plan(**{"steps": 5, "rho": 1.0, "q": 0.25, "sampler": ORDER, **options})
