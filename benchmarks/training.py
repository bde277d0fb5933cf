"""Clipped sums of group gradients: time and memory against plain training, Opacus and one backward pass per group.

All four work on the same batch in the same run, by turns; the three private ones must agree to 1e-5. In every round
each works for at least a fifth of a second; times are medians over all its steps. Peak memory is measured in a process
of its own.

    python benchmarks/training.py [--rounds 7] [--threads N] [--check]
"""

import argparse
import copy
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional

from elementdp.learning import Batch, GroupClipper
from elementdp.learning.noise import FloatArithmetic
from elementdp.learning.randomness import Randomness

RANDOM = Randomness.secret()
LOSS = nn.CrossEntropyLoss(reduction="none")
BARS = {
    "cnn": {"plain": 1.75, "opacus": 4.0, "memory": 0.25, "loop": 2.5},
    "softmax": {"plain": 1.3, "opacus": 4.0, "memory": None, "loop": 20.0},
}
"""At most this many times the plain time; at least this many times faster; at most this share of Opacus's memory."""

TURN = 0.2
"""Seconds that each method gets in a round, at least: a step of 20 ms needs more repetitions than one of a second."""


class TutorialCNN(nn.Module):
    """The convolutional net of the PyTorch tutorial."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(functional.relu(self.conv1(x)))
        x = self.pool(functional.relu(self.conv2(x)))
        x = functional.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc3(functional.relu(self.fc2(x)))


class Problem:
    """20 users, 100 examples each in up to 30 elements: about 580 groups, rows in groups, small groups first."""

    def __init__(self, name: str, rho: float | None = None) -> None:
        torch.manual_seed(0)
        owned = torch.randint(30, (20, 100))
        self.sizes = sorted(int(count) for user in owned for count in torch.bincount(user) if count)
        if name == "cnn":
            self.model: nn.Module = TutorialCNN()
            self.inputs, classes = torch.randn(2000, 3, 32, 32), 10
        else:
            self.model = nn.Linear(2048, 101)
            self.inputs, classes = torch.randn(2000, 2048), 101
        self.targets = torch.randint(classes, (2000,))
        self.batch = Batch.of(self.inputs, self.targets, self.sizes)
        # By default half of the groups are clipped.
        self.zeros, self.arithmetic = [torch.zeros_like(p) for p in self.model.parameters()], FloatArithmetic(1.0)
        self.rho = rho or float(GroupClipper(self.model, LOSS, 1.0)(self.batch).norms.median())

    def plain(self) -> list[Tensor]:
        """The same batch without privacy."""
        self.model.zero_grad(set_to_none=True)
        LOSS(self.model(self.inputs), self.targets).mean().backward()
        return [p.grad for p in self.model.parameters()]

    def ours(self) -> Callable[[], list[Tensor]]:
        """This package."""
        clipper = GroupClipper(self.model, LOSS, self.rho)
        return lambda: clipper(self.batch).gradients

    def noise(self) -> None:
        """The noise of one step, which comes on top of the clipped sum."""
        self.arithmetic.add_noise(self.zeros, 1.0, RANDOM, 1)

    def opacus(self) -> Callable[[], list[Tensor]]:
        """Opacus's gradient of every example, then summed in groups, clipped and added."""
        from opacus import GradSampleModule

        model = GradSampleModule(copy.deepcopy(self.model), loss_reduction="sum")  # it leaves hooks behind
        counts = torch.tensor(self.sizes)
        owner = torch.arange(len(counts)).repeat_interleave(counts)
        weights = counts.reciprocal()[owner]

        def step() -> list[Tensor]:
            model.zero_grad(set_to_none=True)
            for p in model.parameters():
                p.grad_sample = None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # its hooks warn that the data need no gradient
                (LOSS(model(self.inputs), self.targets) * weights).sum().backward()
            grouped = []
            for p in model.parameters():
                rows = p.grad_sample.flatten(1)
                grouped.append(torch.zeros(len(counts), rows.shape[1]).index_add_(0, owner, rows))
            norms = torch.stack([g.square().sum(1) for g in grouped]).sum(0).sqrt()
            factors = (self.rho / norms).clamp_max(1)
            return [(factors @ g).view_as(p) for g, p in zip(grouped, model.parameters(), strict=True)]

        return step

    def loop(self) -> list[Tensor]:
        """One forward and backward pass for each group."""
        parameters = list(self.model.parameters())
        total = [torch.zeros_like(p) for p in parameters]
        start = 0
        for size in self.sizes:
            rows = slice(start, start + size)
            start += size
            grads = torch.autograd.grad(LOSS(self.model(self.inputs[rows]), self.targets[rows]).mean(), parameters)
            norm = torch.stack([g.square().sum() for g in grads]).sum().sqrt()
            factor = (self.rho / norm).clamp_max(1)
            for t, g in zip(total, grads, strict=True):
                t.add_(g * factor)
        return total

    def methods(self) -> dict[str, Callable[[], object]]:
        """What is compared, by name."""
        private = {"ours": self.ours(), "loop": self.loop, "opacus": self.opacus()}
        return {"plain": self.plain, "noise": self.noise, **private}


