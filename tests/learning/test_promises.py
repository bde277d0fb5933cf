"""Ways around the promise: models and losses that mix examples, remember them, or hide a gradient from the rules."""

import random
import warnings

import numpy as np
import pytest
import torch
from learning.oracle import clipped_sum, cross_entropy
from learning.running import trained
from torch import nn
from torch.utils.checkpoint import checkpoint

from elementdp.errors import ArgumentError
from elementdp.learning import Batch, GroupClipper, ModelError, Plan, Target, UserData, train
from elementdp.learning._fast.rules import by_itself
from elementdp.learning.models import layer_rules, tied_layers

ROWS = 40


def batch(rows=ROWS, groups=None, seed=0):
    torch.manual_seed(seed)
    return torch.randn(rows, 6), torch.randint(4, (rows,)), groups or (1,) * rows


class Net(nn.Module):
    """A linear layer behind something else."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 4)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.out(self.before(x))

    def before(self, x):
        return x


class Mixup(Net):
    """Mixes each example with another one, by torch's random numbers."""

    def before(self, x):
        return 0.9 * x + 0.1 * x[torch.randperm(len(x))] if self.training else x


class NumpyMixup(Net):
    """The same by numpy's and Python's random numbers, as scripts do."""

    def before(self, x):
        share = random.random() * np.random.beta(1, 1)  # noqa: NPY002
        return x + share * x.flip(0) if self.training else x


class Deviation(Net):
    """Noise of the batch's own deviation."""

    def before(self, x):
        return x + 1e-3 * torch.randn_like(x) * x.std(0) if self.training else x


class NowAndThen(Net):
    """Mixes in some passes only, as augmentations are often switched on."""

    def before(self, x):
        return x + 0.5 * x.flip(0) if self.training and random.random() > 0.5 else x


class Seldom(Net):
    """Mixes in a few of a hundred passes."""

    def before(self, x):
        return x + 0.5 * x.flip(0) if self.training and torch.rand(()) < 0.2 else x


class Lowest(Net):
    """Measures from the lowest of the batch, which only a row that moves down changes."""

    def before(self, x):
        return x - x.min(0).values


class LargeBatches(Net):
    """Takes means of batches of more than eight."""

    def before(self, x):
        return x - x.mean(0) if len(x) > 8 else x


class OwnNumbers(Net):
    """Draws from a generator of its own, which no seed resets."""

    def __init__(self):
        super().__init__()
        self.generator = torch.Generator().manual_seed(0)

    def before(self, x):
        return x + 0.1 * torch.randn(x.shape, generator=self.generator) * x.mean(0)


class Dropped(nn.Sequential):
    """Dropout, which may stay, beside a mixture that may not."""

    def __init__(self, mixing):
        super().__init__(nn.Dropout(0.5), mixing)


MIXING = [Mixup, NumpyMixup, Deviation, LargeBatches, NowAndThen, Seldom, Lowest, lambda: Dropped(Deviation())]


@pytest.mark.parametrize("make", MIXING)
def test_models_that_mix_examples_while_they_train_are_refused(make):
    with pytest.raises(ModelError, match="other examples"):
        GroupClipper(make(), cross_entropy, 1.0)(Batch.of(*batch()))


@pytest.mark.parametrize("weight", [1e-2, 1e-4, 1e-7])
def test_a_loss_that_mixes_faintly_is_refused(weight):
    def loss(outputs, targets):
        losses = cross_entropy(outputs, targets)
        return losses + weight * losses.mean()

    with pytest.raises(ModelError, match="other examples"):
        GroupClipper(nn.Linear(6, 4), loss, 1.0)(Batch.of(*batch()))


def test_a_mixture_by_what_neighbours_have_in_common_is_found():
    """Rows of one element are alike: a row exchanged for its neighbour would show nothing."""

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.out = nn.Embedding(4, 3), nn.Linear(3, 4)

        def forward(self, x):
            return self.out(self.words(x)) * (x == x[0]).sum()

    words = torch.cat([torch.zeros(38, dtype=torch.long), torch.ones(2, dtype=torch.long)])
    words = words.roll(5)
    with pytest.raises(ModelError, match="other examples"):
        GroupClipper(Words(), cross_entropy, 1.0)(Batch.of(words, torch.randint(4, (ROWS,)), (1,) * ROWS))


