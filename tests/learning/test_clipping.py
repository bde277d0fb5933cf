"""Clipped sums of group gradients against a float64 loop over groups, for every layer type and odd batch."""

import copy
import gc
import itertools
import math
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning.oracle import clipped_sum, cross_entropy
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from elementdp.errors import ArgumentError
from elementdp.learning.batch import Batch
from elementdp.learning.clipping import GroupClipper, Memory
from elementdp.learning.models import ModelError
from elementdp.learning.passes import Method


class Positions(nn.Module):
    """Mean over the positions of a sequence."""

    def forward(self, x):
        return x.mean(1)


class Twice(nn.Module):
    """One linear layer used twice, the second time after an in-place activation."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)
        self.out = nn.Linear(6, 4)

    def forward(self, x):
        x = torch.relu_(self.inner(x))
        return self.out(self.inner(x))


class Tied(nn.Module):
    """Embedding and output layer share one matrix."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 5)
        self.out = nn.Linear(5, 7, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, x):
        return self.out(self.embedding(x).mean(1))


class Attention(nn.Module):
    """A layer without a rule that uses its parts' weights behind their backs."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.out = nn.Linear(6, 4)

    def forward(self, x):
        return self.out(self.attention(x, x, x, need_weights=False)[0].mean(1))


class Recurrent(nn.Module):
    """A recurrent net that looks at its last output, or at its last state."""

    def __init__(self, kind=nn.LSTM, last=False, **options):
        super().__init__()
        self.inner = kind(6, 5, **{"batch_first": True, **options})
        width = (options.get("proj_size") or 5) * (1 + options.get("bidirectional", False))
        self.out, self.last = nn.Linear(width, 4), last

    def forward(self, x):
        if self.inner.batch_first:
            output, state = self.inner(x)
            return self.out(state[0][-1] + state[1][-1] if self.last else output[:, -1])
        return self.out(self.inner(x.transpose(0, 1))[0][-1])


class Branching(nn.Module):
    """Python control flow on the data: torch.func cannot follow it."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((), 2.0))
        self.out = nn.Linear(6, 4)

    def forward(self, x):
        rows = [self.out(row) * (self.scale if float(row.sum()) > 0 else 1.0) for row in x]
        return torch.stack(rows)


class Residual(nn.Module):
    """A linear layer to whose output, in place, what went into it is added."""

    def __init__(self, width=6):
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        h = self.inner(x)
        h += x
        return h


class Viewed(nn.Module):
    """A layer without a rule that returns a view, overwritten afterwards where there are more than three positions."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 6))

    def forward(self, x):
        return (x.flatten(0, -2) @ self.weight).view(x.shape)


class Overwriting(nn.Module):
    """What overwrites it."""

    def __init__(self):
        super().__init__()
        self.first, self.viewed, self.out = nn.Linear(6, 6), Viewed(), nn.Linear(6, 4)

    def forward(self, x):
        h = self.viewed(self.first(x))
        return self.out((h.relu_() if h.shape[1] > 3 else h).mean(1))


class Functional(nn.Module):
    """A linear layer whose weight is also used outside its own forward pass."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x):
        return self.inner(x) + x @ self.inner.weight


