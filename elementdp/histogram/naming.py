"""Which items a group names in private discovery, and with what weight."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import GridBall, GroupCounts
from elementdp.histogram.text import hash_strings, mix


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

    def weights(self, part: pa.Table) -> tuple[pa.Array, Integers]:
        """The items named by the groups of a part (columns key, item, units; whole groups), and their weights."""
        groups, words = self.named(part)
        total = np.zeros(len(words), dtype=np.int64)
        np.add.at(total, groups.items, groups.project(self.ball))
        seen = np.flatnonzero(total)
        return words.take(pa.array(seen)), total[seen]

    def named(self, part: pa.Table) -> tuple[GroupCounts, pa.Array]:
        """What each group of a part names, once each; and the items of the part, sorted."""
        words = part.column("item").unique().sort()
        codes = pc.index_in(part.column("item"), value_set=words).to_numpy().astype(np.int64)
        groups = GroupCounts.of(part.column("key").to_numpy(), codes, part.column("units").to_numpy()).presence()
        if self.one_item:
            return groups.apart(), words
        if (groups.sizes > self.most_items).any():
            lottery = mix(groups.keys, hash_strings(words)[groups.items])
            order = np.lexsort((groups.items, lottery, groups.keys))
            rank = np.arange(len(order)) - np.repeat(groups.starts, groups.sizes)
            chosen = np.zeros(len(order), dtype=bool)
            chosen[order[rank < self.most_items]] = True
            groups = groups.keep(chosen)
        return groups, words
