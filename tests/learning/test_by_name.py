"""Parameters that are used by name or shared by layers: found in one pass, and right."""

import pytest
import torch
from learning.oracle import assert_clipped, clipped_sum, cross_entropy
from torch import nn
from torch.nn import functional

from elementdp.learning import Batch, GroupClipper
from elementdp.learning._fast.products import Call
from elementdp.learning._fast.segments import Memory, Segments
from elementdp.learning._fast.shared import tied

SIZES = (1, 1, 1, 3, 3, 5, 6)
ROWS, WORDS, LENGTH, WIDTH = sum(SIZES), 11, 5, 6


class Placed(nn.Module):
    """Words with something added."""

    def __init__(self, shape, add):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Parameter(torch.randn(shape))
        self.add, self.out = add, nn.Linear(WIDTH, 4)

    def forward(self, x):
        return self.out(self.add(self.words(x), self.places).tanh().mean(1))


class Shifted(nn.Module):
    """A parameter added to the data themselves."""

    def __init__(self):
        super().__init__()
        self.shift, self.out = nn.Parameter(torch.randn(WIDTH)), nn.Linear(WIDTH, 4)

    def forward(self, x):
        return self.out((x + self.shift).tanh())


class Tied(nn.Module):
    """A head that shares the words' weights, with a bias of its own, and words that may be padded."""

    def __init__(self, padding=None, bias=False, words=WORDS):
        super().__init__()
        self.words, self.inner = nn.Embedding(words, WIDTH, padding_idx=padding), nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, words, bias=bias)
        self.head.weight = self.words.weight

    def forward(self, x):
        return self.head(self.inner(self.words(x)).tanh()[:, -1])


class EveryPlace(Tied):
    """The head at every place, so that it is worth while to keep the groups' products."""

    def forward(self, x):
        return self.head(self.inner(self.words(x)).tanh()).mean(1)


class TwoTables(nn.Module):
    """Two embeddings with one table."""

    def __init__(self):
        super().__init__()
        self.one, self.other, self.out = nn.Embedding(WORDS, WIDTH), nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, 4)
        self.other.weight = self.one.weight

    def forward(self, x):
        return self.out((self.one(x) * self.other(x.flip(1))).sum(1))


class TwoLayers(nn.Module):
    """Two linear layers with one weight and two biases."""

    def __init__(self):
        super().__init__()
        self.one, self.other, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)
        self.other.weight = self.one.weight

    def forward(self, x):
        return self.out(self.other(self.one(x).tanh()))


class Attending(nn.Module):
    """torch's attention, of rows to themselves or to others."""

    def __init__(self, other=False, batch_first=True, **named):
        super().__init__()
        self.words, self.attention = (
            nn.Embedding(WORDS, WIDTH),
            nn.MultiheadAttention(WIDTH, 2, batch_first=batch_first),
        )
        self.out, self.other, self.named = nn.Linear(WIDTH, 4), other, named

    def forward(self, x):
        x = self.words(x)
        x = x if self.attention.batch_first else x.transpose(0, 1)
        y = x.flip(1) if self.other else x
        found = self.attention(x, y, y, **self.named)[0]
        return self.out(found.mean(1 if self.attention.batch_first else 0))


class OneSum(nn.Module):
    """torch's attention over numbers, whose weights are looked at row by row."""

    def __init__(self):
        super().__init__()
        self.attention, self.out = nn.MultiheadAttention(2, 1, batch_first=True), nn.Linear(2 + 9, 4)

    def forward(self, x):
        x = x.view(-1, 3, 2)
        found, weights = self.attention(x, x, x)
        return self.out(torch.cat([found.mean(1), weights.flatten(1)], 1))


class Rare(nn.Module):
    """Rows that begin with word 0 go through ``more``, which uses parameters a second time."""

    def forward(self, x):
        h, rare = self.words(x), x[:, 0] == 0
        if rare.any():
            h = torch.where(rare[:, None, None], self.more(h), h)
        return self.out(self.last(h.tanh()))


class TiedAndAdded(Rare):
    """A weight that a head shares, and of which a row is added."""

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight, self.out = self.words.weight, nn.Linear(WORDS, 4)

    def more(self, h):
        return h + self.words.weight[1]

    def last(self, h):
        return self.head(h.mean(1))