class SequenceFirst(nn.Module):
    """Examples are not in the first dimension of the linear layer."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 4)

    def forward(self, x):
        return self.inner(x.transpose(0, 1)).mean(0)


def _flat(*layers):
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(4))


image, line, sequence, words, vector = (3, 7, 6), (3, 9), (5, 6), "words", (6,)
MODELS = {
    "linear": (lambda: nn.Linear(6, 4), vector, Method.FAST),
    "linear-no-bias": (lambda: nn.Linear(6, 4, bias=False), vector, Method.FAST),
    "wide-linear": (lambda: nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 30)), vector, Method.FAST),
    "sequence-linear": (
        lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), Positions(), nn.Linear(5, 4)),
        sequence,
        Method.FAST,
    ),
    "used-twice": (Twice, vector, Method.FAST),
    "conv2d": (lambda: _flat(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True)), image, Method.FAST),
    "conv2d-options": (
        lambda: _flat(nn.Conv2d(3, 6, (3, 2), stride=(2, 3), padding=(2, 1), dilation=(2, 1), groups=3)),
        image,
        Method.FAST,
    ),
    "conv2d-same": (lambda: _flat(nn.Conv2d(3, 4, (4, 3), padding="same", bias=False)), image, Method.FAST),
    "conv2d-circular": (lambda: _flat(nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular")), image, Method.FAST),
    "conv2d-strided": (lambda: _flat(nn.Conv2d(3, 4, 2, stride=3)), image, Method.FAST),
    "conv1d": (lambda: _flat(nn.Conv1d(3, 4, 3, stride=2, padding=1)), line, Method.FAST),
    "conv1d-same": (lambda: _flat(nn.Conv1d(3, 6, 4, padding="same", dilation=2, groups=3)), line, Method.FAST),
    "embedding": (
        lambda: nn.Sequential(nn.Embedding(7, 5, padding_idx=2), Positions(), nn.Linear(5, 4)),
        words,
        Method.FAST,
    ),
    "layer-norm": (lambda: _flat(nn.Linear(6, 6), nn.LayerNorm((5, 6))), sequence, Method.FAST),
    "layer-norm-last": (lambda: _flat(nn.LayerNorm(6), nn.Tanh()), sequence, Method.FAST),
    "group-norm": (lambda: _flat(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.ReLU()), image, Method.FAST),
    "group-norm-flat": (lambda: nn.Sequential(nn.Linear(6, 8), nn.GroupNorm(2, 8)), vector, Method.FAST),
    "conv3d": (lambda: _flat(nn.Unflatten(2, (1, 7)), nn.Conv3d(3, 2, (1, 3, 2))), image, Method.FAST),
    "prelu": (lambda: nn.Sequential(nn.Linear(6, 5), nn.PReLU(), nn.Linear(5, 4)), vector, Method.FAST),
    "prelu-channels": (lambda: _flat(nn.Conv2d(3, 4, 3), nn.PReLU(4)), image, Method.FAST),
    "prelu-first": (lambda: _flat(nn.PReLU(), nn.Tanh()), sequence, Method.FAST),
    "prelu-twice": (lambda: _flat(nn.Linear(6, 6), *2 * [nn.PReLU(init=-0.5)]), sequence, Method.FAST),
    "rms-norm-first": (lambda: _flat(nn.RMSNorm((5, 6), eps=0.1)), sequence, Method.FAST),
    "rms-norm": (lambda: _flat(nn.Linear(6, 6), nn.RMSNorm(6)), sequence, Method.FAST),
    "transposed": (lambda: _flat(nn.ConvTranspose1d(3, 4, 3)), line, Method.FAST),
    "residual": (lambda: _flat(nn.Linear(6, 6), Residual()), sequence, Method.FAST),
    "in-place": (lambda: _flat(nn.Linear(6, 6), nn.Linear(6, 5), nn.ReLU(inplace=True)), sequence, Method.FAST),
    "tied": (Tied, words, None),
    "weight-used-elsewhere": (Functional, vector, None),
    "sequence-first": (SequenceFirst, sequence, None),
    "attention": (Attention, sequence, None),
    "lstm": (Recurrent, sequence, Method.FAST),
    "gru": (lambda: Recurrent(nn.GRU), sequence, Method.FAST),
    "lstm-deep": (lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True, bias=False), sequence, Method.FAST),
    "gru-deep": (lambda: Recurrent(nn.GRU, num_layers=2, bidirectional=True), sequence, Method.FAST),
    "lstm-state": (lambda: Recurrent(nn.LSTM, last=True), sequence, Method.FAST),
    "lstm-projected": (lambda: Recurrent(nn.LSTM, proj_size=3), sequence, None),
    "rnn": (lambda: Recurrent(nn.RNN), sequence, None),
    "transposed-gru": (lambda: Recurrent(nn.GRU, batch_first=False), sequence, Method.FAST),
    "branching": (Branching, vector, Method.LOOP),
    "instance-norm": (lambda: _flat(nn.InstanceNorm2d(3, affine=True)), image, Method.FAST),
}
SIZES = (1, 1, 1, 2, 2, 3, 5, 1, 4)  # ragged, some alone, not in order


def build(name: str, seed: int = 0, dtype=torch.float64, rows: int = sum(SIZES)):
    make, shape, method = MODELS[name]
    torch.manual_seed(seed)
    if shape == words:
        inputs = torch.randint(7, (rows, 5))
    else:
        inputs = torch.randn(rows, *shape, dtype=dtype) * torch.logspace(-1, 1, rows, dtype=dtype).view(
            -1, *[1] * len(shape)
        )
    model = make().to(dtype)
    classes = model(inputs[:2]).shape[1]
    return model, inputs, torch.randint(classes, (rows,)), method


def assert_same(found, expected, tolerance):
    scale = max(float(t.abs().max()) for t in expected)
    for a, b in zip(found, expected, strict=True):
        assert torch.isfinite(a).all()
        assert float((a.double() - b).abs().max()) <= tolerance * scale


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_every_layer_agrees_with_a_loop_over_groups(name, dtype, tolerance):
    model, inputs, targets, method = build(name, dtype=dtype)
    _, norms = clipped_sum(model, cross_entropy, inputs, targets, SIZES, 1.0)
    rho = sorted(norms)[len(norms) // 2]  # about half the groups are clipped
    expected, norms = clipped_sum(model, cross_entropy, inputs, targets, SIZES, rho)
    clipper = GroupClipper(model, cross_entropy, rho)
    found = clipper(Batch.of(inputs, targets, SIZES))
    assert method is None or clipper.method is method
    assert_same(found.gradients, expected, tolerance)
    assert torch.allclose(found.norms.double(), torch.tensor(norms, dtype=torch.float64), rtol=100 * tolerance)
    assert found.skipped == 0


@pytest.mark.parametrize("name", ["conv2d", "conv2d-options", "conv1d", "wide-linear", "used-twice", "group-norm"])
def test_small_memory_changes_nothing(name):
    """The pieces that bound memory: chunks of rows, groups larger than a chunk, gradients too large to keep."""
    model, inputs, targets, _ = build(name)
    expected, _ = clipped_sum(model, cross_entropy, inputs, targets, SIZES, 0.7)
    clipper = GroupClipper(model, cross_entropy, 0.7, memory=Memory(chunk=400, keep=300, cache=300))
    found = clipper(Batch.of(inputs, targets, SIZES))
    assert clipper.rows < max(SIZES)
    assert_same(found.gradients, expected, 1e-12)


@pytest.mark.parametrize("options", [{}, {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}])
def test_many_channels_agree_where_gradients_are_not_kept(options):
    torch.manual_seed(1)
    model = _flat(nn.Conv2d(24, 30, (3, 2), **options)).double()
    inputs = torch.randn(6, 24, 4, 4, dtype=torch.float64)
    model(inputs)
    targets = torch.randint(4, (6,))
    expected, _ = clipped_sum(model, cross_entropy, inputs, targets, (1, 2, 3), 0.5)
    found = GroupClipper(model, cross_entropy, 0.5, method="fast", memory=Memory(keep=1))(
        Batch.of(inputs, targets, (1, 2, 3))
    )
    assert_same(found.gradients, expected, 1e-12)


@pytest.mark.parametrize("name", ["linear", "conv2d", "embedding", "prelu", "lstm"])
def test_frozen_parameters_are_left_out(name):
    model, inputs, targets, _ = build(name)
    next(model.parameters()).requires_grad_(False)
    expected, _ = clipped_sum(model, cross_entropy, inputs, targets, SIZES, 0.5)
    assert_same(GroupClipper(model, cross_entropy, 0.5)(Batch.of(inputs, targets, SIZES)).gradients, expected, 1e-12)


@pytest.mark.parametrize("name", ["linear", "wide-linear", "conv2d", "group-norm", "sequence-linear", "prelu", "lstm"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_group_without_finite_gradient_adds_nothing(name, bad):
    model, inputs, targets, _ = build(name)
    inputs[8] = bad  # a row of the group of three
    clipper = GroupClipper(model, cross_entropy, 0.5)
    found = clipper(Batch.of(inputs, targets, SIZES))
    expected, _ = clipped_sum(model, cross_entropy, inputs, targets, SIZES, 0.5)
    assert found.skipped == 1
    assert not torch.isfinite(found.norms[SIZES.index(3)])
    assert_same(found.gradients, expected, 1e-12)
    assert math.isfinite(found.loss)


def test_duplicate_rows_average_to_one():
    model, inputs, targets, _ = build("conv2d", rows=2)
    once = GroupClipper(model, cross_entropy, 0.3)(Batch.of(inputs, targets, (1, 1)))
    twice = GroupClipper(model, cross_entropy, 0.3)(
        Batch.of(inputs.repeat_interleave(4, 0), targets.repeat_interleave(4, 0), (4, 4))
    )
    assert_same(twice.gradients, once.gradients, 1e-12)


def test_opposite_gradients_cancel_without_letting_more_than_rho_through():
    """Gram norms lose digits when rows cancel; the sum that leaves must stay within ρ all the same."""
    torch.manual_seed(0)
    model = nn.Linear(200, 50)
    row = torch.randn(1, 200) * 1000
    nudge = torch.randn(1, 200) * 1e-2
    inputs = torch.cat([row, row + nudge])
    targets = torch.cat([torch.ones(1, 50), -torch.ones(1, 50)])
    for rho in (1e-3, 1e-1, 1.0):
        found = GroupClipper(model, lambda out, y: (out * y).sum(1), rho)(Batch.of(inputs, targets, (2,)))
        norm = sum(float(g.double().square().sum()) for g in found.gradients) ** 0.5
        assert norm <= rho * (1 + 1e-5)


def product_norms(left, right, sizes, bias=False):
    """Norms of the gradients of a linear layer whose rows have these inputs (right) and output gradients (left)."""
    model = nn.Linear(right.shape[1], left.shape[1], bias=bias)
    with torch.no_grad():
        model.weight.zero_()
    shares = torch.tensor(sizes).repeat_interleave(torch.tensor(sizes))[:, None]
    clipper = GroupClipper(model, lambda out, y: (out * y).sum(1), math.inf, method="fast")
    clipper.prepare(Batch.of(torch.randn(4, right.shape[1]), torch.randn(4, left.shape[1]), (2, 2)))
    return clipper(Batch.of(right, left * shares, sizes)).norms.double()


def test_long_rows_that_cancel_are_not_taken_too_small():
    """Rounding in a Gram sum grows with the width: a norm that it nearly hides must not come out smaller."""
    torch.manual_seed(0)
    pairs, width, eps = 40, 20_000, torch.finfo(torch.float32).eps
    row, nudge, grad = torch.rand(pairs, width) + 0.5, torch.randn(pairs, width), torch.randn(pairs, 50)
    nudge *= (16 * eps) ** 0.5 * row.norm(dim=1, keepdim=True) / nudge.norm(dim=1, keepdim=True)
    inputs = torch.stack([row, row + nudge], 1).view(2 * pairs, width)
    grads = torch.stack([grad, -grad], 1).view(2 * pairs, 50)
    found = product_norms(grads, inputs, (2,) * pairs)
    formed = grads.double().view(pairs, 2, 50).mT @ inputs.double().view(pairs, 2, width)
    exact = formed.square().sum((1, 2)).sqrt()
    assert (found >= exact * (1 - 1e-5)).all()
    assert (found <= exact * 4).all()


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Linear(50, 1), (50,)),
        (nn.Linear(50, 40), (50,)),
        (nn.Linear(50, 40, bias=False), (20, 50)),
        (nn.Sequential(nn.Conv2d(6, 5, 3, bias=False), nn.Flatten()), (6, 8, 8)),
        (nn.Sequential(nn.Conv2d(64, 32, 3, bias=False), nn.Flatten()), (64, 3, 3)),
    ],
    ids=["formed", "gram", "positions", "convolution", "matrix form"],
)
def test_rows_that_cancel_do_not_push_others_out_of_the_sum(model, shape, size):
    """One group more, of two opposite rows: its own gradient is zero, and it must not cost others their digits."""
    torch.manual_seed(0)
    inputs, huge = torch.randn(300, *shape), size * (0.5 + torch.rand(1, *shape))
    width = model(inputs).flatten(1).shape[1]
    targets, sign = torch.randn(300, width), torch.ones(1, width)
    clipper = GroupClipper(
        model,
        lambda out, y: (out.flatten(1) * y.view(len(y), -1)).sum(1),
        1.0,
        method="fast",
        memory=Memory(keep=1),
    )
    without = clipper(Batch.of(inputs, targets, (1,) * 300)).gradients
    batch = Batch.of(torch.cat([inputs, huge, huge]), torch.cat([targets, sign, -sign]), (1,) * 300 + (2,))
    moved = sum(float((a - b).square().sum()) for a, b in zip(clipper(batch).gradients, without, strict=True)) ** 0.5
    assert moved <= 1e-2


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("small", [1e-23, 3e-23, 1e-21])
@pytest.mark.parametrize("exchanged", [False, True])
def test_a_gram_matrix_that_underflows_is_not_taken_for_zero(small, bias, exchanged):
    """Inputs of 10¹⁷ before a normalisation have gradients of 10⁻²³: squares vanish, products need not."""
    left, right = torch.full((1, 1000), small), torch.full((1, 1000), 5e17)
    if exchanged:
        left, right = right, left
    exact = float(left.double().norm()) * float(right.double().norm())
    assert float(product_norms(left, right, (1,), bias)) >= exact


@pytest.mark.parametrize("rows", [64, 65, 67, 7])
def test_sums_do_not_depend_on_the_number_of_threads(rows, monkeypatch):
    torch.manual_seed(0)
    model, inputs, targets = nn.Linear(30, 5), torch.randn(rows, 30), torch.randint(5, (rows,))
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        found.append(GroupClipper(model, cross_entropy, 0.5)(Batch.of(inputs, targets, (1,) * rows)).gradients)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_an_empty_batch_is_zero():
    model, inputs, targets, _ = build("linear")
    clipper = GroupClipper(model, cross_entropy, 1.0)
    found = clipper(Batch.of(inputs[:0], targets[:0], ()))
    assert all(float(g.abs().max()) == 0 for g in found.gradients)
    assert len(found.norms) == 0


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_element_sensitivity_is_at_most_two_rho(data):
    """Replace everything one user has in one element, adversarially: the sum moves by at most 2ρ."""
    number = st.floats(-1e6, 1e6, allow_nan=False)
    name = data.draw(st.sampled_from(["linear", "conv2d", "embedding", "prelu"]))
    rho = data.draw(st.sampled_from([1e-3, 1.0, 50.0]))
    others = data.draw(st.lists(st.integers(1, 3), min_size=0, max_size=3))
    old, new = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    model, inputs, targets, _ = build(name, rows=sum(others) + old + new)
    if inputs.is_floating_point():
        scale = data.draw(st.lists(number, min_size=len(inputs), max_size=len(inputs)))
        inputs = inputs * torch.tensor(scale, dtype=inputs.dtype).view(-1, *[1] * (inputs.dim() - 1))
    rest, m = sum(others), len(inputs)
    clipper = GroupClipper(model, cross_entropy, rho)
    before = [*range(rest), *range(rest, rest + old)]
    after = [*range(rest), *range(rest + old, m)]
    sums = [
        clipper(Batch.of(inputs[rows], targets[rows], (*others, *([size] if size else [])))).gradients
        for rows, size in ((before, old), (after, new))
    ]
    moved = sum(float((a - b).square().sum()) for a, b in zip(*sums, strict=True)) ** 0.5
    assert moved <= 2 * rho * (1 + 1e-9)
    if old == 0 or new == 0:
        assert moved <= rho * (1 + 1e-9)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.integers(1, 20))
def test_chunks_keep_groups_whole(sizes, rows):
    batch = Batch(tuple(sizes), lambda rows: (torch.zeros(0), torch.zeros(0)))
    chunks = batch.chunks(rows, Memory())
    assert [size for _, segments in chunks for size in segments.sizes] == sizes
    assert all(s.rows == r.stop - r.start and (s.rows <= rows or len(s) == 1) for r, s in chunks)
    assert chunks[0][0].start == 0
    assert all(a[0].stop == b[0].start for a, b in itertools.pairwise(chunks))


class Largest(TorchDispatchMode):
    """The largest tensor any operation puts out."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.numel = max(self.numel, tensor.numel())
        return out