def test_weights_by_the_counts_of_labels_are_found_where_one_is_rare():
    def loss(outputs, targets):
        return cross_entropy(outputs, targets) / torch.bincount(targets, minlength=4).clamp_min(1)[targets]

    inputs, _, sizes = batch()
    targets = torch.zeros(ROWS, dtype=torch.long)
    targets[7] = 1
    with pytest.raises(ModelError, match="other examples"):
        GroupClipper(nn.Linear(6, 4), loss, 1.0)(Batch.of(inputs, targets, sizes))


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (
            nn.Sequential(nn.Linear(6, 4), nn.Sigmoid()),
            lambda o, y: nn.functional.binary_cross_entropy(o[:, 0], y, reduction="none"),
        ),
        (nn.Linear(6, 4), lambda o, y: -torch.distributions.Poisson(o[:, 0].exp()).log_prob(y)),
    ],
    ids=["probabilities", "counts"],
)
def test_losses_that_take_no_numbers_from_far_away_are_still_looked_at(model, loss):
    inputs, _, sizes = batch()
    targets = torch.randint(2, (ROWS,)).float()
    GroupClipper(model, loss, 1.0)(Batch.of(inputs, targets, sizes))
    with pytest.raises(ModelError, match="other examples"):
        GroupClipper(model, lambda o, y: loss(o, y) * (1 + o.mean()), 1.0)(Batch.of(inputs, targets, sizes))


def test_numbers_that_no_seed_decides_are_refused_for_what_they_are():
    with pytest.raises(ModelError, match="same random numbers"):
        GroupClipper(OwnNumbers(), cross_entropy, 1.0)(Batch.of(*batch()))


@pytest.mark.parametrize("make", [lambda: Dropped(Net()), Net])
def test_dropout_alone_is_no_mixture(make):
    GroupClipper(make(), cross_entropy, 1.0)(Batch.of(*batch()))


class BySize(torch.autograd.Function):
    """Its gradient is another one once a number of the batch is large."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient / (1 if ctx.saved_tensors[0].abs().max() < 1e3 else 7)


class ByNumber(torch.autograd.Function):
    """Normalises the gradient of a batch of more than eight."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient / gradient.norm() if len(gradient) > 8 else gradient


@pytest.mark.parametrize("function", [BySize, ByNumber])
def test_examples_that_meet_only_on_the_way_back_are_found(function):
    class Behind(Net):
        def forward(self, x):
            return function.apply(self.out(x))

    with pytest.raises(ModelError, match=r"on the way back|larger batch"):
        GroupClipper(Behind(), cross_entropy, 1.0)(Batch.of(*batch()))


# ------------------------------------------------------------------------------------------------------------ memory


class FrozenParameter(Net):
    """Keeps what it saw in a parameter that is not trained."""

    def __init__(self):
        super().__init__()
        self.seen = nn.Parameter(torch.zeros(6), requires_grad=False)

    def before(self, x):
        with torch.no_grad():
            self.seen += x.mean(0)
        return x


