"""The private iteration: samplers, noise, sign, projection, averages, and the front end."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning.oracle import clipped_sum
from learning.running import trained
from torch import nn
from torch.utils.data import TensorDataset

from elementdp.errors import ArgumentError, ElementdpError
from elementdp.learning import Ball, Box, GroupClipper, StepSize, Target, UserData, element_loss, element_risk
from elementdp.learning.descent import Polyak
from elementdp.learning.domain import gradient_mapping
from elementdp.learning.models import present
from elementdp.learning.randomness import Purpose, Randomness
from elementdp.learning.sampling import draw, heads, users_per_step
from elementdp.privacy import Sampler, SubsampledGaussian, Unit, account, rounded_up

SEEDED = Randomness.seeded(3)
USERS = [0, 0, 0, 0, 1, 1, 3, 3, 3, 4]  # user 2 has no data
ELEMENTS = [0, 0, 1, 7, 1, 1, 2, 2, 2, 0]


def half_square(outputs, targets):
    return 0.5 * (outputs[:, 0] - targets).square()


def sample(n_users=5, dtype=torch.float64):
    torch.manual_seed(0)
    inputs = torch.randn(10, 3, dtype=dtype)
    targets = inputs.sum(1)
    return UserData.of(inputs, targets, USERS, ELEMENTS, n_users), inputs, targets


def linear(seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return nn.Linear(3, 1).to(dtype)


def run(model, data, **options):
    options = {"rho": 1.0, "steps": 3, "q": 1.0, "sigma": 0.0, "seed": 1, **options}
    return trained(model, data, half_square, **options)


def values(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


# ------------------------------------------------------------------------------------------------------- the sample


def test_groups_are_the_pairs_of_user_and_element():
    data, inputs, _ = sample()
    groups = data.groups(Unit.ELEMENT)
    found = {
        (int(u), int(e)): sorted(groups.order[a:b].tolist())
        for u, e, a, b in zip(groups.user, groups.element, groups.start, groups.start[1:], strict=False)
    }
    expected = {}
    for row, pair in enumerate(
        zip(np.unique(USERS, return_inverse=True)[1], np.unique(ELEMENTS, return_inverse=True)[1], strict=True)
    ):
        expected.setdefault((int(pair[0]), int(pair[1])), []).append(row)
    assert found == expected
    assert len(data.groups(Unit.USER)) == 4
    assert data.most_elements == 3
    batch = data.batch(Unit.ELEMENT, np.arange(len(groups)))
    assert batch.sizes == tuple(sorted(len(rows) for rows in expected.values()))
    assert torch.equal(torch.sort(batch.fetch(slice(0, 10))[0][:, 0])[0], torch.sort(inputs[:, 0])[0])


def test_a_dataset_gives_the_same_run_as_its_tensors():
    data, inputs, targets = sample()
    other = UserData.of_dataset(TensorDataset(inputs, targets), USERS, ELEMENTS, 5)
    one, two = linear(), linear()
    run(one, data, sigma=0.5, delta=1e-5, q=0.5)
    run(two, other, sigma=0.5, delta=1e-5, q=0.5)
    assert torch.equal(values(one), values(two))


def test_bad_data_is_named():
    with pytest.raises(ArgumentError, match="n_users"):
        sample(n_users=3)
    with pytest.raises(ArgumentError, match="elements"):
        UserData.of(torch.zeros(2, 1), torch.zeros(2), [0, 1], [0], 2)
    with pytest.raises(ArgumentError, match="users"):
        UserData.of(torch.zeros(3, 1), torch.zeros(3), [0, 1], [0, 1], 2)


def test_the_number_of_users_is_never_read_off_the_rows():
    """Emptying a user's only element would change n, and with it the scale of the noise that everyone sees."""
    rows = torch.zeros(2, 1), torch.zeros(2), [0, 1], [0, 0]
    for make in (
        lambda: UserData.of(*rows),
        lambda: UserData.of_dataset(TensorDataset(*rows[:2]), *rows[2:]),
        lambda: UserData(lambda index: (rows[0][index], rows[1][index]), *rows[2:]),
    ):
        with pytest.raises(ArgumentError, match=r"n_users.*public"):
            make()


def test_element_loss_is_the_sum_over_elements_of_mean_losses():
    losses = torch.arange(10.0)
    expected = torch.tensor([(0 + 1) / 2 + 2 + 3, (4 + 5) / 2, 0, (6 + 7 + 8) / 3, 9])
    assert torch.allclose(element_loss(losses, USERS, ELEMENTS, 5), expected)
    assert float(element_risk(losses, USERS, ELEMENTS, 5)) == pytest.approx(float(expected.mean()))


