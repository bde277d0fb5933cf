"""Rows that change with the rows loaded along with them: examples can meet before they reach the model."""

from collections.abc import Callable
from enum import StrEnum
from itertools import pairwise

import torch
from torch import Tensor

from elementdp.errors import ArgumentError
from elementdp.learning.batch import Batch
from elementdp.learning.draws import same_draws
from elementdp.learning.rows import ONE_BY_ONE, Pair, tensors

LOOKED_AT = 16
"""So many rows are loaded together for the comparison."""
DRAWS = 4
"""By so many different draws: a collate function may mix examples at random."""
PADDED = 1000
"""Units in the last place that a loss may change by when its row is padded differently: other shapes, other kernels."""


class Loading(StrEnum):
    """What loading a row once more gives."""

    FIXED = "the same"
    DRAWN = "another one by other random numbers"
    OTHER = "another one even by the same random numbers"


def refuse_mixed_loading(batch: Batch, losses: Callable[[Pair], Tensor]) -> Loading:
    """Raise if a row is another one beside other rows, or padded so that its loss is another one.

    The last of a few rows is exchanged for the first, with the same random numbers: the others must stay as they are. A
    row that is padded to the length of others must have the loss that it has alone; rows that draw random numbers are
    not looked at for this. Loading that draws random numbers from elsewhere cannot be compared, and is not.
    """
    total = sum(batch.sizes)
    if total < 3:
        return Loading.FIXED
    rows = torch.linspace(0, total - 1, min(total, LOOKED_AT), dtype=torch.float64).round().long()
    other = torch.cat([rows[:-1], rows[:1]])
    found = [_loaded(batch, rows, seed) for seed in range(DRAWS)]
    if not _same(found[0], _loaded(batch, rows, 0)):
        return Loading.OTHER
    for seed, before in enumerate(found):
        after = _loaded(batch, other, seed)
        if _shapes(after) == _shapes(before) and not _same([t[:-1] for t in before], [t[:-1] for t in after]):
            raise ArgumentError(
                "data",
                "rows that change with the rows loaded beside them",
                "loaded row by row: a collate function that mixes examples cannot be made private by clipping groups",
            )
    if not all(_same(*neighbours) for neighbours in pairwise(found)):
        return Loading.DRAWN
    _refuse_padding(batch, rows, losses)
    return Loading.FIXED


def _refuse_padding(batch: Batch, rows: Tensor, losses: Callable[[Pair], Tensor]) -> None:
    together = batch.fetch(rows)
    shapes = _shapes(tensors(together))
    expected: Tensor | None = None
    for place in range(len(rows)):
        alone = batch.fetch(rows[place : place + 1])
        if _shapes(tensors(alone)) == shapes:
            continue
        if expected is None:
            expected = losses(together).detach()
        one = losses(alone).detach()[0]
        if not one.isfinite() or not expected[place].isfinite():
            continue
        scale = expected[place].abs() + expected[expected.isfinite()].abs().median()
        if (one - expected[place]).abs() > PADDED * torch.finfo(one.dtype).eps * scale:
            raise ArgumentError(
                "data",
                "rows whose loss changes with the padding",
                "padded to one length for all rows, or so that the model does not see it (a mask): how far a row is "
                "padded depends on the other rows of its batch",
            )


def _loaded(batch: Batch, rows: Tensor, seed: int) -> list[Tensor]:
    before = ONE_BY_ONE.set(True)
    try:
        with same_draws(seed):
            return tensors(batch.fetch(rows))
    finally:
        ONE_BY_ONE.reset(before)


def _shapes(found: list[Tensor]) -> list[torch.Size]:
    return [t.shape[1:] for t in found]


def _same(one: list[Tensor], other: list[Tensor]) -> bool:
    if len(one) != len(other):
        return False
    return all(
        a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all()) for a, b in zip(one, other, strict=True)
    )