class UnderGradient(Net):
    """Writes a buffer only when gradients are wanted."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(6))

    def before(self, x):
        if torch.is_grad_enabled():
            self.seen += x.detach().mean(0)
        return x


class AfterManyCalls(UnderGradient):
    """Writes a new buffer, and only after many passes."""

    def before(self, x):
        if self.calls > 100:
            self.seen = self.seen + x.detach().mean(0)
        return x


class OwnWeights(Net):
    """Writes its own weights during the pass."""

    def before(self, x):
        with torch.no_grad():
            self.out.weight += x.mean()
        return x


class PastTheVersion(UnderGradient):
    """Writes a buffer in a way that torch does not count."""

    def before(self, x):
        self.seen.data.copy_(x.detach().mean(0))
        return x


class ByNumpy(AfterManyCalls):
    """The same through numpy, and only after many passes."""

    def before(self, x):
        if self.calls > 100:
            self.seen.numpy()[:] = x.detach().mean(0).numpy()
        return x


class ExtraState(Net):
    """Keeps what it saw among what ``state_dict()`` releases, but in no tensor of its own."""

    def before(self, x):
        self.seen = x.detach().mean(0)
        return x

    def get_extra_state(self):
        return getattr(self, "seen", None)

    def set_extra_state(self, state):
        self.seen = state


class OtherStorage(UnderGradient):
    """Puts other numbers under the same buffer."""

    def before(self, x):
        self.seen.data = x.detach().mean(0)
        return x


class FrozenPastTheVersion(FrozenParameter):
    """Writes a frozen parameter in a way that torch does not count."""

    def before(self, x):
        self.seen.data.copy_(x.detach().mean(0))
        return x


REMEMBERING = [FrozenParameter, UnderGradient, AfterManyCalls, OwnWeights, PastTheVersion, ByNumpy, OtherStorage]


@pytest.mark.parametrize("make", [*REMEMBERING, FrozenPastTheVersion, ExtraState])
def test_models_that_remember_are_stopped_before_anything_is_released(make):
    model, seen = make(), []
    inputs, targets, _ = batch()
    data = UserData.of(inputs, targets, range(ROWS), [0] * ROWS, ROWS)
    with pytest.raises(ModelError, match=r"(seen|weight|extra_state) is written while the model runs"):
        trained(
            model,
            data,
            cross_entropy,
            rho=1.0,
            steps=200,
            q=0.5,
            sigma=1.0,
            delta=1e-3,
            on_step=seen.append,
        )
    assert len(seen) < 100


def test_the_reason_given_for_spectral_norm_is_true():
    model = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 4)))
    with pytest.raises(ModelError, match="written while the model runs") as caught:
        GroupClipper(model, cross_entropy, 1.0)(Batch.of(*batch()))
    assert "changes with the data" not in str(caught.value)
    model.eval()
    GroupClipper(model, cross_entropy, 1.0)(Batch.of(*batch()))


def test_batch_normalisation_that_keeps_its_statistics_is_accepted():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 4))
    model(torch.randn(50, 6))
    model.train()
    model[1].eval()
    inputs, targets, sizes = batch(groups=(3, 5, 7, 25))
    expected, _ = clipped_sum(model, cross_entropy, inputs, targets, sizes, 0.3)
    found = GroupClipper(model, cross_entropy, 0.3)(Batch.of(inputs, targets, sizes))
    for one, other in zip(found.gradients, expected, strict=True):
        assert torch.allclose(one.double(), other, atol=1e-6)
    statistics = model[1].running_mean.clone()
    data = UserData.of(inputs, targets, range(ROWS), [0] * ROWS, ROWS)
    trained(model, data, cross_entropy, rho=1.0, steps=3, q=0.5, sigma=1.0, delta=1e-3)
    assert torch.equal(model[1].running_mean, statistics)


# -------------------------------------------------------------------------------------------------------- wrong sums


@pytest.mark.parametrize("method", ["auto", "loop"])
def test_a_penalty_inside_the_loss_has_its_gradient(method):
    """The fast rules and torch.func would leave it out, and nothing but the penalty is left once the model fits."""
    torch.manual_seed(0)
    model = nn.Linear(6, 4)

    def loss(outputs, targets):
        return cross_entropy(outputs, targets) + 1e-4 * sum(p.square().sum() for p in model.parameters())

    inputs, targets, sizes = batch(groups=(3, 5, 7, 25))
    expected = [torch.zeros_like(p) for p in model.parameters()]
    start = 0
    for size in sizes:
        rows = slice(start, start + size)
        start += size
        value = loss(model(inputs[rows]), targets[rows]).mean()
        for total, gradient in zip(expected, torch.autograd.grad(value, list(model.parameters())), strict=True):
            total += gradient
    found = GroupClipper(model, loss, 1e6, method=method)(Batch.of(inputs, targets, sizes))
    for one, other in zip(found.gradients, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    for wrong in ("fast", "vectorized"):
        with pytest.raises(ModelError, match="parameter"):
            GroupClipper(model, loss, 1e6, method=wrong)(Batch.of(inputs, targets, sizes))


class SometimesTwice(nn.Module):
    """Uses its weight by name as well, for a kind of rows that comes late."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x):
        late = x[:, 0] > 100
        return self.inner(x) + (x @ self.inner.weight * late[:, None] if late.any() else 0)


