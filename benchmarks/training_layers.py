"""Clipped sums for models of many layers, in groups of four: time against plain training on the same batch.

Every model takes turns with plain training in the same run; times are medians. The last column is the price of sums
and noise in whole numbers; the last line has Opacus with ghost clipping as a peer, which clips single examples.

    python benchmarks/training_layers.py [--rounds 5] [--threads N] [--only NAME …] [--check]
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional

from elementdp.learning import Batch, GroupClipper
from elementdp.learning.exact import ExactArithmetic
from elementdp.learning.noise import FloatArithmetic
from elementdp.learning.randomness import Randomness

LOSS = nn.CrossEntropyLoss(reduction="none")
RANDOM = Randomness.secret()
TURN = 0.3
"""Seconds that each side gets in a round, at least."""
WORDS, WIDTH, LENGTH, CLASSES = 1000, 128, 32, 10


class Residual(nn.Module):
    """A block of ResNet18 with GroupNorm."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.GroupNorm(8, after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.GroupNorm(8, after),
        )
        same = stride == 1 and before == after
        short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.GroupNorm(8, after))
        self.short = nn.Identity() if same else short

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.inner(x) + self.short(x))


def resnet18() -> nn.Module:
    """ResNet18 for small images, with GroupNorm."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.GroupNorm(8, 64), nn.ReLU()]
    before = 64
    for after, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(before, after, stride), Residual(after, after, 1)]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


class Recurrent(nn.Module):
    """Words through a recurrent layer."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.words, self.inner = nn.Embedding(WORDS, 64), kind(64, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.inner(self.words(x))[0][:, -1])


class Attention(nn.Module):
    """Attention by linear layers and torch's own product."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, _ = x.shape
        query, key, value = self.inside(x).view(rows, length, 3, 4, WIDTH // 4).permute(2, 0, 3, 1, 4)
        return self.out(functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


class Multihead(nn.MultiheadAttention):
    """torch's own layer, attending to itself."""

    def __init__(self) -> None:
        super().__init__(WIDTH, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, x, x, need_weights=False)[0]


class Transform(nn.Module):
    """A transformer's block."""

    def __init__(self, attention: type[nn.Module]) -> None:
        super().__init__()
        self.first, self.second, self.attention = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), attention()
        self.inner = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.inner(self.second(x))


class Transformer(nn.Module):
    """Position embeddings, two blocks, and a head that shares the word embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Parameter(0.02 * torch.randn(1, LENGTH, WIDTH))
        self.blocks = nn.Sequential(Transform(Attention), Transform(Attention))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.words(x) + self.places)[:, -1])


class Pooled(nn.Module):
    """Blocks with ``nn.MultiheadAttention``."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks, self.out = nn.Sequential(Transform(Multihead), Transform(Multihead)), nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.blocks(x).mean(1))


def perceptron(between: Callable[[], nn.Module]) -> nn.Module:
    """Two hidden layers with something between them."""
    return nn.Sequential(
        nn.Linear(512, 512), between(), nn.ReLU(), nn.Linear(512, 512), between(), nn.ReLU(), nn.Linear(512, CLASSES)
    )


@dataclass(frozen=True)
class Problem:
    """A model, rows for it, and the bar: at most so many times the time of plain training."""

    make: Callable[[], nn.Module]
    rows: Callable[[int], Tensor]
    count: int
    bar: float


def _words(rows: int) -> Tensor:
    return torch.randint(WORDS, (rows, LENGTH))


PROBLEMS = {
    "MLP with PReLU": Problem(lambda: perceptron(nn.PReLU), lambda n: torch.randn(n, 512), 1024, 1.4),
    "MLP with RMSNorm": Problem(lambda: perceptron(lambda: nn.RMSNorm(512)), lambda n: torch.randn(n, 512), 1024, 1.4),
    "LSTM": Problem(lambda: Recurrent(nn.LSTM), _words, 256, 2.0),
    "GRU": Problem(lambda: Recurrent(nn.GRU), _words, 256, 2.0),
    "Transformer": Problem(Transformer, _words, 128, 1.3),
    "MultiheadAttention": Problem(Pooled, lambda n: torch.randn(n, LENGTH, WIDTH), 128, 1.3),
    "ResNet18": Problem(resnet18, lambda n: torch.randn(n, 3, 32, 32), 32, 1.5),
}


