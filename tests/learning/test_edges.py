"""Odd models, odd data and odd arguments: the right behaviour, or an error that says what would be right."""

import itertools
import math
import random
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from learning.oracle import clipped_sum, cross_entropy
from learning.running import trained
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from elementdp.errors import ArgumentError
from elementdp.learning import Batch, GroupClipper, ModelError, Noise, Plan, Target, UserData, train
from elementdp.learning.iteration import PrivateIteration, Task
from elementdp.privacy import Unit

ROWS = 24


def data(**changes):
    torch.manual_seed(0)
    rows = {"inputs": torch.randn(ROWS, 6), "targets": torch.randint(4, (ROWS,)), **changes}
    return UserData.of(rows["inputs"], rows["targets"], torch.arange(ROWS) % 8, torch.arange(ROWS) % 3, 8)


def run(model=None, sample=None, loss=cross_entropy, **options):
    torch.manual_seed(1)
    options = {"rho": 1.0, "steps": 3, "q": 0.5, "sigma": 1.0, "delta": 1e-3, **options}
    return trained(model or nn.Linear(6, 4), sample or data(), loss, **options)


def elsewhere():
    """An optimizer of another model."""
    return torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)


# ------------------------------------------------------------------------------------------------------------ models


class TwoOutputs(nn.Module):
    """Two outputs, and a parameter that belongs to no layer."""

    def __init__(self):
        super().__init__()
        self.inner, self.scale = nn.Linear(6, 4), nn.Parameter(torch.ones(()))

    def forward(self, x):
        out = self.inner(x) * self.scale
        return out, out.square()


class Checkpointed(nn.Module):
    """Runs a part again during the backward pass, to save memory."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Sequential(nn.Linear(6, 5), nn.Tanh()), nn.Linear(5, 4)

    def forward(self, x):
        return self.last(checkpoint(self.first, x, use_reentrant=False))


class Energy(nn.Module):
    """Puts out the derivative of one of its parts by the inputs."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1))
        self.out = nn.Linear(6, 4)

    def derivative(self, x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(self.inner(x).sum(), x, create_graph=True)[0]

    def forward(self, x):
        return self.out(self.derivative(x))


class Penalized(Energy):
    """Penalizes that derivative where it is long, in few rows."""

    bound = 0.0

    def forward(self, x):
        return self.out(x) + (self.derivative(x).norm(dim=1, keepdim=True) - self.bound).relu() * x[:, :4]


class Adversarial(Energy):
    """Moves its inputs along that derivative, which is a constant then."""

    def forward(self, x):
        return self.out(x + 0.1 * self.derivative(x).detach().sign()) + self.inner(x)


def steep(outputs, targets):
    """A loss that penalizes its own derivative."""
    losses = cross_entropy(outputs, targets)
    return losses + torch.autograd.grad(losses.sum(), outputs, create_graph=True)[0].square().sum(1)


@pytest.mark.parametrize(
    ("make", "loss"),
    [
        (Energy, cross_entropy),
        (Penalized, cross_entropy),
        (Adversarial, cross_entropy),
        (lambda: nn.Linear(6, 4), steep),
        (TwoOutputs, lambda out, y: cross_entropy(out[0], y) + out[1].mean(1)),
        (Checkpointed, cross_entropy),
        (lambda: torch.jit.script(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4))), cross_entropy),
    ],
    ids=["energy", "penalized", "adversarial", "steep", "two outputs", "checkpointing", "jit"],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_models_that_some_methods_cannot_follow_are_trained_by_another(make, loss):
    torch.manual_seed(0)
    model, inputs, targets = make(), torch.randn(10, 6), torch.randint(4, (10,))
    found = GroupClipper(model, loss, 0.2)(Batch.of(inputs, targets, (2, 3, 5)))
    expected = [torch.zeros_like(p) for p in model.parameters()]
    for rows in (slice(0, 2), slice(2, 5), slice(5, 10)):
        mean = loss(model(inputs[rows]), targets[rows]).mean()
        grads = torch.autograd.grad(mean, list(model.parameters()), materialize_grads=True)
        factor = min(1.0, 0.2 / math.sqrt(sum(float(g.square().sum()) for g in grads)))
        for total, grad in zip(expected, grads, strict=True):
            total += factor * grad
    for one, other in zip(found.gradients, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_a_penalty_of_derivatives_that_no_row_paid_at_first_is_clipped_with_the_rest():
    """A rule for layers does not see it, and there was nothing to compare it with."""
    torch.manual_seed(0)
    model, batch = Penalized(), Batch.of(torch.randn(10, 6), torch.randint(4, (10,)), (2, 3, 5))
    model.bound = 1e9
    clipper = GroupClipper(model, cross_entropy, 0.2)
    clipper.prepare(batch)
    model.bound = 0.0
    slow = GroupClipper(model, cross_entropy, 0.2, method="loop")(batch)
    for one, other in zip(clipper(batch).gradients, slow.gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_a_run_of_a_model_that_differentiates_goes_on_from_its_checkpoint(tmp_path):
    path = tmp_path / "run.ckpt"
    whole, halves = Energy(), Energy()
    halves.load_state_dict(whole.state_dict())
    run(whole, loss=steep, seed=1, steps=4)
    for steps in (2, 4):
        run(halves, loss=steep, seed=1, steps=steps, checkpoint=path)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), halves.parameters(), strict=True))