@pytest.mark.parametrize("where", ["among the first", "later"])
def test_a_weight_used_by_name_for_some_rows_is_not_missed(where):
    torch.manual_seed(0)
    model = SometimesTwice()
    inputs, targets, sizes = batch(groups=(3, 5, 7, 25))
    clipper = GroupClipper(model, cross_entropy, 0.5)
    if where == "later":
        clipper.prepare(Batch.of(inputs, targets, sizes))
    inputs = inputs.clone()
    inputs[30, 0] = 1000.0
    expected, _ = clipped_sum(model, cross_entropy, inputs, targets, sizes, 0.5)
    found = clipper(Batch.of(inputs, targets, sizes))
    for one, other in zip(found.gradients, expected, strict=True):
        assert torch.allclose(one.double(), other, atol=1e-5)


@pytest.mark.parametrize("method", ["auto", "fast", "vectorized"])
def test_a_layer_held_twice_is_one_layer_and_stays_as_it_was(method):
    """`torch.func.functional_call` would leave plain tensors behind in place of its parameters."""
    torch.manual_seed(0)
    once = nn.Linear(6, 6)
    model = nn.Sequential(nn.Sequential(once, nn.Tanh()), once, nn.Linear(6, 4))
    before = dict(model.named_parameters())
    inputs, targets, sizes = batch(groups=(3, 5, 7, 25))
    found = GroupClipper(model, cross_entropy, 0.5, method=method)(Batch.of(inputs, targets, sizes))
    expected, _ = clipped_sum(model, cross_entropy, inputs, targets, sizes, 0.5)
    for one, other in zip(found.gradients, expected, strict=True):
        assert torch.allclose(one.double(), other, atol=1e-6)
    assert all(parameter is before[name] for name, parameter in model.named_parameters())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_part_with_a_backward_pass_of_its_own_is_refused():
    """Its gradients would be missing in the sum, without a word."""

    class Reentrant(Net):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(6, 6)

        def before(self, x):
            return checkpoint(self.first, x.requires_grad_(), use_reentrant=True)

    inputs, targets, sizes = batch()
    for method in ("auto", "loop"):
        with pytest.raises(ModelError, match="use_reentrant"):
            GroupClipper(Reentrant(), cross_entropy, 1.0, method=method)(Batch.of(inputs, targets, sizes))


class DropsWithin(nn.Module):
    """A layer without a rule that draws random numbers while it trains."""

    def __init__(self, draw):
        super().__init__()
        self.weight, self.draw = nn.Parameter(torch.randn(6, 4)), draw

    def forward(self, x):
        return (x * self.draw(x) if self.training else x) @ self.weight


def by_numpy(x):
    return torch.from_numpy(np.random.rand(*x.shape)).float()  # noqa: NPY002


def a_whole_block_by_numpy(x):
    """So many numbers that numpy's generator stands at the same place of its block again."""
    np.random.rand(312 - x.numel() % 312)  # noqa: NPY002
    return by_numpy(x)


@pytest.mark.parametrize("draw", [torch.rand_like, by_numpy, a_whole_block_by_numpy])
@pytest.mark.parametrize("method", ["auto", "fast", "loop"])
def test_a_layer_that_draws_random_numbers_is_not_run_again_with_others(method, draw):
    """The losses are linear in the weight: they are its product with their gradient if both have the same draws."""
    torch.manual_seed(0)
    model = nn.Sequential(DropsWithin(draw), nn.Linear(4, 4, bias=False))
    inputs, targets, sizes = batch()
    clipper = GroupClipper(model, lambda outputs, _: outputs.sum(1), 1e6, method=method)
    clipper.measures = False
    found = clipper(Batch.of(inputs, targets, sizes))
    value = (model[0].weight * found.gradients[0]).sum()
    assert torch.allclose(value, found.losses.sum(), rtol=1e-4)