# ---------------------------------------------------------------------------------------------------------- samplers


@pytest.mark.parametrize("q", [0.02, 0.1, 0.3])
def test_coins_are_independent_whichever_way_they_are_tossed(q):
    # 0.3 tosses every coin, the others draw the gaps between heads; single and joint rates decide.
    stream, tosses, count = SEEDED.stream(Purpose.SAMPLING, 4), 20_000, 40
    shown = np.zeros((tosses, count))
    for row in shown:
        places = heads(count, q, stream)
        assert (np.diff(places) > 0).all()
        row[places] = 1
    together = shown.T @ shown / tosses
    expected = np.where(np.eye(count, dtype=bool), q, q * q)
    assert np.abs(together - expected).max() < 5 * math.sqrt(q / tosses)
    assert shown.sum(1).var() == pytest.approx(count * q * (1 - q), rel=0.05)


def test_no_coin_falls_on_heads_at_a_rate_near_zero_nor_among_none():
    stream = SEEDED.stream(Purpose.SAMPLING)
    assert len(heads(0, 0.05, stream)) == 0
    assert len(heads(50, 1e-12, stream)) == 0


def frequencies(sampler, q, draws=4000):
    data, *_ = sample()
    groups = data.groups(Unit.ELEMENT)
    shown = np.zeros((draws, len(groups)))
    for i in range(draws):
        shown[i, draw(sampler, q, groups.user, 5, SEEDED.stream(Purpose.SAMPLING, i))] = 1
    return shown, groups


@pytest.mark.parametrize("sampler", [Sampler.POISSON_USERS, Sampler.FIXED_USERS, Sampler.POISSON_PAIRS])
def test_every_group_is_drawn_at_its_rate(sampler):
    shown, groups = frequencies(sampler, 0.4)
    assert np.abs(shown.mean(0) - 0.4).max() < 5 * math.sqrt(0.24 / len(shown))
    same = groups.user[:, None] == groups.user
    together = shown.T @ shown / len(shown)
    if sampler is Sampler.POISSON_PAIRS:
        expected = np.where(np.eye(len(groups), dtype=bool), 0.4, 0.16)
    elif sampler is Sampler.POISSON_USERS:
        expected = np.where(same, 0.4, 0.16)
    else:
        expected = np.where(same, 0.4, 0.4 * (2 - 1) / (5 - 1))
    assert np.abs(together - expected).max() < 5 * math.sqrt(0.25 / len(shown))


def test_fixed_size_takes_a_whole_number_of_users():
    shown, groups = frequencies(Sampler.FIXED_USERS, 0.4, 200)
    users = [set(groups.user[row > 0].tolist()) for row in shown]
    assert {len(found) for found in users} <= {1, 2}  # the fifth user has no data and may be one of the two
    with pytest.raises(ArgumentError, match="whole number of users"):
        users_per_step(0.5, 5)


# --------------------------------------------------------------------------------------------------------- iteration


def test_one_step_without_noise_is_the_printed_formula_with_the_right_sign():
    """θ - α/(qn) Σ_u Σ_k [mean gradient]_ρ, gradients by hand: (θᵀx - y)x averaged over the element."""
    data, inputs, targets = sample()
    model = linear()
    theta = values(model).clone()
    design = torch.cat([inputs, torch.ones(10, 1, dtype=torch.float64)], 1)
    total = torch.zeros(4, dtype=torch.float64)
    for pair in {(0, 0), (0, 1), (0, 7), (1, 1), (3, 2), (4, 0)}:
        rows = [i for i in range(10) if (USERS[i], ELEMENTS[i]) == pair]
        gradient = ((design[rows] @ theta - targets[rows])[:, None] * design[rows]).mean(0)
        total += gradient * min(1.0, 0.7 / float(gradient.norm()))
    run(model, data, steps=1, rho=0.7, step_size=0.3, sampler=Sampler.NONE)
    assert torch.allclose(values(model), theta - 0.3 * total / 5, rtol=1e-12)


def test_the_iteration_descends_and_the_printed_sign_climbs():
    data, inputs, targets = sample()
    model = linear()

    def risk(m):
        return float(element_risk(half_square(m(inputs), targets).detach(), USERS, ELEMENTS, 5))

    start, start_values = risk(model), values(model).clone()
    run(model, data, steps=200, step_size=0.2, sampler=Sampler.NONE, rho=math.inf)
    assert risk(model) < 1e-3 * start
    step = values(model) - start_values
    nn.utils.vector_to_parameters(start_values - step, model.parameters())
    assert risk(model) > start


