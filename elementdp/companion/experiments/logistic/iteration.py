"""Algorithm 1 and the private iteration (eqn:private-element-sgd), for a whole grid of settings at once."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from elementdp.companion.experiments.logistic.model import ClipGroups
from elementdp.errors import ArgumentError, at_least, positive, probability
from elementdp.privacy import Correlation, Sampler


@dataclass(frozen=True)
class CellBatch:
    """Settings run side by side on the same data and the same subsamples, each with noise of its own."""

    step: NDArray[np.float64]  # α₀
    noise: NDArray[np.float64]  # σ, in units of ρ
    clip: NDArray[np.float64]  # ρ

    def __post_init__(self) -> None:
        if not self.step.shape == self.noise.shape == self.clip.shape or self.step.ndim != 1:
            raise ArgumentError("cells", (self.step.shape, self.noise.shape, self.clip.shape), "three equal lengths")


@dataclass(frozen=True)
class Estimates:
    """θ̂ of every cell: the last iterate, and the average over the second half of the iterates."""

    last: NDArray[np.float64]  # cells × d
    averaged: NDArray[np.float64]  # cells × d

    def errors(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """‖θ̂ - θ*‖ of each cell, for the last iterate and the average: 2 × cells."""
        return np.stack([np.linalg.norm(estimate - theta, axis=1) for estimate in (self.last, self.averaged)])


INDEPENDENT = Correlation()


def iterate(
    groups: ClipGroups,
    cells: CellBatch,
    q: float,
    sampler: Sampler,
    steps: int,
    seed: int,
    correlation: Correlation = INDEPENDENT,
) -> Estimates:
    """T steps of θ ← θ + α₀/√k · (Σ B [Δ]_ρ + ρσW)/(qn) from θ = 0.

    Δ is Algorithm 1's update, a descent direction, hence the plus sign (the paper's minus sign climbs). W is filtered
    by ``correlation``.
    """
    probability("q", q, low_open=True)
    at_least("steps", steps, 1)
    for clip in np.unique(cells.clip):
        positive("clip", float(clip))
    generator = torch.Generator().manual_seed(seed)
    user = torch.from_numpy(groups.user)
    step, noise, clip = (torch.from_numpy(part.astype(np.float32)) for part in (cells.step, cells.noise, cells.clip))
    data = _GroupTensors(
        torch.from_numpy(groups.signed), torch.from_numpy(groups.weight), torch.from_numpy(groups.size)
    )
    shape = (groups.signed.shape[2], len(step))
    theta, total = torch.zeros(shape), torch.zeros(shape)
    seen = _Seen(sampler, q, user, groups.users, generator)
    normals: list[torch.Tensor] = []  # the last few, the newest first
    for k in range(1, steps + 1):
        update = data.clipped_sum(torch.nonzero(seen.at(k)).flatten(), theta, clip)
        normals = [torch.randn(shape, generator=generator), *normals][: len(correlation.weights)]
        update += clip * noise * sum(w * z for w, z in zip(correlation.weights, normals, strict=False))
        theta = theta + step * update / (k**0.5 * q * groups.users)
        if k > steps // 2:
            total += theta
    return Estimates(theta.T.double().numpy(), (total / (steps - steps // 2)).T.double().numpy())


@dataclass
class _Seen:
    """Which groups each step sees."""

    sampler: Sampler
    q: float
    user: torch.Tensor
    users: int
    generator: torch.Generator
    places: torch.Tensor | None = None  # the step of the epoch that each group is in

    def at(self, k: int) -> torch.Tensor:
        """Whether each group is in step k."""
        batches = round(1 / self.q)
        if self.sampler is Sampler.FIXED_ORDER and self.places is None:
            self.places = (torch.randperm(self.users, generator=self.generator) % batches)[self.user]
        if self.sampler is Sampler.ALLOCATED_PAIRS and (k - 1) % batches == 0:
            self.places = torch.randint(batches, self.user.shape, generator=self.generator)
        if self.places is not None:
            return self.places == (k - 1) % batches
        whole = self.sampler is Sampler.POISSON_USERS  # else the coin decides on one (user, element) pair: the repair
        coins = torch.rand(self.users if whole else len(self.user), generator=self.generator, dtype=torch.float64)
        return (coins < self.q)[self.user] if whole else coins < self.q


@dataclass(frozen=True)
class _GroupTensors:
    """The groups as tensors, summed a few at a time so that intermediate results stay in the processor's cache."""

    signed: torch.Tensor
    weight: torch.Tensor
    size: torch.Tensor
    work: int = 24_576  # groups × cells at a time

    def clipped_sum(self, rows: torch.Tensor, theta: torch.Tensor, clip: torch.Tensor) -> torch.Tensor:
        """Σ over the groups in ``rows`` of [Δ]_ρ, one column a cell."""
        total = torch.zeros_like(theta)
        chunk = max(32, self.work // len(clip))
        for start in range(0, len(rows), chunk):
            part = rows[start : start + chunk]
            places = int(self.size[part[-1]])  # groups are sorted by size: the last is the largest
            total += clipped_sum(self.signed[part, :places], self.weight[part, :places], theta, clip)
        return total


def clipped_sum(signed: torch.Tensor, weight: torch.Tensor, theta: torch.Tensor, clip: torch.Tensor) -> torch.Tensor:
    """Σ over groups of [Δ]_ρ, Δ = weighted mean of y x / (1 + exp(y⟨x, θ⟩)) within the group: d × cells."""
    groups, places, d = signed.shape
    margin = (signed.reshape(-1, d) @ theta).reshape(groups, places, -1)
    pull = torch.sigmoid_(margin.neg_()).mul_(weight[..., None])
    delta = torch.bmm(signed.transpose(1, 2).contiguous(), pull)  # groups × d × cells
    squared = (delta * delta).sum(dim=1)  # vector_norm is many times slower along this axis
    shrink = (clip * torch.rsqrt(squared)).clamp_(max=1.0)  # a zero update gives infinity, clamped to 1
    return delta.mul_(shrink[:, None, :]).sum(dim=0)
