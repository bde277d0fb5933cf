"""Which items a group names in private discovery, and with what weight."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import GridBall, GroupCounts
from elementdp.histogram.text import Keys, mix


@dataclass(frozen=True)
class Naming:
    """A group names at most ``most_items`` of its items (the first in a fixed pseudo-random order of its own).

    Each of its t items gets the weight ⌊R/√t⌋, R the radius of ``ball``; if elements are single items
    (``one_item``), each (user, item) pair is a group by itself.
    """

    ball: GridBall
    most_items: int
    one_item: bool

    def heaviest(self, size: int) -> int:
        """The largest weight that each of ``size`` items of one group can have."""
        return math.isqrt(self.ball.radius**2 // size)

    def weights(self, groups: GroupCounts) -> tuple[Keys, Integers]:
        """The items (hashes) that whole groups name, and the weight of each naming: an item may come several times."""
        named = self.named(groups)
        return named.items.view(np.uint64), named.project(self.ball)

    def named(self, groups: GroupCounts) -> GroupCounts:
        """What each group names, once each."""
        groups = groups.presence()
        if self.one_item:
            return groups.apart()
        if (groups.sizes > self.most_items).any():
            lottery = mix(groups.keys, groups.items.view(np.uint64))
            order = np.lexsort((groups.items, lottery, groups.keys))
            rank = np.arange(len(order)) - np.repeat(groups.starts, groups.sizes)
            chosen = np.zeros(len(order), dtype=bool)
            chosen[order[rank < self.most_items]] = True
            groups = groups.keep(chosen)
        return groups


def item_sums(rows: tuple[NDArray[Any], ...]) -> tuple[Keys, Integers]:
    """Rows (item, weight) added up by item."""
    items, weights = rows
    order = np.argsort(items)
    items, weights = items[order], weights[order]
    starts = np.flatnonzero(np.r_[True, items[1:] != items[:-1]]) if len(items) else order
    return items[starts], np.add.reduceat(weights, starts) if len(starts) else weights