def test_user_level_is_algorithm_1_with_one_cluster():
    data, inputs, targets = sample()
    element = UserData.of(inputs, targets, USERS, np.zeros(10), 5)
    one, two = linear(), linear()
    run(one, data, unit=Unit.USER, rho=0.4)
    run(two, element, unit=Unit.ELEMENT, rho=0.4)
    assert torch.equal(values(one), values(two))


def test_noise_is_gaussian_of_deviation_rho_sigma_and_independent_of_sampling():
    """An empty batch releases noise only: q so small that nobody is ever drawn."""
    torch.manual_seed(0)
    model = nn.Linear(3, 4000).double()
    data = UserData.of(torch.ones(1, 3, dtype=torch.float64), torch.zeros(1, dtype=torch.float64), [0], [0], 1)
    start = values(model).clone()
    q = 1e-8  # the least the accountants take
    done = run(model, data, q=q, sigma=2.0, delta=1e-5, rho=0.5, steps=1, step_size=q)
    assert done.history.groups == [0]
    noise = (start - values(model)).numpy()
    count = len(noise)
    assert abs(noise.std() - 1.0) < 5 / math.sqrt(2 * count)
    assert abs(noise.mean()) < 5 / math.sqrt(count)


def test_the_noise_does_not_depend_on_the_data_or_the_sampler():
    data, *_ = sample()
    moves = {}
    for sampler in (Sampler.POISSON_USERS, Sampler.POISSON_PAIRS):
        for sigma in (0.0, 1.0):
            model = linear()
            run(model, data, q=0.5, sigma=sigma, delta=1e-5, steps=1, sampler=sampler, step_size=1.0)
            moves[sampler, sigma] = values(model)
    noise = [moves[s, 1.0] - moves[s, 0.0] for s in (Sampler.POISSON_USERS, Sampler.POISSON_PAIRS)]
    assert torch.allclose(noise[0], noise[1], rtol=1e-12)
    assert float(noise[0].abs().min()) > 0


def test_the_same_seed_gives_the_same_run_and_another_one_does_not():
    data, *_ = sample()
    models = [linear() for _ in range(4)]
    for model, seed in zip(models, (5, 5, 6, None), strict=True):
        run(model, data, q=0.5, sigma=1.0, delta=1e-5, seed=seed)
    assert torch.equal(values(models[0]), values(models[1]))
    assert not torch.equal(values(models[0]), values(models[2]))
    assert not torch.equal(values(models[0]), values(models[3]))


@given(st.floats(0.01, 5), st.floats(0, 0.99), st.integers(1, 1000))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_step_sizes(alpha0, beta, k):
    assert StepSize(alpha0, beta)(k) == pytest.approx(alpha0 / math.exp(beta * math.log(k)))


def test_polyak_average_is_the_mean_of_the_iterates():
    data, *_ = sample()
    seen = []
    done = run(linear(), data, steps=7, sigma=1.0, delta=1e-5, on_step=lambda s: seen.append(values(s.model).clone()))
    found = torch.cat([done.average["weight"].flatten(), done.average["bias"]])
    assert torch.allclose(found, torch.stack(seen).mean(0), rtol=1e-12)
    assert Polyak(list(linear().parameters())).count == 0


@pytest.mark.parametrize("domain", [Ball(0.3), Box(-0.1, 0.2)])
def test_projection_inside_algorithm_1_and_after_the_noise(domain):
    data, inputs, targets = sample()
    model = linear()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(0.1)
    theta = [p.detach().clone() for p in model.parameters()]
    alpha, rho = 5.0, 0.05
    total = [torch.zeros_like(t) for t in theta]
    for pair in sorted(set(zip(USERS, ELEMENTS, strict=True))):
        rows = [i for i in range(10) if (USERS[i], ELEMENTS[i]) == pair]
        gradient, _ = clipped_sum(model, half_square, inputs[rows], targets[rows], [len(rows)], math.inf)
        point = torch.cat([(t - alpha * g).flatten() for t, g in zip(theta, gradient, strict=True)])
        flat = torch.cat([t.flatten() for t in theta])
        if isinstance(domain, Ball):
            point = point * min(1.0, domain.radius / float(point.norm()))
        else:
            point = point.clip(domain.low, domain.high)
        delta = (flat - point) / alpha
        delta = delta * min(1.0, rho / float(delta.norm()))
        for t, part in zip(total, delta.split([3, 1]), strict=True):
            t += part.view_as(t)
    found = GroupClipper(model, half_square, rho, domain=domain)(data.batch(Unit.ELEMENT, np.arange(6)), step=alpha)
    for a, b in zip(found.gradients, total, strict=True):
        assert torch.allclose(a, b, atol=1e-12)
    run(model, data, domain=domain, sigma=10.0, delta=1e-5, steps=2)
    inside = domain.project([p.detach()[None] for p in model.parameters()])
    assert all(torch.allclose(p[0], q, atol=1e-12) for p, q in zip(inside, model.parameters(), strict=True))
    assert gradient_mapping(None, [], [], 1.0) == []