def medians(sides: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median time of each side, by turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, step in sides.items():
            end, done = time.perf_counter() + TURN, False
            while not done or time.perf_counter() < end:
                start = time.perf_counter()
                step()
                times[name].append(time.perf_counter() - start)
                done = True
    return {name: median(values) for name, values in times.items()}


def ghost(model: nn.Module, inputs: Tensor, targets: Tensor) -> Callable[[], object]:
    """Opacus with ghost clipping: two backward passes, single examples clipped."""
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping

    wrapped = GradSampleModuleFastGradientClipping(model, max_grad_norm=1.0, loss_reduction="mean")

    def step() -> None:
        wrapped.zero_grad(set_to_none=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its hooks warn that the data need no gradient
            losses = LOSS(wrapped(inputs), targets)
            losses.mean().backward(retain_graph=True)
            wrapped.zero_grad(set_to_none=True)
            coefficients = wrapped.get_clipping_coef()
            wrapped.disable_hooks()
            (coefficients * losses).sum().backward()
            wrapped.enable_hooks()

    return step


def measure(problem: Problem, rounds: int) -> tuple[str, dict[str, float]]:
    """The method chosen, and the times of plain training, clipped sums, and whole numbers with their noise."""
    torch.manual_seed(0)
    model, inputs = problem.make(), problem.rows(problem.count)
    targets = torch.randint(CLASSES, (problem.count,))
    batch = Batch.of(inputs, targets, (4,) * (problem.count // 4))
    clipper = GroupClipper(model, LOSS, 1.0)
    whole = GroupClipper(model, LOSS, 1.0, by_group=True)

    def plain() -> None:
        model.zero_grad(set_to_none=True)
        LOSS(model(inputs), targets).mean().backward()

    def noisy(arithmetic: FloatArithmetic | ExactArithmetic, clipper: GroupClipper) -> None:
        total = arithmetic.sum(clipper, batch, 1.0).gradients
        arithmetic.add_noise(total, 1.0, RANDOM, 1)

    floats, integers = FloatArithmetic(1.0), ExactArithmetic(1.0, 1.0)  # a run keeps its own
    sides: dict[str, Callable[[], object]] = {
        "plain": plain,
        "ours": lambda: noisy(floats, clipper),
        "exact": lambda: noisy(integers, whole),
    }
    clipper(batch)
    whole.prepare(batch)
    return str(clipper.method), medians(sides, rounds)


def peer(rounds: int) -> float:
    """How many times faster than Opacus's ghost clipping, single examples clipped: the perceptron."""
    torch.manual_seed(0)
    model, inputs, targets = perceptron(nn.Identity), torch.randn(1024, 512), torch.randint(CLASSES, (1024,))
    clipper, batch = GroupClipper(model, LOSS, 1.0), Batch.of(inputs, targets, (1,) * 1024)
    other = perceptron(nn.Identity)
    times = medians({"ours": lambda: clipper(batch), "opacus": ghost(other, inputs, targets)}, rounds)
    return times["opacus"] / times["ours"]


def main() -> int:
    """Print the table; with ``--check`` fail if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--only", nargs="*", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    missed = 0
    print(f"{'':20} {'method':>11} {'times plain':>12} {'bar':>7}   {'whole numbers, times plain':>27}")
    for name in arguments.only:
        problem = PROBLEMS[name]
        method, times = measure(problem, arguments.rounds)
        ratio, exact = times["ours"] / times["plain"], times["exact"] / times["plain"]
        missed += ratio > problem.bar
        note = " missed" if ratio > problem.bar else ""
        print(f"{name:20} {method:>11} {ratio:12.2f} {f'<= {problem.bar:g}':>7} {exact:27.2f}{note}", flush=True)
    print(f"Opacus with ghost clipping takes {peer(arguments.rounds):.2f} times as long (perceptron, single examples)")
    return 1 if arguments.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