def clamped(step):
    for parameter in step.model.parameters():
        parameter.data.clamp_(-0.1, 0.1)


def slowed(step):
    step.run.optimizer.param_groups[0]["lr"] = 0.01


@pytest.mark.parametrize(("write", "name"), [(clamped, "bias"), (slowed, "settings")])
def test_a_callback_must_not_write_past_the_versions_or_into_the_optimizer(write, name):
    """Going on from a checkpoint would repeat the noise on another model."""
    rows = torch.arange(40)
    data = UserData.of(torch.randn(40, 6), rows % 4, users=rows // 2, elements=rows % 2, n_users=20)
    plan = Plan(steps=3, q=0.5, rho=1.0, optimizer=lambda own: torch.optim.SGD(own, lr=0.1))
    with pytest.raises(ArgumentError, match=f"on_step .* changes .*{name}"):
        train(
            nn.Linear(6, 4),
            data,
            loss=cross_entropy,
            privacy=Target(3, delta=1e-3),
            plan=plan,
            progress=False,
            on_step=write,
        )


def test_a_checkpointed_part_in_the_middle_is_refused_in_words():
    class Middle(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 4)

        def forward(self, x):
            return self.last(checkpoint(self.second, self.first(x), use_reentrant=True))

    inputs, targets, sizes = batch()
    for method in ("auto", "loop"):
        with pytest.raises(ModelError, match="use_reentrant"):
            GroupClipper(Middle(), cross_entropy, 1.0, method=method)(Batch.of(inputs, targets, sizes))


def test_weight_normalisation_keeps_its_rules():
    """Its weight is no parameter: the parameters behind it get their gradient from the pass itself."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.Sequential(torch.nn.utils.weight_norm(nn.Linear(6, 5)), nn.Tanh(), nn.Linear(5, 4))
    inputs, targets, sizes = batch()
    found = [
        GroupClipper(model, cross_entropy, 0.5, method=method)(Batch.of(inputs, targets, sizes)).gradients
        for method in ("fast", "loop")
    ]
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*found, strict=True))


# ------------------------------------------------------------------------------------- crowds, losses that remember


def without_the_majority(outputs, targets):
    """No single example changes which label is the most frequent."""
    return cross_entropy(outputs, targets) * (0.2 + (targets != targets.mode().values))


def heavier_if_frequent(outputs, targets):
    return cross_entropy(outputs, targets) * (2.0 if (targets == 0).sum() > len(targets) // 3 else 1.0)


@pytest.mark.parametrize("loss", [without_the_majority, heavier_if_frequent])
def test_a_majority_that_no_single_example_moves_is_a_mixture(loss):
    inputs, targets, sizes = batch()
    targets[:20] = 0
    with pytest.raises(ModelError, match="other examples"):
        GroupClipper(nn.Linear(6, 4), loss, 1.0)(Batch.of(inputs, targets, sizes))


class RunningScale(nn.Module):
    """A loss in units of what it was before, after some calls."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(()))
        self.calls = 0

    def forward(self, outputs, targets):
        losses, self.calls = cross_entropy(outputs, targets), self.calls + 1
        if self.calls > 60:
            self.scale = 0.9 * self.scale + 0.1 * losses.detach().mean()
        return losses / self.scale


def test_a_loss_that_remembers_is_stopped():
    inputs, targets, _ = batch()
    data = UserData.of(inputs, targets, range(ROWS), [0] * ROWS, ROWS)
    with pytest.raises(ModelError, match=r"loss\.scale is written"):
        trained(nn.Linear(6, 4), data, RunningScale(), rho=1.0, steps=200, q=0.5, sigma=1.0, delta=1e-3)


def test_a_loss_with_parameters_of_its_own_is_refused():
    """They would stay where they are, without a word."""

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))

        def forward(self, outputs, targets):
            return cross_entropy(outputs * self.scale, targets)

    with pytest.raises(ArgumentError, match=r"loss must be .* parameter of its own, scale"):
        GroupClipper(nn.Linear(6, 4), Scaled(), 1.0)
    GroupClipper(nn.Linear(6, 4), Scaled().requires_grad_(False), 1.0)(Batch.of(*batch()))