def test_an_optimizer_sees_the_private_direction():
    data, *_ = sample()
    one, two = linear(), linear()
    run(one, data, step_size=0.2)
    run(two, data, optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.2))
    assert torch.allclose(values(one), values(two), rtol=1e-12)


# --------------------------------------------------------------------------------------------------------- front end


@pytest.mark.parametrize("sampler", sorted(set(Sampler) - {Sampler.FIXED_ORDER, Sampler.ALLOCATED_PAIRS}))
@pytest.mark.parametrize("unit", list(Unit))
def test_the_guarantee_is_the_accountants_and_meets_the_target(sampler, unit):
    data, *_ = sample()
    q = 1.0 if sampler is Sampler.NONE else 0.4
    done = run(linear(), data, privacy=Target(1.5, 1e-4, unit), q=q, sampler=sampler, steps=5)
    event = SubsampledGaussian(
        sampler=sampler, q=q, sigma=done.sigma, steps=5, unit=unit, elements_per_user=1 if unit is Unit.USER else None
    )
    assert done.guarantee.epsilon == account(event, 1e-4).up
    assert 1.49 < done.guarantee.epsilon <= 1.5
    assert (done.guarantee.unit, done.guarantee.sampler) == (unit, sampler)


def test_no_noise_is_no_privacy():
    data, *_ = sample()
    assert run(linear(), data, rho=math.inf).guarantee.epsilon == math.inf


def test_progress_shows_loss_and_epsilon(capsys):
    data, *_ = sample()
    done = run(linear(), data, sigma=1.0, delta=1e-4, q=0.5, steps=4, progress=True)
    shown = capsys.readouterr().err
    assert "loss" in shown
    assert f"ε ≤ {rounded_up(done.guarantee.epsilon)}" in shown


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"privacy": (1.0, 1e-5)}, "privacy must be Target"),
        ({"sigma": 1.0}, "delta"),
        ({"sigma": 1.0, "delta": 1e-5, "rho": math.inf}, "rho"),
        ({"rho": -1.0}, "rho"),
        ({"q": 0.0}, "q"),
        ({"steps": 0}, "steps"),
        ({"sampler": Sampler.FIXED_USERS, "q": 0.5}, "q"),
        ({"sigma": -1.0}, "sigma"),
        ({"step_size": 0.0}, "alpha0"),
        ({"optimizer": torch.optim.SGD, "domain": Ball(1.0)}, "optimizer"),
        ({"checkpoint": "run.ckpt", "checkpoint_every": 0}, "every"),
        ({"sampler": Sampler.NONE, "q": 0.5}, "q"),
        ({"sampler": "everyone"}, "sampler must be one of none"),
        ({"method": "quick"}, "method must be one of auto"),
        ({"unit": "row"}, "unit must be one of element"),
        ({"seed": -1}, "seed"),
        ({"precision": torch.int8}, "precision"),
        ({"precision": torch.float16}, "bfloat16"),
        ({"device": "cuda:99"}, r"device must be .*\(cpu:0.*got 'cuda:99'"),
        ({"device": "abacus"}, "device"),
        ({"checkpoint": "."}, "checkpoint must be a file"),
        ({"checkpoint": "/dev/null/run.ckpt"}, "checkpoint must be a file in a folder"),
    ],
)
def test_bad_arguments_are_refused_by_name(options, name):
    data, *_ = sample()
    with pytest.raises((ArgumentError, ElementdpError), match=name):
        run(linear(), data, **options)


def test_only_devices_of_this_machine_are_taken(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    for name in ("cpu", "cpu:0", "cuda", "cuda:0", "cuda:1", torch.device("cuda", 1)):
        assert present(name) == torch.device(name)
    for name in ("cuda:2", "mps", "meta", 1.5):
        with pytest.raises(ArgumentError, match=r"device must be .*\(cpu:0, cuda:0, cuda:1\)"):
            present(name)


def test_nan_rows_never_reach_the_model_and_are_counted():
    _, inputs, targets = sample()
    inputs = inputs.clone()
    inputs[4] = math.nan
    model = linear()
    done = run(model, UserData.of(inputs, targets, USERS, ELEMENTS, 5), sampler=Sampler.NONE, steps=4)
    assert torch.isfinite(values(model)).all()
    assert done.history.skipped == [1, 1, 1, 1]
    assert done.skipped == 4