def test_a_callback_may_evaluate_without_changing_the_run():
    def evaluate(step):
        step.model.eval()

    models = [nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.5), nn.Linear(5, 4)) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    run(models[0], seed=1, steps=5)
    run(models[1], seed=1, steps=5, on_step=evaluate)
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        assert torch.equal(one, other)


# --------------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"step_size": 0.1, "optimizer": lambda p: torch.optim.SGD(p, lr=0.1)}, "step_size must be left"),
        ({"optimizer": lambda p: torch.optim.SGD(p[:1], lr=0.1)}, "1 of 2 are missing"),
        ({"scheduler": lambda o: torch.optim.lr_scheduler.StepLR(o, 1)}, "scheduler must be given along"),
        ({"precision": torch.float16}, "float16 loses small gradients"),
        ({"rho": 1e-25}, "rho must be between"),
        ({"privacy": "strong"}, "privacy must be Target"),
        ({"privacy": Target(1.0, 0.5)}, "delta must be below 1/n"),
        ({"delta": 0.5}, "delta must be below 1/n"),
        ({"noise": "quiet"}, "noise must be one of float, exact"),
        ({"timeout": 0.0}, "timeout"),
        ({"optimizer": torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)}, "optimizer must be a function that"),
        ({"optimizer": lambda p: None}, "optimizer must be a function that returns"),
        ({"optimizer": torch.optim.LBFGS}, "optimizer must be one that looks once a step"),
        ({"optimizer": torch.optim.Adam, "scheduler": "cosine"}, "scheduler must be a function that"),
        (
            {"optimizer": torch.optim.Adam, "scheduler": lambda o: None},
            "scheduler must be a function that returns",
        ),
        (
            {"optimizer": torch.optim.Adam, "scheduler": lambda o: o},
            "scheduler must be a function that returns",
        ),
        (
            {"optimizer": torch.optim.Adam, "scheduler": lambda o: torch.optim.lr_scheduler.StepLR(elsewhere(), 1)},
            "scheduler must be one of the optimizer that it is given",
        ),
        ({"loss": lambda out, y: out.argmax(1) - y}, "loss must be floating-point numbers"),
        ({"domain": 3}, "domain must be Ball"),
        ({"model": lambda x: x}, "model must be a Module"),
        ({"sample": (1, 2)}, "data must be a UserData"),
        ({"loss": "mse"}, "loss must be a function"),
        ({"on_step": 3}, "on_step must be a function"),
    ],
)
def test_arguments_that_make_no_sense_are_named(options, words):
    with pytest.raises(ArgumentError, match=words):
        run(**options)


def test_a_plan_that_is_none_is_named():
    with pytest.raises(ArgumentError, match="plan must be a Plan"):
        train(nn.Linear(6, 4), data(), loss=cross_entropy, privacy=Target(1.0, 1e-3), plan={"steps": 3})


@pytest.mark.parametrize("name", ["users", "elements"])
@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([None, "a", "b"], "missing"),
        ([math.nan, 1.0, 2.0], "missing"),
        (np.array([np.nan, 1.0, 2.0]), "missing"),
        (np.array(["2020", "NaT", "2021"], dtype="datetime64[Y]"), "missing"),
        (pd.array(["a", pd.NA, "b"], dtype="string"), "missing"),
        (pd.Series([True, False, pd.NA]), "missing"),
        (np.ma.array([1, 2, 3], mask=[False, True, False]), "missing"),
        ([0, 1, object()], "sorted"),
        ([1, "1", 2], "one type"),
        (np.array([1, "1", b"1"], dtype=object), "one type"),
        ([[1], [2], [3]], "one id for each row"),
    ],
)
def test_ids_that_are_missing_or_of_several_types_are_refused(name, ids, words):
    named = {"users": [0, 1, 2], "elements": [0, 0, 0], name: ids}
    with pytest.raises(ArgumentError, match=f"{name} must be .*{words}|{name} must be one id.*{words}"):
        UserData.of(torch.zeros(3, 1), torch.zeros(3), **named, n_users=3)


