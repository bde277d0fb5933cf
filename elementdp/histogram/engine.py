"""The seam between grouping and adding up whole numbers, which an engine does, and noise, which no engine ever sees.

An engine opens a table, parts its events into groups (one element of one user each) and adds whole numbers up over the
groups. All it does is deterministic and a function of each group alone, added up: the sensitivity of every query is
proved from that. The mechanism (:mod:`elementdp.histogram.release`) is written once, above this seam.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from elementdp.histogram.bad_rows import RowPolicy
from elementdp.histogram.element_rule import ElementRule
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.items import ItemList
from elementdp.histogram.naming import Naming
from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import GroupCounts
from elementdp.histogram.values import BoundedValue

Progress = Callable[[str, float], None]
"""Called with the name of the stage and the share of it done."""

Measure = Callable[[GroupCounts], Integers]
"""Whole numbers of some groups, the sum over all of which is wanted."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns that hold the user, the item (one or several) and (optionally) how often, or a value."""

    user: str
    items: tuple[str, ...]
    count: str | None = None
    value: BoundedValue | None = None


class GroupedEvents(Protocol):
    """Events as counts by (group, item)."""

    def item_weights(self, naming: Naming) -> Iterator[tuple[NDArray[Any], Integers]]:
        """The items that groups name, each once in all, with the weights they give it; as the engine knows items."""

    def item_texts(self, items: NDArray[Any]) -> list[str]:
        """The texts of such items."""

    def add_up(self, measure: Measure, items: ItemList, alone: NDArray[np.bool_], stage: str) -> Integers:
        """The sum of ``measure`` over all groups, seen on ``items`` only; where ``alone``, an item is its own group."""


class EventSource(Protocol):
    """An open table: its name for messages, its columns, and its events in groups."""

    @property
    def source(self) -> str:
        """What messages call the table."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table."""

    def grouped(
        self, columns: Columns, rule: ElementRule, items: ItemList | None, policy: RowPolicy, hashing: ItemHash
    ) -> AbstractContextManager[GroupedEvents]:
        """Read the events once and part them by (user, element); without a list, all items are kept, by ``hashing``."""


class Engine(Protocol):
    """Where the grouping is done: this machine, a cluster."""

    def open(self, table: object) -> EventSource:
        """The table, ready to be read; refused if it is none."""
