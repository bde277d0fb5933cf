"""A release that shares a budget: charged when all that can be checked is checked, and before an event is read."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from elementdp.histogram.bad_rows import RowPolicy
from elementdp.histogram.budget import Budget
from elementdp.histogram.composition import BudgetFile, ReleaseCost
from elementdp.histogram.element_rule import ElementRule
from elementdp.histogram.engine import Columns, Engine, EventSource, GroupedEvents
from elementdp.histogram.events import one_column
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.items import ItemList
from elementdp.histogram.rows import columns_read
from elementdp.privacy import Relation


@dataclass(frozen=True)
class ChargedEngine:
    """An engine for one release with ``privacy`` that is entered in ``file`` before its table is read.

    ``tell`` is called with the ε of all releases in the file and the ε that it allows.
    """

    engine: Engine
    file: BudgetFile
    privacy: Budget
    chooses_radius: bool
    tell: Callable[[float, float], None]

    def open(self, table: object) -> "ChargedSource":
        """The table, of which only the names of the columns are known so far."""
        return ChargedSource(self.engine.open(table), self)


@dataclass(frozen=True)
class ChargedSource:
    """A table that costs what its release costs as soon as it is read."""

    opened: EventSource
    charged: ChargedEngine

    @property
    def source(self) -> str:
        """What messages call the table."""
        return self.opened.source

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table."""
        return self.opened.names

    def grouped(
        self, columns: Columns, rule: ElementRule, items: ItemList | None, policy: RowPolicy, hashing: ItemHash
    ) -> AbstractContextManager[GroupedEvents]:
        """Look for the columns, enter the release in the budget or refuse it, then read the events."""
        for column in columns_read(columns, rule):
            one_column(self.source, self.names, column)
        cost = ReleaseCost.planned(
            self.charged.privacy,
            (rule.unit.words, rule.words, Relation.REPLACE.words, columns.user),
            discovers=items is None,
            chooses_radius=self.charged.chooses_radius,
        )
        self.charged.tell(*self.charged.file.spend(cost))
        return self.opened.grouped(columns, rule, items, policy, hashing)
