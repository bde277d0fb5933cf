"""The last layer's clipped sums where features are fixed and users share photos: each photo is scored once a step.

A photo's gradient is r ⊗ (x, 1), with r the residual of its softmax and x its features, whoever holds it. So a step
scores the distinct photos it drew and not every row; the products x·x' within a group never change and are computed
once; and the clipped sum is one product over distinct photos, each weighted by what its groups let through.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from elementdp.data.pseudo_users import PseudoUsers
from elementdp.learning import UserData
from elementdp.learning.clipping import ClippedSum, Method
from elementdp.learning.data import Indices
from elementdp.learning.groups import Batch, owners, segment_sums
from elementdp.learning.precision import exact
from elementdp.privacy import Unit

GRAM_ROWS = 4_096
"""Rows whose products are computed at a time."""


@dataclass(frozen=True)
class PhotoBatch(Batch):
    """The groups one step sees, as photos: small groups first, as in every batch."""

    unit: Unit
    groups: Indices
    photos: Tensor


class PhotoData(UserData):
    """What pseudo-users hold, with each photo kept once; batches know which photos they are made of."""

    def __init__(self, inputs: Tensor, labels: Tensor, held: PseudoUsers, content: str) -> None:
        self.inputs, self.labels = inputs.contiguous(), labels
        self.photo = torch.from_numpy(held.image)
        super().__init__(self._fetch, held.user, held.element, held.users, content=content)
        self.products = cache(self._products)

    def _fetch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        photos = self.photo.index_select(0, rows)
        return self.inputs.index_select(0, photos), self.labels.index_select(0, photos)

    def batch(self, unit: Unit, chosen: Indices) -> PhotoBatch:
        """The chosen groups, as photos."""
        groups = self.groups(unit)
        ordered = chosen[np.argsort(groups.sizes[chosen], kind="stable")]
        rows, sizes = groups.rows(ordered)
        index = torch.from_numpy(rows)
        photos = self.photo.index_select(0, index)
        return PhotoBatch(tuple(sizes.tolist()), lambda part: self.fetch(index[part]), unit, ordered, photos)

    def _products(self, unit: Unit) -> tuple[Tensor, dict[int, Tensor]]:
        """For every group its place among the groups of its size, and for every size x·x' + 1 within each of them."""
        groups = self.groups(unit)
        place = np.zeros(len(groups), dtype=np.int64)
        found: dict[int, Tensor] = {}
        squares = self.inputs.square().sum(1)
        for size in np.unique(groups.sizes).tolist():
            members = np.flatnonzero(groups.sizes == size)
            place[members] = np.arange(len(members))
            photos = self.photo.index_select(0, torch.from_numpy(groups.rows(members)[0])).view(-1, size)
            if size == 1:
                grams = squares.index_select(0, photos.flatten()).view(-1, 1, 1)
            else:
                grams = torch.empty(len(members), size, size)
                step = max(1, GRAM_ROWS // size)
                for i in range(0, len(members), step):
                    part = photos[i : i + step]
                    rows = self.inputs.index_select(0, part.flatten()).view(*part.shape, -1)
                    torch.bmm(rows, rows.mT, out=grams[i : i + step])
            found[size] = grams.add_(1)
        return torch.from_numpy(place), found


class PhotoClipper:
    """Clipped sums of group gradients of one linear layer under cross entropy: Σ over groups of [mean gradient]_ρ."""

    method = Method.FAST

    def __init__(self, layer: nn.Linear, data: PhotoData, rho: float) -> None:
        self.layer, self.data, self.rho = layer, data, rho
        self.squares = data.inputs.square().sum(1)

    def prepare(self, batch: Batch) -> None:
        """Nothing to choose: the layer is known."""

    @torch.no_grad()
    def __call__(self, batch: Batch, step: float = 1.0) -> ClippedSum:
        """Σ [Δ]_ρ over the groups of the batch, as :class:`elementdp.learning.clipping.GroupClipper` finds it."""
        assert isinstance(batch, PhotoBatch)
        data, layer = self.data, self.layer
        if not batch.sizes:
            empty = torch.zeros(0)
            return ClippedSum([torch.zeros_like(p) for p in (layer.weight, layer.bias)], empty, empty)
        with exact():
            drawn, row = _distinct(batch.photos, len(data.inputs))
            inputs = data.inputs if drawn is None else data.inputs.index_select(0, drawn)
            labels = data.labels if drawn is None else data.labels.index_select(0, drawn)
            scores = torch.addmm(layer.bias, inputs, layer.weight.T)
            logs = scores.log_softmax(1)
            losses = -logs.gather(1, labels[:, None])[:, 0]
            residuals = logs.exp_()
            residuals[torch.arange(len(labels)), labels] -= 1
            lengths = np.array(batch.sizes)
            norms = self._norms(batch, residuals, lengths, row)
            factors = (self.rho / (norms * (1 + 16 * torch.finfo(norms.dtype).eps))).clamp_max(1)
            owner = owners(lengths)
            shares = (factors / torch.from_numpy(lengths)).float().index_select(0, owner)
            weights = segment_sums(shares, row, len(inputs))
            weighted = residuals.mul_(weights[:, None])
            sums = [weighted.T @ inputs, weighted.sum(0)]
            means = segment_sums(losses.index_select(0, row), owner, len(lengths)) / torch.from_numpy(lengths)
        return ClippedSum(sums, norms, means.float())

    def _norms(self, batch: PhotoBatch, residuals: Tensor, lengths: Indices, row: Tensor) -> Tensor:
        """Norms of the groups' mean gradients, rounded up by what the sums of their terms may have lost."""
        place, products = self.data.products(batch.unit)
        here = place.index_select(0, torch.from_numpy(batch.groups))
        numbers = torch.finfo(residuals.dtype)
        digits = 2 + self.data.inputs.shape[1] ** 0.5 / 32
        parts, group, start = [], 0, 0
        for size, count in zip(*np.unique(lengths, return_counts=True), strict=True):
            rows = row[start : start + count * size]
            if size == 1:
                known = products[1].index_select(0, here[group : group + count])
                squares = residuals.square().sum(1).index_select(0, rows) * known.flatten()
                parts.append((squares * (1 + digits * numbers.eps)).sqrt())
            few = max(1, 6_400 // int(size))  # what fits into the cache
            for i in range(0, count if size > 1 else 0, few):
                known = products[int(size)].index_select(0, here[group + i : group + min(i + few, count)])
                some = residuals.index_select(0, rows[i * size : (i + few) * size]).view(len(known), size, -1)
                grams = torch.bmm(some, some.mT)
                diagonals = [t.diagonal(dim1=1, dim2=2).clamp_min(0).sqrt() for t in (grams, known)]
                total = (diagonals[0] * diagonals[1]).sum(1).square()
                squares = (grams.mul_(known)).sum((1, 2)).clamp_min(0) + digits * numbers.eps * total
                parts.append(torch.maximum(squares, 16 * numbers.eps * total).sqrt() / float(size))
            group, start = group + count, start + count * size
        return torch.cat(parts)


def _distinct(photos: Tensor, total: int) -> tuple[Tensor | None, Tensor]:
    """The distinct photos and each row's place among them; all photos of the pool, uncopied, where most were drawn."""
    seen = torch.zeros(total, dtype=torch.bool)
    seen[photos] = True
    count = int(seen.sum())
    if count > 0.9 * total:
        return None, photos
    drawn = seen.nonzero().flatten()
    place = torch.empty(total, dtype=torch.int64)
    place[drawn] = torch.arange(count)
    return drawn, place.index_select(0, photos)