@pytest.mark.parametrize("name", ["wide", "convolution"])
def test_memory_does_not_hold_a_gradient_per_example(name):
    """No tensor comes near examples × parameters (nor groups × parameters)."""
    torch.manual_seed(0)
    model = (
        nn.Linear(200, 150) if name == "wide" else nn.Sequential(nn.Conv2d(8, 64, 5), nn.Flatten(), nn.Linear(64, 4))
    )
    inputs = torch.randn(400, 200) if name == "wide" else torch.randn(400, 8, 5, 5)
    batch = Batch.of(inputs, torch.randint(4, (400,)), (1,) * 100 + (3,) * 100)
    clipper = GroupClipper(model, cross_entropy, 1.0, memory=Memory(keep=1 << 16, cache=1 << 16))
    clipper.prepare(batch)
    with Largest() as seen:
        clipper(batch)
    most = max(p.numel() for p in model.parameters())
    assert clipper.method is Method.FAST
    assert seen.numel <= max(inputs.numel(), 4 * most) < 200 * most / 10


class Mark:
    """Something that can be referred to weakly."""


class Marked(torch.autograd.Function):
    """The identity, whose node in the graph of a pass holds a mark."""

    @staticmethod
    def forward(ctx, x, marks):
        ctx.mark = Mark()
        marks.append(weakref.ref(ctx.mark))
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Marking(nn.Module):
    """A layer that puts a mark on the graph of every pass."""

    def __init__(self):
        super().__init__()
        self.marks = []

    def forward(self, x):
        return Marked.apply(x, self.marks)