# -------------------------------------------------------------------------------------------- callbacks and schedules


def test_a_callback_sees_the_run_and_can_end_it():
    seen = []

    def on_step(step):
        seen.append((step.k, step.loss, step.spent.epsilon, step.learning_rate))
        return step.k == 4

    done = run(steps=50, on_step=on_step, optimizer=lambda p: torch.optim.SGD(p, lr=0.25))
    assert [k for k, *_ in seen] == [1, 2, 3, 4]
    assert done.guarantee.epsilon == seen[-1][2] == run(steps=4).guarantee.epsilon
    assert all(a[2] < b[2] for a, b in itertools.pairwise(seen))
    assert {rate for *_, rate in seen} == {0.25}
    assert done.history.losses == pytest.approx([loss for _, loss, *_ in seen], nan_ok=True)


def test_a_callback_that_changes_the_model_is_refused():
    """A run that goes on from a checkpoint would repeat its noise on the model before the change."""

    def smaller(step):
        with torch.no_grad():
            step.model.weight.mul_(0.9)

    def frozen(step):
        step.model.bias.requires_grad_(False)

    for change, name in ((smaller, "weight"), (frozen, "bias")):
        with pytest.raises(ArgumentError, match=f"on_step must be one that looks .* changes {name}"):
            run(on_step=change)


@pytest.mark.parametrize("optimizer", [None, lambda p: torch.optim.SGD(p, lr=0.25)], ids=["iteration", "optimizer"])
def test_a_callback_leaves_no_gradient_without_noise_in_the_model(optimizer):
    def backward(step):
        step.model(torch.ones(2, 6)).sum().backward()

    def clean(step):
        backward(step)
        step.model.zero_grad()

    with pytest.raises(ArgumentError, match=r"on_step .*weight\.grad"):
        run(on_step=backward, optimizer=optimizer)
    done = run(on_step=clean, optimizer=optimizer)
    assert all(p.grad is None for p in done.model.parameters())


def test_an_optimizer_of_sparse_gradients_is_refused():
    with pytest.raises(ArgumentError, match="optimizer must be one of dense gradients"):
        run(optimizer=lambda p: torch.optim.SparseAdam(p, lr=0.25))


def test_a_seeded_run_repeats_whatever_its_passes_draw_from():
    class Shaken(nn.Linear):
        def forward(self, x):
            noise = torch.from_numpy(np.random.normal(size=x.shape)).float()  # noqa: NPY002
            return super().forward(x + noise * random.random() if self.training else x)

    models = [Shaken(6, 4) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    for model in models:
        run(model, seed=1)
    assert torch.equal(models[0].weight, models[1].weight)


def test_a_scheduler_moves_with_every_step_and_goes_on_after_a_stop(tmp_path):
    options = {
        "optimizer": lambda p: torch.optim.SGD(p, lr=1.0),
        "scheduler": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.5),
        "seed": 1,
    }
    rates, models = [], [nn.Linear(6, 4) for _ in range(3)]
    for model in models:
        model.load_state_dict(models[0].state_dict())
    run(models[0], steps=6, **options, on_step=lambda step: rates.append(step.learning_rate))
    assert rates == [0.5**k for k in range(1, 7)]
    path = tmp_path / "run.ckpt"
    run(models[1], steps=3, **options, checkpoint=path)
    run(models[2], steps=6, **options, checkpoint=path)
    assert all(torch.equal(a, b) for a, b in zip(models[0].parameters(), models[2].parameters(), strict=True))


def test_a_scheduler_that_wants_to_see_the_loss_is_refused():
    """The loss is not private."""
    options = {
        "optimizer": lambda p: torch.optim.SGD(p, lr=1.0),
        "scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau,
    }
    with pytest.raises(ArgumentError, match="scheduler must be one that goes by the number of steps alone"):
        run(**options)


# -------------------------------------------------------------------------------------------------- elements per user