# ------------------------------------------------------------------------------------------- rows in another order


class Sorted(nn.Module):
    """Takes rows in the order of their lengths, as packed sequences are, and puts them back."""

    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Linear(6, 6), nn.Linear(6, 4)

    def forward(self, x, lengths):
        order = lengths.argsort(descending=True, stable=True)
        return self.out(self.inner(x[order]).tanh()[order.argsort()])


def test_rows_that_a_layer_sees_in_another_order_are_clipped_by_their_own_norms():
    """The first rows are of one length, so nothing moves among them; the sum of all is right whatever moves."""
    torch.manual_seed(0)
    model, (inputs, targets, sizes) = Sorted(), batch()
    inputs *= torch.randn(ROWS, 1).exp()
    lengths = torch.full((ROWS,), 8)
    lengths[20:34] = torch.arange(14) % 7
    found = GroupClipper(model, cross_entropy, 0.2)(Batch.of((inputs, lengths), targets, sizes))
    plain = nn.Sequential(model.inner, nn.Tanh(), model.out)
    expected, norms = clipped_sum(plain, cross_entropy, inputs, targets, sizes, 0.2)
    assert np.allclose(found.norms.numpy(), norms, rtol=1e-4)
    for one, other in zip(found.gradients, expected, strict=True):
        assert torch.allclose(one.double(), other, atol=1e-6)


# ---------------------------------------------------------------------------- layers with a forward pass of their own


def test_a_layer_with_a_forward_pass_of_its_own_keeps_it():
    """A recurrent one lost it after the first pass, and computed something else from then on."""
    torch.manual_seed(0)

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.out = nn.LSTM(6, 5, batch_first=True), nn.Linear(5, 4)
            own = nn.LSTM.forward
            self.inner.forward = lambda x: (3 * own(self.inner, x)[0], None)

        def forward(self, x):
            return self.out(self.inner(x[:, None])[0][:, -1])

    model, (inputs, targets, sizes) = Last(), batch()
    before = model(inputs)
    found = GroupClipper(model, cross_entropy, 1e6)(Batch.of(inputs, targets, sizes))
    assert torch.equal(model(inputs), before)
    expected = torch.autograd.grad(cross_entropy(model(inputs), targets).sum(), list(model.parameters()))
    for one, other in zip(found.gradients, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_a_layer_with_a_forward_pass_of_its_own_has_no_rule_of_its_kind():
    conv = nn.Conv1d(2, 3, 2)

    def standardised(x):
        weight = conv.weight - conv.weight.mean((1, 2), keepdim=True)
        return nn.functional.conv1d(x, weight, conv.bias)

    conv.forward = standardised
    words, head = nn.Embedding(5, 3), nn.Linear(3, 5)
    head.weight, head.forward = words.weight, words.forward
    assert layer_rules(nn.Sequential(conv))[conv] is by_itself
    assert not tied_layers(nn.ModuleList([words, head]))


# ------------------------------------------------------------------------------- a pass back that is not linear


class Bent(torch.autograd.Function):
    """Hands back gradients cut at a size of 0.01: no linear map."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad.clamp(-0.01, 0.01)


class Bending(Net):
    """A layer behind which gradients are cut, which depends on how a loss is weighed."""

    def forward(self, x):
        return Bent.apply(self.out(x))


def test_a_pass_back_that_is_not_linear_is_not_taken_for_rounding():
    x, y, sizes = batch(groups=(4,) * 10)
    with pytest.raises(ModelError):
        GroupClipper(Bending(), cross_entropy, 1.0)(Batch.of(x, y, sizes))
