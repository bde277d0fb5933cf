"""Users who share photos, and a last layer trained on their features: each photo is scored once a step.

The gradient of a photo is r ⊗ (x, 1), with r the residual of its softmax and x its features, whoever holds it. So a
step scores the distinct photos that it drew, and not every row; the products x·x' within a group never change and are
computed once; and the clipped sum is one product over distinct photos, each weighted by what its groups let through.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elementdp.companion.data.pseudo_users import PseudoUsers
from elementdp.learning import Batch, ClippedSum, GroupClipper, Plan, UserData
from elementdp.learning._fast.general import Loss
from elementdp.privacy import Unit

Indices = NDArray[np.int64]

CACHED_ROWS = 4_096
"""Rows whose products are computed at a time: what fits into the cache."""

_EPS = torch.finfo(torch.float32).eps
MOST = 0.9
"""From this share of the photos on, all of them are scored where they lie: picking some would copy nearly all."""


@dataclass(frozen=True)
class PhotoBatch(Batch):
    """The groups of one step, small ones first, and the photos they are made of."""

    unit: Unit
    groups: Indices
    photos: Tensor


class PhotoData(UserData):
    """What pseudo-users hold, with each photo kept once however many users share it."""

    def __init__(self, inputs: Tensor, labels: Tensor, held: PseudoUsers, content: str) -> None:
        self.inputs, self.labels, self.photo = inputs, labels, torch.from_numpy(held.image)
        super().__init__(self._rows, held.user, held.element, held.users, content=content)
        self.products = cache(self._products)

    def _rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        photos = self.photo.index_select(0, rows)
        return self.inputs.index_select(0, photos), self.labels.index_select(0, photos)

    def batch(self, unit: Unit, chosen: Indices) -> PhotoBatch:
        """The chosen groups as a batch that knows its photos."""
        groups = self.groups(unit)
        ordered = chosen[np.argsort(groups.sizes[chosen], kind="stable")]
        rows, sizes = groups.rows(ordered)
        index = torch.from_numpy(rows)
        photos = self.photo.index_select(0, index)
        return PhotoBatch(tuple(sizes.tolist()), lambda part: self.fetch(index[part]), unit, ordered, photos)

    def clipper(self, model: nn.Module, loss: Loss, plan: Plan) -> GroupClipper:
        """The one below where it applies: a linear layer on flat features, on the processor."""
        if (
            type(model) is nn.Linear
            and self.inputs.dim() == 2
            and plan.domain is None
            and plan.precision is None
            and not plan.exact
        ):
            return PhotoClipper(model, loss, plan.rho, self)
        return super().clipper(model, loss, plan)

    def _products(self, unit: Unit) -> tuple[Tensor, dict[int, Tensor]]:
        """For every group its place among the groups of its size, and for every size x·x' + 1 within each of them."""
        groups = self.groups(unit)
        place = np.zeros(len(groups), dtype=np.int64)
        found: dict[int, Tensor] = {}
        for size in np.unique(groups.sizes).tolist():
            members = np.flatnonzero(groups.sizes == size)
            place[members] = np.arange(len(members))
            photos = self.photo.index_select(0, torch.from_numpy(groups.rows(members)[0])).view(-1, size)
            few = max(1, CACHED_ROWS // size)
            found[size] = torch.cat([self._gram(photos[i : i + few]) for i in range(0, len(photos), few)])
        return torch.from_numpy(place), found

    def _gram(self, photos: Tensor) -> Tensor:
        rows = self.inputs.index_select(0, photos.flatten()).view(*photos.shape, -1)
        return torch.bmm(rows, rows.mT).add_(1)


class PhotoClipper(GroupClipper):
    """Clipped sums of one linear layer under cross entropy; the same as its parent finds, up to rounding."""

    def __init__(self, layer: nn.Linear, loss: Loss, rho: float, data: PhotoData) -> None:
        super().__init__(layer, loss, rho)
        self.layer, self.data = layer, data
        self.lost: float = (2 + layer.in_features**0.5 / 32) * _EPS  # errors of a long sum add up like a random walk

    @torch.no_grad()
    def __call__(self, batch: Batch, step: float = 1.0) -> ClippedSum:
        """Σ [Δ]_ρ over the groups of the batch."""
        if not isinstance(batch, PhotoBatch) or not batch.sizes or self.device.type != "cpu":
            with torch.enable_grad():
                return super().__call__(batch, step)
        drawn, row = _distinct(batch.photos, len(self.data.inputs))
        inputs, labels = (
            t if drawn is None else t.index_select(0, drawn) for t in (self.data.inputs, self.data.labels)
        )
        logs = torch.addmm(self.layer.bias, inputs, self.layer.weight.T).log_softmax(1)
        losses = -logs.gather(1, labels[:, None])[:, 0]
        residuals = logs.exp_()
        residuals[torch.arange(len(labels)), labels] -= 1
        sizes = torch.tensor(batch.sizes)
        norms = self._norms(batch, residuals, row)
        factors = (self.rho / (norms * (1 + 16 * _EPS))).clamp_max(1)
        owner = torch.arange(len(sizes)).repeat_interleave(sizes)
        weights = inputs.new_zeros(len(inputs)).index_add_(0, row, (factors / sizes).index_select(0, owner))
        weighted = residuals.mul_(weights[:, None])
        means = norms.new_zeros(len(sizes)).index_add_(0, owner, losses.index_select(0, row)) / sizes
        return ClippedSum([weighted.T @ inputs, weighted.sum(0)], norms, means)

    def _norms(self, batch: PhotoBatch, residuals: Tensor, row: Tensor) -> Tensor:
        """Norms of the groups' mean gradients, rounded up by what sums of their terms may have lost.

        ||Σ r ⊗ (x, 1)||² = Σ (r·r')(x·x' + 1) over the pairs of a group. A sum can lose digits to cancellation, and a
        norm taken too small would let more than ρ through.
        """
        place, products = self.data.products(batch.unit)
        here = place.index_select(0, torch.from_numpy(batch.groups))
        parts, group, start = [], 0, 0
        for size, count in zip(*np.unique(batch.sizes, return_counts=True), strict=True):
            members = here[group : group + count]
            rows = row[start : start + count * size].view(count, size)
            parts.append(self._norms_of_size(products[int(size)], members, rows, residuals))
            group, start = group + count, start + count * size
        return torch.cat(parts)

    def _norms_of_size(self, products: Tensor, members: Tensor, rows: Tensor, residuals: Tensor) -> Tensor:
        size = rows.shape[1]
        if size == 1:  # then every row is a photo of its own, and nothing cancels
            squares = residuals.square().sum(1).index_select(0, rows.flatten())
            return (squares * products.index_select(0, members).flatten() * (1 + self.lost)).sqrt()
        few = max(1, CACHED_ROWS // size)
        parts = []
        for i in range(0, len(rows), few):
            some = residuals.index_select(0, rows[i : i + few].flatten()).view(-1, size, residuals.shape[1])
            parts.append(_squares(some, products.index_select(0, members[i : i + few]), self.lost))
        return torch.cat(parts).sqrt().div_(size)


def _squares(residuals: Tensor, known: Tensor, lost: float) -> Tensor:
    """Σ (r·r')(x·x' + 1) over the pairs of each group, given the second factors."""
    grams = torch.bmm(residuals, residuals.mT)
    lengths = [products.diagonal(dim1=1, dim2=2).clamp_min(0).sqrt() for products in (grams, known)]
    terms = (lengths[0] * lengths[1]).sum(1).square()
    # Rows that cancel must not pass unclipped through the sum of all rows, where they would push out others' digits.
    return torch.maximum(grams.mul_(known).sum((1, 2)).clamp_min(0) + lost * terms, 16 * _EPS * terms)


def _distinct(photos: Tensor, total: int) -> tuple[Tensor | None, Tensor]:
    """The distinct photos (None: take all, since most are drawn) and the place of each row among them."""
    seen = torch.zeros(total, dtype=torch.bool)
    seen[photos] = True
    drawn = seen.nonzero().flatten()
    if len(drawn) > MOST * total:
        return None, photos
    place = torch.empty(total, dtype=torch.int64)
    place[drawn] = torch.arange(len(drawn))
    return drawn, place.index_select(0, photos)