def test_users_with_too_many_elements_keep_a_public_number_of_them_at_random():
    rows = 60
    users, elements = np.repeat([0, 1, 2], 20), np.tile(np.arange(20), 3)
    sample = UserData.of(torch.eye(rows), torch.randint(4, (rows,)), users, elements, 3)
    seen, counts = [], np.zeros(rows)
    for seed in range(60):
        model = nn.Linear(rows, 4, bias=False)
        nn.init.zeros_(model.weight)
        run(model, sample, q=1.0, sampler="none", elements_per_user=5, seed=seed, steps=1, sigma=0.0)
        kept = (model.weight.detach().abs().sum(0) > 0).numpy()
        assert [int(kept[users == u].sum()) for u in range(3)] == [5, 5, 5]
        counts += kept
        seen.append(tuple(kept))
    assert len(set(seen)) == 60
    assert np.abs(counts / 60 - 0.25).max() < 5 * math.sqrt(0.25 * 0.75 / 60)


# ---------------------------------------------------------------------------------------- dictionaries and ragged text


class Texts(Dataset):
    """Items as tokenizers give them: dictionaries of texts of different lengths."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.items = [
            {"input_ids": rng.integers(1, 30, rng.integers(2, 9)).tolist(), "label": int(rng.integers(4))}
            for _ in range(ROWS)
        ]

    def __getitem__(self, row):
        return self.items[row]


def padded(items):
    width = max(len(item["input_ids"]) for item in items)
    ids = torch.tensor([item["input_ids"] + [0] * (width - len(item["input_ids"])) for item in items])
    return {"input_ids": ids, "attention_mask": (ids > 0).float()}, torch.tensor([item["label"] for item in items])


class Classifier(nn.Module):
    """Takes a batch by name and returns an object with logits."""

    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(30, 8), nn.Linear(8, 4)

    def forward(self, input_ids, attention_mask):
        mean = (self.embedding(input_ids) * attention_mask[..., None]).sum(1) / attention_mask.sum(1, keepdim=True)
        return SimpleNamespace(logits=self.out(mean))


@pytest.mark.parametrize("method", ["auto", "loop"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_of_padded_texts_by_name_trains(method, workers):
    sample = UserData.of_dataset(
        Texts(), torch.arange(ROWS) % 8, torch.arange(ROWS) % 3, 8, collate=padded, workers=workers
    )
    torch.manual_seed(0)
    model = Classifier()
    groups = sample.groups(Unit.ELEMENT)
    batch = sample.batch(Unit.ELEMENT, np.arange(len(groups)))
    inputs, targets = batch.fetch(slice(0, ROWS))

    def loss(outputs, targets):
        return cross_entropy(outputs.logits, targets)

    found = GroupClipper(model, loss, 0.1, method=method)(batch)

    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, ids):
            return self.inner(ids, (ids > 0).to(self.inner.out.weight.dtype)).logits

    expected, _ = clipped_sum(Flat(), cross_entropy, inputs["input_ids"], targets, batch.sizes, 0.1)
    for one, other in zip(found.gradients, expected, strict=True):
        assert torch.allclose(one.double(), other, atol=1e-6)
    assert run(model, sample, loss=loss, method=method).guarantee.epsilon < math.inf


class Endless(IterableDataset):
    """Rows that come one after another, and have no number."""

    def __iter__(self):
        return iter(Texts().items)


@pytest.mark.parametrize(
    ("dataset", "options", "words"),
    [
        (Endless(), {}, "dataset must be one whose rows are found by number"),
        (3, {}, "dataset must be one whose rows are found by number"),
        (TensorDataset(torch.zeros(ROWS + 1, 6)), {}, f"users must be one for each of the {ROWS + 1} rows"),
        (Texts(), {"collate": "pad"}, "collate must be a function that makes inputs and targets"),
    ],
)
def test_what_cannot_load_rows_is_named(dataset, options, words):
    with pytest.raises(ArgumentError, match=words):
        UserData.of_dataset(dataset, torch.arange(ROWS) % 8, torch.arange(ROWS) % 3, 8, **options)


@pytest.mark.parametrize("collate", [lambda items: padded(items[:-1]), lambda items: padded(items + items[-1:])])
def test_a_collate_that_drops_or_adds_rows_is_refused(collate):
    """Groups are told apart by the places of their rows."""
    sample = UserData.of_dataset(Texts(), torch.arange(ROWS) % 8, torch.arange(ROWS) % 3, 8, collate=collate)
    with pytest.raises(ArgumentError, match=r"collate must be one that returns the \d+ it was asked for"):
        run(Classifier(), sample, loss=lambda outputs, y: cross_entropy(outputs.logits, y))


def test_a_fetch_of_other_rows_is_refused():
    ids = torch.arange(ROWS)
    with pytest.raises(ArgumentError, match="fetch must be a function"):
        UserData(3, ids % 8, ids % 3, 8)
    sample = UserData(lambda rows: (torch.randn(ROWS, 6), torch.zeros(ROWS).long()), ids % 8, ids % 3, 8)
    with pytest.raises(ArgumentError, match=f"fetch must be one that returns the 8 it .* {ROWS} rows"):
        run(sample=sample)


def test_tensors_without_rows_are_named():
    with pytest.raises(ArgumentError, match="data must be tensors with one row for each example"):
        data(inputs={"one": torch.zeros(ROWS, 2), "two": torch.tensor(1.0)})


def test_inputs_of_several_tensors_are_several_arguments():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(6, 4), nn.Linear(3, 4)

        def forward(self, one, two):
            return self.left(one) + self.right(two)

    torch.manual_seed(0)
    sample = data(inputs=(torch.randn(ROWS, 6), torch.randn(ROWS, 3)))
    assert math.isfinite(run(Sum(), sample).history.losses[-1])


# ------------------------------------------------------------------------------------- nothing to learn, other devices


@pytest.mark.parametrize(
    "loss",
    [
        lambda outputs, targets: cross_entropy(outputs.detach(), targets),
        lambda outputs, targets: (outputs.argmax(1) != targets).float(),
    ],
    ids=["detached", "whole numbers"],
)
def test_a_loss_without_a_gradient_is_refused(loss):
    """It would spend all of ε on noise alone."""
    with pytest.raises(ModelError, match="no loss has a gradient"):
        run(loss=loss)


def test_training_in_inference_mode_is_refused():
    with torch.inference_mode(), pytest.raises(ModelError, match="inference_mode"):
        run()


def test_exact_noise_needs_a_device_with_whole_numbers_of_64_bits():
    task = Task(nn.Linear(6, 4), data(), cross_entropy, Noise(1.0, 1e-3))
    with pytest.raises(ArgumentError, match="device must be cpu or cuda for noise='exact'"):
        PrivateIteration(task, Plan(3, 1.0, noise="exact"), None, torch.device("mps"))


class Shaking(torch.optim.SGD):
    """Draws random numbers in every step, as Langevin dynamics do."""

    def step(self, closure=None):
        super().step()
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(torch.randn_like(p), alpha=0.1)


def test_an_optimizer_may_draw_and_a_seeded_run_repeats():
    """After a stop it has to draw the same: the noise is, and another model would have other sums under it."""
    models, seen = [nn.Linear(6, 4) for _ in range(2)], []
    models[1].load_state_dict(models[0].state_dict())
    for model in models:
        run(model, seed=1, optimizer=lambda p: Shaking(p, lr=0.1), on_step=lambda _: torch.rand(len(seen)) is None)
        seen.append(model)
    assert torch.equal(models[0].weight, models[1].weight)


# ------------------------------------------------------------------------------------------------- callbacks once more


@pytest.mark.parametrize("kind", [bool, np.bool_, np.array, torch.tensor])
def test_a_callback_ends_the_run_by_the_true_of_numpy_or_torch_as_well(kind):
    done = run(steps=50, on_step=lambda step: kind(step.k >= 4))
    assert len(done.history.losses) == 4


@pytest.mark.parametrize("answer", [1, 0.0, "stop", [True], np.array([True]), torch.tensor([True]), torch.tensor(1)])
def test_a_callback_that_returns_something_else_is_refused(answer):
    """Taken for no, it would spend more than was wanted."""
    with pytest.raises(ArgumentError, match="on_step must be one that returns True to end the run, else False or None"):
        run(on_step=lambda _: answer)


def without_momentum(step):
    for kept in step.run.optimizer.state.values():
        kept["momentum_buffer"].zero_()


def less_dropout(step):
    step.model[1].p = 0.1


@pytest.mark.parametrize("change", [without_momentum, less_dropout])
def test_a_callback_that_changes_a_layer_or_what_an_optimizer_keeps_is_refused(change):
    with pytest.raises(ArgumentError, match=r"on_step .* changes the settings of a layer or of the optimizer"):
        run(
            nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5)),
            on_step=change,
            optimizer=lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        )