@pytest.mark.parametrize("method", [Method.FAST, Method.LOOP])
def test_a_step_leaves_no_graph_behind(method):
    """What one step holds is given back before the next: a run of many steps would not fit any memory."""
    model = nn.Sequential(nn.Linear(6, 5), Marking(), nn.Linear(5, 4))
    batch = Batch.of(torch.randn(8, 6), torch.randint(4, (8,)), (2,) * 4)
    clipper = GroupClipper(model, cross_entropy, 1.0, method=method)
    for look in (clipper.prepare, clipper, clipper.check):
        look(batch)
        gc.collect()
        assert model[1].marks
        assert not any(mark() for mark in model[1].marks)
        model[1].marks.clear()


@pytest.mark.parametrize("name", ["wide-linear", "conv2d", "sequence-linear"])
def test_cost_grows_linearly_in_groups(name):
    """Counted multiplications: twice the groups, twice the work; and not much more than plain training."""
    model, inputs, targets, _ = build(name, dtype=torch.float32, rows=120)
    clipper = GroupClipper(model, cross_entropy, 1.0)
    clipper.prepare(Batch.of(inputs, targets, (3,) * 40))
    work = []
    for groups in (20, 40):
        with FlopCounterMode(display=False) as counter:
            clipper(Batch.of(inputs[: 3 * groups], targets[: 3 * groups], (3,) * groups))
        work.append(counter.get_total_flops())
    with FlopCounterMode(display=False) as plain:
        cross_entropy(model(inputs), targets).sum().backward()
    assert work[1] == pytest.approx(2 * work[0], rel=0.02)
    assert work[1] < 2 * plain.get_total_flops()


