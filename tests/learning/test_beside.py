"""Models some of whose parameters belong to no layer with a rule: the others keep theirs."""

import pytest
import torch
from learning.oracle import assert_clipped, clipped_sum, cross_entropy
from torch import nn

from elementdp.learning import Batch, GroupClipper, ModelError
from elementdp.learning._fast.segments import Memory

SIZES = (1, 1, 1, 3, 3, 5, 6)
WORDS = 11


class Scaled(nn.Module):
    """Layers with rules, and a scale that belongs to none."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.scale = inner, nn.Parameter(torch.full((4,), 1.5))

    def forward(self, x):
        return self.inner(x) * self.scale


class Tied(nn.Module):
    """Word and place embeddings, and a head that shares the words'."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, 6), nn.Embedding(5, 6)
        self.inner, self.norm = nn.Linear(6, 6), nn.LayerNorm(6)
        self.head = nn.Linear(6, WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x):
        places = self.places(torch.arange(x.shape[1]))  # no examples in it
        return self.head(self.norm(self.inner((self.words(x) + places).relu())).mean(1))


class Attending(nn.Module):
    """torch's attention uses the weights of a part of its own by name."""

    def __init__(self):
        super().__init__()
        self.words, self.attention, self.out = nn.Embedding(WORDS, 6), nn.MultiheadAttention(6, 2), nn.Linear(6, 4)

    def forward(self, x):
        inside = self.words(x).transpose(0, 1)
        return self.out(self.attention(inside, inside, inside, need_weights=False)[0].mean(0))


class PlacesFirst(nn.Module):
    """Its layers see the places of a text first, then the examples."""

    def __init__(self):
        super().__init__()
        self.words, self.inner, self.out = nn.Embedding(WORDS, 6), nn.Linear(6, 6), nn.Linear(6, 4)

    def forward(self, x):
        return self.out(self.inner(self.words(x.mT)).relu().mean(0))


class Reading(nn.Module):
    """A recurrent layer, and a first word of its own before every text."""

    def __init__(self, kind):
        super().__init__()
        self.words, self.start = nn.Embedding(WORDS, 6), nn.Parameter(torch.randn(1, 1, 6))
        self.inner, self.out = kind(6, 5, batch_first=True, bidirectional=True), nn.Linear(10, 4)

    def forward(self, x):
        texts = torch.cat([self.start.expand(len(x), -1, -1), self.words(x)], 1)
        return self.out(self.inner(texts)[0].mean(1))


def numbers():
    return torch.randn(sum(SIZES), 6)


def texts():
    return torch.randint(WORDS, (sum(SIZES), 5))


CASES = {
    "scale": (lambda: Scaled(nn.Sequential(nn.Linear(6, 7), nn.RMSNorm(7), nn.PReLU(), nn.Linear(7, 4))), numbers),
    "convolution": (
        lambda: Scaled(nn.Sequential(nn.Unflatten(1, (2, 3)), nn.Conv1d(2, 4, 2), nn.Flatten(), nn.Linear(8, 4))),
        numbers,
    ),
    "norm of the weight": (
        lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(6, 7)), nn.Tanh(), nn.Linear(7, 4)),
        numbers,
    ),
    "tied": (Tied, texts),
    "attention": (Attending, texts),
    "places first": (PlacesFirst, texts),
    "LSTM": (lambda: Reading(nn.LSTM), texts),
    "GRU": (lambda: Reading(nn.GRU), texts),
}


@pytest.mark.parametrize("memory", [Memory(), Memory(chunk=2000, keep=1 << 9, cache=1 << 9)], ids=["whole", "pieces"])
@pytest.mark.parametrize("name", CASES)
def test_the_fast_method_is_right_where_some_parameters_have_no_rule(name, memory):
    torch.manual_seed(0)
    make, rows = CASES[name]
    model, inputs, targets = make(), rows(), torch.randint(4, (sum(SIZES),))
    clipper = GroupClipper(model, cross_entropy, 0.3, method="fast", memory=memory)
    found = clipper(Batch.of(inputs, targets, SIZES))
    assert clipper.rules and clipper.rest
    assert_clipped(found, model, (inputs, targets, SIZES), 0.3)


def test_a_group_that_is_not_finite_is_left_out_beside_the_rules_too():
    torch.manual_seed(0)
    model, inputs, targets = Scaled(nn.Linear(6, 4)), numbers(), torch.randint(4, (sum(SIZES),))
    clipper = GroupClipper(model, cross_entropy, 0.3, method="fast")
    clipper.prepare(Batch.of(inputs, targets, SIZES))
    inputs[4] = torch.nan
    expected, _ = clipped_sum(model, cross_entropy, inputs, targets, SIZES, 0.3)
    found = clipper(Batch.of(inputs, targets, SIZES))
    assert found.skipped == 1
    for one, other in zip(found.gradients, expected, strict=True):
        assert torch.allclose(one.double(), other, atol=1e-6)


def test_a_penalty_on_a_parameter_without_a_rule_is_not_missed():
    torch.manual_seed(0)
    model, inputs, targets = Scaled(nn.Linear(6, 4)), numbers(), torch.randint(4, (sum(SIZES),))

    def loss(outputs, targets):
        return cross_entropy(outputs, targets) + model.scale.square().sum()

    with pytest.raises(ModelError, match="parameter"):
        GroupClipper(model, loss, 0.3, method="fast")(Batch.of(inputs, targets, SIZES))
    clipper = GroupClipper(model, loss, 1e6)
    found = clipper(Batch.of(inputs, targets, SIZES))
    value = loss(model(inputs), targets) @ torch.tensor([1 / size for size in SIZES for _ in range(size)])
    for one, other in zip(found.gradients, torch.autograd.grad(value, list(model.parameters())), strict=True):
        assert torch.allclose(one, other, atol=1e-5)
