"""Examples that meet before they reach the model: in the function that puts rows together."""

import random

import numpy as np
import pytest
import torch
from learning.oracle import cross_entropy
from learning.running import trained
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, default_collate

from elementdp.errors import ArgumentError
from elementdp.learning import CheckpointError, UserData

ROWS = 40


class Points(Dataset):
    """Rows of six numbers; ``noise`` is added when they are loaded."""

    def __init__(self, noise=None):
        torch.manual_seed(0)
        self.inputs, self.targets, self.noise = torch.randn(ROWS, 6), torch.randint(4, (ROWS,)), noise

    def __getitem__(self, row):
        return self.inputs[row] + (self.noise() if self.noise else 0), self.targets[row]


class Texts(Dataset):
    """Texts of different lengths."""

    def __init__(self):
        torch.manual_seed(0)
        self.texts = [torch.randint(1, 20, (int(length),)) for length in torch.randint(2, 15, (ROWS,))]

    def __getitem__(self, row):
        return self.texts[row], row % 4


def padded(items):
    return pad_sequence([text for text, _ in items], batch_first=True), torch.tensor([label for _, label in items])


class Bag(nn.Module):
    """The mean of a text's words; padding is token zero, and counts unless it is masked."""

    def __init__(self, masked):
        super().__init__()
        self.words, self.out, self.masked = nn.Embedding(20, 8), nn.Linear(8, 4), masked

    def forward(self, x):
        seen = (x > 0).float()[..., None] if self.masked else torch.ones(*x.shape, 1)
        return self.out((self.words(x) * seen).sum(1) / seen.sum(1))


def run(model, dataset, collate=default_collate, workers=0, **options):
    rows = torch.arange(ROWS)
    data = UserData.of_dataset(dataset, rows // 2, rows % 2, ROWS // 2, collate=collate, workers=workers)
    options = {"rho": 1.0, "steps": 3, "q": 0.5, "sigma": 1.0, "delta": 1e-3, **options}
    return trained(model, data, cross_entropy, **options)


def test_rows_that_draw_leave_the_random_numbers_of_the_caller_where_they_were():
    model, dataset = nn.Linear(6, 4), Points(lambda: torch.rand(6) + np.random.rand() + random.random())  # noqa: NPY002
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    run(model, dataset)
    after = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert torch.equal(states[0], after[0])
    assert states[1:] == after[1:]


def centred(items):
    inputs, targets = default_collate(items)
    return inputs - inputs.mean(0), targets


def mixed(items):
    inputs, targets = default_collate(items)
    return 0.7 * inputs + 0.3 * inputs[torch.randperm(len(inputs))], targets


@pytest.mark.parametrize("collate", [centred, mixed])
def test_rows_that_meet_while_they_are_loaded_are_refused(collate):
    with pytest.raises(ArgumentError, match="data must be loaded row by row"):
        run(nn.Linear(6, 4), Points(), collate)


def test_padding_that_a_model_sees_is_refused_and_with_a_mask_it_is_not():
    """How far a text is padded is up to the longest in its batch, which may be somebody else's."""
    with pytest.raises(ArgumentError, match="rows whose loss changes with the padding"):
        run(Bag(masked=False), Texts(), padded)
    run(Bag(masked=True), Texts(), padded)


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_changed_at_random_one_by_one_are_no_mixture(workers):
    run(nn.Linear(6, 4), Points(lambda: 0.1 * torch.randn(6)), workers=workers)


def test_what_collate_returns_has_to_be_inputs_and_targets():
    """A dictionary of both, as tokenizers give it, would be taken for its names."""
    with pytest.raises(ArgumentError, match="collate must be a function that returns inputs and targets"):
        run(
            nn.Linear(6, 4),
            Points(),
            lambda items: dict(zip(("inputs", "labels"), default_collate(items), strict=True)),
        )


def numpy_noise():
    return torch.from_numpy(np.random.normal(size=6)).float()  # noqa: NPY002


def own_noise():
    return torch.from_numpy(np.random.default_rng().normal(size=6)).float()


def test_rows_changed_at_random_are_the_same_after_a_stop(tmp_path):
    """The noise is repeated: it must meet the same sums."""

    class StopError(Exception):
        pass

    def stop(step):
        if step.k == 3:
            raise StopError

    models = [nn.Linear(6, 4) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    start = {name: value.clone() for name, value in models[0].state_dict().items()}
    path = tmp_path / "run.ckpt"
    options = {"steps": 5, "checkpoint": path, "checkpoint_every": 2}
    with pytest.raises(StopError):
        run(models[0], Points(numpy_noise), **options, on_step=stop)
    seen = {name: value.clone() for name, value in models[0].state_dict().items()}
    models[0].load_state_dict(start)
    again = {}
    run(
        models[0],
        Points(numpy_noise),
        **options,
        on_step=lambda step: again.update(
            {step.k: {name: value.clone() for name, value in step.model.state_dict().items()}}
        ),
    )
    assert all(torch.equal(seen[name], again[3][name]) for name in seen)


@pytest.mark.parametrize(("noise", "workers"), [(own_noise, 0), (lambda: torch.randn(6), 2)])
def test_rows_that_cannot_be_loaded_again_have_no_checkpoint(tmp_path, noise, workers):
    with pytest.raises(CheckpointError, match="same noise to other sums"):
        run(nn.Linear(6, 4), Points(noise), workers=workers, checkpoint=tmp_path / "run.ckpt")
    run(nn.Linear(6, 4), Points(noise), workers=workers)