class Keywords(nn.Module):
    """Calls its layer by keyword."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 4)

    def forward(self, x):
        return self.out(input=x)


def test_a_layer_called_by_keyword_is_not_missed():
    torch.manual_seed(0)
    model, inputs, targets = Keywords(), torch.randn(6, 6), torch.randint(4, (6,))
    expected, _ = clipped_sum(model, cross_entropy, inputs, targets, (1, 2, 3), 0.5)
    clipper = GroupClipper(model, cross_entropy, 0.5)
    assert_same(clipper(Batch.of(inputs, targets, (1, 2, 3))).gradients, expected, 1e-5)
    assert clipper.method is not Method.FAST


class MeanFree(nn.Module):
    """Subtracts the mean over the batch: mixes examples without having a telling name."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 4)

    def forward(self, x):
        return self.out(x - x.mean(0))


class MeanFreeInTraining(MeanFree):
    """The same, but only in training mode, and behind dropout."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.out(self.drop(x) - (x.mean(0) if self.training else 0))


class Counting(nn.Module):
    """Keeps a running mean of what it sees."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 4)
        self.register_buffer("seen", torch.zeros(6))

    def forward(self, x):
        self.seen += x.detach().mean(0)
        return self.out(x)


class Gated(MeanFree):
    """Mixes examples through a gate that starts closed, or nearly."""

    def __init__(self, start=0.0):
        super().__init__()
        self.gate = nn.Parameter(torch.full((), start))

    def forward(self, x):
        return self.out(x) + self.gate * self.out(x).mean(0)