class SharedAttention(Rare):
    """Attentions that share one parameter of their two products."""

    def __init__(self, shared, added=False):
        super().__init__()
        self.words, self.out, self.added = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, 4), added
        self.layers = nn.ModuleList(nn.MultiheadAttention(WIDTH, 2, batch_first=True) for _ in range(4))
        for layer in self.layers:
            nn.init.normal_(layer.in_proj_bias)
            if shared.startswith("in"):
                setattr(layer, shared, getattr(self.layers[0], shared))
            else:
                setattr(layer.out_proj, shared, getattr(self.layers[0].out_proj, shared))

    def more(self, h):
        if self.added:
            return h + self.layers[0].out_proj.bias
        for layer in self.layers[1:]:
            h = layer(h, h, h, need_weights=False)[0]
        return h

    def last(self, h):
        return self.layers[0](h, h, h, need_weights=False)[0].mean(1)


class TakenAside(Rare):
    """A parameter that is added, and a part of it that was taken where nothing has a gradient."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Parameter(torch.randn(LENGTH, WIDTH))
        self.out = nn.Linear(WIDTH, 4)

    def more(self, h):
        with torch.no_grad():
            aside = self.places[:]
        return h + aside

    def last(self, h):
        return (h + self.places[:]).mean(1)


RARE = {
    "tied and added": TiedAndAdded,
    "one bias of products inside": lambda: SharedAttention("in_proj_bias"),
    "one bias of products outside": lambda: SharedAttention("bias"),
    "one weight with several biases": lambda: SharedAttention("in_proj_weight"),
    "a bias that is added": lambda: SharedAttention("in_proj_bias", added=True),
    "taken aside": TakenAside,
}


def texts():
    return torch.randint(WORDS, (ROWS, LENGTH))


def numbers():
    return torch.randn(ROWS, WIDTH)


def causal():
    return nn.Transformer.generate_square_subsequent_mask(LENGTH)


CASES = {
    "places": (lambda: Placed((1, LENGTH, WIDTH), lambda x, p: x + p), texts),
    "places before rows": (lambda: Placed((1, LENGTH, WIDTH), lambda x, p: p + x), texts),
    "two dimensions": (lambda: Placed((LENGTH, WIDTH), torch.add), texts),
    "one for all places": (lambda: Placed((1, 1, WIDTH), lambda x, p: x + p), texts),
    "one for all widths": (lambda: Placed((LENGTH, 1), lambda x, p: x + p), texts),
    "a number": (lambda: Placed((), lambda x, p: x + p), texts),
    "some of the places": (lambda: Placed((1, 9, WIDTH), lambda x, p: x + p[:, : x.shape[1]]), texts),
    "one of the places": (lambda: Placed((3, WIDTH), lambda x, p: x + p[1]), texts),
    "places twice": (lambda: Placed((1, LENGTH, WIDTH), lambda x, p: (x + p).tanh() + p), texts),
    "data": (Shifted, numbers),
    "tied": (Tied, texts),
    "tied, padding and bias": (lambda: Tied(3, True), texts),
    "tied, long table": (lambda: Tied(0, True, 300), texts),
    "tied at every place": (lambda: EveryPlace(3, True), texts),
    "two tables": (TwoTables, texts),
    "two layers": (TwoLayers, numbers),
    "attention": (lambda: Attending(need_weights=False), texts),
    "places first": (lambda: Attending(batch_first=False, need_weights=False), texts),
    "causal": (lambda: Attending(need_weights=False, attn_mask=causal(), is_causal=True), texts),
    "attention and its weights": (OneSum, numbers),
}
ELSEWHERE = {
    "scaled": (lambda: Placed((1, LENGTH, WIDTH), lambda x, p: x + 2 * p), texts),
    "added and scaled": (lambda: Placed((1, LENGTH, WIDTH), lambda x, p: (x + p) * p), texts),
    "overlapping parts": (lambda: Placed((1, 9, WIDTH), lambda x, p: (x + p[:, :LENGTH]).tanh() + p[:, 1:6]), texts),
    "mean of all": (lambda: Placed((3, LENGTH, WIDTH), lambda x, p: x + p.mean(0)), texts),
    "chosen by a tensor": (lambda: Placed((3, WIDTH), lambda x, p: x + p[torch.tensor([0, 0, 1, 2, 2])]), texts),
    "first place": (lambda: Placed((1, 1, WIDTH), lambda x, p: torch.cat([p.expand(len(x), -1, -1), x], 1)), texts),
    "by hand": (lambda: Placed((WIDTH, WIDTH), functional.linear), texts),
    "to others": (lambda: Attending(other=True, need_weights=False), texts),
    "masked": (lambda: Attending(need_weights=False, attn_mask=causal()), texts),
}


def agrees(make, rows, memory=None):
    """Whether norms and sum are those of the oracle; and how they were found."""
    torch.manual_seed(0)
    model, inputs, targets = make(), rows(), torch.randint(4, (ROWS,))
    clipper = GroupClipper(model, cross_entropy, 0.3, method="fast", memory=memory or Memory())
    found = clipper(Batch.of(inputs, targets, SIZES))
    assert_clipped(found, model, (inputs, targets, SIZES), 0.3)
    return clipper.by_name


@pytest.mark.parametrize("memory", [Memory(), Memory(chunk=2000, keep=1 << 9, cache=1 << 9)], ids=["whole", "pieces"])
@pytest.mark.parametrize("name", CASES)
def test_one_pass_is_enough(name, memory):
    assert agrees(*CASES[name], memory)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_used_in_another_way_is_found_beside_the_rules(name):
    assert not agrees(*ELSEWHERE[name])


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("name", RARE)
def test_a_parameter_that_two_rules_find_has_one_norm(name, seen):
    """Squares of its parts added up would let more than ρ through, though the sum is right."""
    torch.manual_seed(0)
    model, usual, targets = RARE[name](), torch.randint(1, WORDS, (ROWS, LENGTH)), torch.randint(4, (ROWS,))
    rare = usual.clone()
    rare[::2, 0] = 0
    clipper = GroupClipper(model, cross_entropy, 0.01)
    clipper.prepare(Batch.of(rare if seen else usual, targets, SIZES))
    found = clipper(Batch.of(rare, targets, SIZES))
    assert_clipped(found, model, (rare, targets, SIZES), 0.01, rtol=1e-5, atol=1e-7)


def test_groups_that_are_not_finite_are_left_out():
    torch.manual_seed(0)
    model, inputs, targets = Shifted(), numbers(), torch.randint(4, (ROWS,))
    clipper = GroupClipper(model, cross_entropy, 0.3, method="fast")
    clipper.prepare(Batch.of(inputs, targets, SIZES))
    inputs[4] = torch.nan
    expected, _ = clipped_sum(model, cross_entropy, inputs, targets, SIZES, 0.3)
    found = clipper(Batch.of(inputs, targets, SIZES))
    assert found.skipped == 1
    for one, other in zip(found.gradients, expected, strict=True):
        assert torch.allclose(one.double(), other, atol=1e-6)


@pytest.mark.parametrize("share", [1 - 1e-6, 0.999, 0.5, -1.0])
def test_a_shared_weight_whose_uses_cancel_has_no_norm_below_the_true_one(share):
    torch.manual_seed(0)
    words, head = nn.Embedding(1000, 8), nn.Linear(8, 1000, bias=False)
    head.weight = words.weight
    tokens, inputs = torch.randint(1000, (8, 1)), torch.randn(8, 1, 8)
    left = functional.one_hot(tokens, 1000) * torch.rand(8, 1, 1)
    looked_up = -share * left.amax(2, keepdim=True) * inputs  # undoes nearly all of what the head adds
    uses = [(head, [Call(inputs, left)]), (words, [Call(tokens, looked_up)])]
    found = tied(uses, Segments((2,) * 4)).squares.sqrt().double()
    whole = left.double().mT @ inputs.double() + functional.one_hot(tokens, 1000).double().mT @ looked_up.double()
    norms = whole.reshape(4, 2, -1).sum(1).norm(dim=1)
    sizes = (left.norm(dim=2) * inputs.norm(dim=2) * (1 + abs(share))).reshape(4, 2).sum(1)
    assert (found >= norms).all()
    assert (found - norms <= 2e-3 * sizes).all()


def test_a_layer_may_be_called_by_the_name_of_its_argument():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)

        def forward(self, x):
            return self.out(self.inner(input=x).tanh())

    agrees(Named, numbers)