def peak(name: str, method: str) -> float:
    """Peak memory of one step above what the process held before, in MiB, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--peak", name, method], capture_output=True, text=True, check=True
    )
    return float(json.loads(done.stdout))


def _peak_here(name: str, method: str) -> float:
    problem = Problem(name, rho=1.0)
    step = {"ours": problem.ours, "opacus": problem.opacus}[method]()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _status("VmRSS")
    step()
    return _status("VmHWM") - before


def _status(field: str) -> float:
    """A line of Linux's account of this process, in MiB."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[field].split()[0]) / 1024


def measure(name: str, rounds: int) -> dict[str, float]:
    """Median times, the largest disagreement and the peak memories of one problem."""
    problem = Problem(name)
    methods = problem.methods()
    found = {key: methods[key]() for key in ("ours", "loop", "opacus")}
    scale = max(float(g.abs().max()) for g in found["loop"])
    error = max(
        float((a - b).abs().max()) / scale
        for other in ("loop", "opacus")
        for a, b in zip(found["ours"], found[other], strict=True)
    )
    del found
    times: dict[str, list[float]] = {key: [] for key in methods}
    for _ in range(rounds):
        for key, step in methods.items():
            end = time.perf_counter() + TURN
            while (start := time.perf_counter()) < end:
                step()
                times[key].append(time.perf_counter() - start)
    result = {f"{key} s": median(values) for key, values in times.items()}
    result |= {"groups": len(problem.sizes), "error": error}
    return result | {f"{method} MiB": peak(name, method) for method in ("ours", "opacus")}


def main() -> int:
    """Print the table; with ``--check`` fail if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--peak", nargs=2, metavar=("PROBLEM", "METHOD"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.peak:
        print(json.dumps(_peak_here(*arguments.peak)))
        return 0
    missed = 0
    print(f"{'':8} {'against':34} {'measured':>10} {'bar':>10}")
    for name, bars in BARS.items():
        m = measure(name, arguments.rounds)
        ours = m["ours s"]
        lines = [
            ("plain training, noise included", (ours + m["noise s"]) / m["plain s"], "<=", bars["plain"]),
            ("Opacus, then grouped", m["opacus s"] / ours, ">=", bars["opacus"]),
            ("Opacus, peak memory", m["ours MiB"] / m["opacus MiB"], "<=", bars["memory"]),
            ("one backward pass per group", m["loop s"] / ours, ">=", bars["loop"]),
            ("largest disagreement", m["error"], "<=", 1e-5),
        ]
        for what, value, relation, bar in lines:
            good = bar is None or (value <= bar if relation == "<=" else value >= bar)
            missed += not good
            limit = "" if bar is None else f"{relation} {bar:g}"
            print(f"{name:8} {what:34} {value:10.3g} {limit:>10} {'' if good else ' missed'}")
        print(f"{name:8} " + ", ".join(f"{key} {value:.4g}" for key, value in m.items()))
    return 1 if arguments.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