class Overflowing(MeanFree):
    """Mixes examples, and no loss is finite."""

    def forward(self, x):
        return super().forward(x) * torch.inf


REFUSED = {
    "BatchNorm": (lambda: nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)), "GroupNorm"),
    "running statistics": (
        lambda: nn.Sequential(nn.InstanceNorm1d(3, track_running_stats=True), nn.Linear(6, 4)),
        "False",
    ),
    "max_norm": (lambda: nn.Embedding(7, 5, max_norm=1.0), "max_norm=None"),
    "scale_grad_by_freq": (lambda: nn.Embedding(7, 5, scale_grad_by_freq=True), "scale_grad_by_freq=False"),
    "lazy": (lambda: nn.LazyLinear(3), "example"),
    "nothing to train": (lambda: nn.Linear(6, 4).requires_grad_(False), "requires_grad"),
    "mixing": (MeanFree, "other examples"),
    "mixing in training mode": (MeanFreeInTraining, "other examples"),
    "mixing behind a closed gate": (Gated, "other examples"),
    "mixing behind a nearly closed gate": (lambda: Gated(1e-6), "other examples"),
    "mixing without a finite loss": (Overflowing, "finite"),
    "memory": (Counting, "seen"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_models_that_mix_or_remember_are_refused_with_the_cure(name):
    make, cure = REFUSED[name]
    torch.manual_seed(0)
    with pytest.raises(ModelError, match=cure):
        GroupClipper(make(), cross_entropy, 1.0)(Batch.of(torch.randn(6, 6), torch.randint(4, (6,)), (1, 2, 3)))


def test_one_bad_row_shows_that_a_model_mixes():
    """Alone the other examples are finite, together none is."""
    torch.manual_seed(0)
    inputs = torch.randn(6, 6)
    inputs[2] = math.nan
    with pytest.raises(ModelError, match="other examples"):
        GroupClipper(MeanFree(), cross_entropy, 1.0)(Batch.of(inputs, torch.randint(4, (6,)), (1, 2, 3)))


class Asleep(Functional):
    """Its second use of the weight, which has no fast rule, starts switched off; so does every gradient."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(6, 4)
        nn.init.zeros_(self.inner.weight)
        nn.init.zeros_(self.inner.bias)
        nn.init.zeros_(self.last.weight)

    def forward(self, x):
        return self.last(super().forward(x))


def _turned(module, inputs, output):
    return -output


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("name", ["hook", "weight norm", "sparse"])
def test_a_rule_has_to_find_the_gradient_and_not_only_its_norm(name):
    torch.manual_seed(0)
    inputs, targets = torch.randn(12, 6), torch.randint(4, (12,))
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4))
    if name == "hook":
        model[0].register_forward_hook(_turned)
    elif name == "weight norm":
        nn.utils.weight_norm(model[0])
    else:
        model[0], inputs = nn.Embedding(9, 5, sparse=True), torch.randint(9, (12,))
    found = GroupClipper(model, cross_entropy, math.inf)(Batch.of(inputs, targets, (4, 8)))
    expected = [torch.zeros_like(p) for p in model.parameters()]
    for rows in (slice(0, 4), slice(4, 12)):
        loss = cross_entropy(model(inputs[rows]), targets[rows]).mean()
        for total, gradient in zip(expected, torch.autograd.grad(loss, list(model.parameters())), strict=True):
            total += gradient.to_dense()
    for one, other in zip(found.gradients, expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-5)


def test_a_rule_is_not_taken_where_gradients_vanish():
    torch.manual_seed(0)
    model, inputs, targets = Asleep(), torch.randn(12, 6), torch.randint(4, (12,))
    start = copy.deepcopy(model.state_dict())
    clipper = GroupClipper(model, cross_entropy, 0.5)
    clipper.prepare(Batch.of(inputs, targets, (1,) * 12))
    assert model.inner not in clipper.rules and model.last in clipper.rules
    assert all(torch.equal(value, start[name]) for name, value in model.state_dict().items())


def test_bad_arguments_are_named():
    model = nn.Linear(6, 4)
    with pytest.raises(ArgumentError, match="rho"):
        GroupClipper(model, cross_entropy, 0.0)
    with pytest.raises(ArgumentError, match="reduction='none'"):
        GroupClipper(model, nn.CrossEntropyLoss(), 1.0)(Batch.of(torch.randn(2, 6), torch.tensor([0, 1]), (2,)))
    with pytest.raises(ArgumentError, match="sizes"):
        Batch.of(torch.randn(2, 6), torch.tensor([0, 1]), (3,))
    with pytest.raises(ArgumentError, match="method"):
        GroupClipper(nn.RNN(6, 4), cross_entropy, 1.0, method="fast")


def test_dropout_masks_differ_between_rows_and_follow_the_seed():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(50, 4))
    inputs, targets = torch.ones(2, 50), torch.tensor([1, 1])
    runs = []
    for seed in (1, 1, 2):
        clipper = GroupClipper(model, cross_entropy, 1.0)
        batch = Batch.of(inputs, targets, (1, 1))
        clipper.prepare(batch)
        torch.manual_seed(seed)
        runs.append(clipper(batch))
    assert clipper.method is Method.FAST
    assert float((runs[0].norms[0] - runs[0].norms[1]).abs()) > 0
    assert torch.equal(runs[0].norms, runs[1].norms)
    assert not torch.equal(runs[0].norms, runs[2].norms)


def test_bfloat16_passes_are_clipped_in_full_precision():
    model, inputs, targets, _ = build("conv2d", dtype=torch.float32)
    found = GroupClipper(model, cross_entropy, 0.1, precision=torch.bfloat16)
    batch = Batch.of(inputs, targets, (sum(SIZES),))
    alone = found(batch)
    norm = sum(float(g.double().square().sum()) for g in alone.gradients) ** 0.5
    assert norm <= 0.1 * (1 + 1e-6)
    expected, _ = clipped_sum(copy.deepcopy(model), cross_entropy, inputs, targets, (sum(SIZES),), 0.1)
    assert_same(alone.gradients, expected, 0.1)


@pytest.mark.parametrize("precision", [None, torch.bfloat16])
@pytest.mark.parametrize(
    "last", [lambda: [Residual(64)], lambda: [nn.Linear(64, 64), nn.ReLU(inplace=True)]], ids=["residual", "relu"]
)
def test_few_rows_of_a_layer_whose_output_is_overwritten_do_not_lose_it(last, precision):
    """Products of few rows and in half precision take another way than those that were compared at first."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), *last(), nn.Flatten(), nn.Linear(512, 4))
    inputs, targets = torch.randn(64, 8, 64), torch.randint(4, (64,))
    clipper = GroupClipper(model, cross_entropy, 0.5, precision=precision)
    clipper.prepare(Batch.of(inputs, targets, (8,) * 8))
    assert clipper.method is Method.FAST
    found = clipper(Batch.of(inputs[:8], targets[:8], (2,) * 4))
    expected, _ = clipped_sum(model, cross_entropy, inputs[:8], targets[:8], (2,) * 4, 0.5)
    assert_same(found.gradients, expected, 1e-5 if precision is None else 0.1)


def test_a_view_that_is_overwritten_later_is_not_missed():
    torch.manual_seed(0)
    model, inputs, targets = Overwriting(), torch.randn(8, 4, 6), torch.randint(4, (8,))
    clipper = GroupClipper(model, cross_entropy, 0.5)
    clipper.prepare(Batch.of(inputs[:, :3].clone(), targets, (2,) * 4))
    assert clipper.method is Method.FAST
    found = clipper(Batch.of(inputs, targets, (2,) * 4))
    expected, _ = clipped_sum(model, cross_entropy, inputs, targets, (2,) * 4, 0.5)
    assert_same(found.gradients, expected, 1e-5)


@pytest.mark.parametrize("method", ["fast", "vectorized", "loop"])
@pytest.mark.parametrize(("precision", "outside"), [(None, False), (torch.bfloat16, False), (None, True)])
def test_a_sum_of_thousands_moves_by_two_rho_in_any_precision(method, precision, outside):
    """Near 2000ρ, bfloat16 knows multiples of 16ρ only: a sum rounded to it moves by 0 or 16ρ, not by 2ρ."""
    model = nn.Linear(4, 1, bias=False)
    rho = 1.0
    clipper = GroupClipper(model, lambda out, y: out[:, 0] * y, rho, method=method, precision=precision)
    for groups in (2057,) if method == "loop" else (2056, 2057, 2058):
        inputs, sums = torch.zeros(groups, 4), []
        inputs[:, 0] = 3.0  # every group is clipped
        for last in (-1.0, 1.0):
            targets = torch.ones(groups)
            targets[-1] = last
            with torch.autocast("cpu", torch.bfloat16, enabled=outside):  # the caller's own must not matter
                sums.append(clipper(Batch.of(inputs, targets, (1,) * groups)))
        moved = (sums[1].gradients[0] - sums[0].gradients[0]).norm()
        assert 2 * rho * (1 - 1e-3) <= float(moved) <= 2 * rho * (1 + 1e-5)
        assert float(sums[1].gradients[0][0, 0]) == pytest.approx(groups * rho, rel=1e-5)
        assert sums[0].gradients[0].dtype == sums[0].norms.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_parameters_in_half_precision_are_refused_with_the_cure(dtype):
    model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 4))
    model[1].to(dtype)
    with pytest.raises(ModelError, match=r"parameter 1\.weight is \w*float16.*float32.*precision=") as caught:
        GroupClipper(model, cross_entropy, 1.0)
    assert str(dtype).removeprefix("torch.") in str(caught.value)
    model[1].requires_grad_(False)
    GroupClipper(model, cross_entropy, 1.0)  # what is not trained is never summed
