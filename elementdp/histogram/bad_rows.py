"""Bad rows of one table: the first is refused, or they are counted, as the policy says."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from elementdp.errors import one_of
from elementdp.histogram.errors import at_row

Choice = Literal["refuse", "drop"]


def _quiet(rows: int) -> None:
    """Tell no one how many rows were dropped."""


@dataclass(frozen=True)
class RowPolicy:
    """What becomes of rows that cannot be counted: ``"refuse"`` the table and name the row, or ``"drop"`` the row.

    ``bad_rows`` are rows without a user, an item or an element, with a count that is none, or that cannot be read at
    all; ``unknown_items`` are items outside the public list. ``tell`` is called with the number of bad rows dropped:
    it is for the table's owner, and not part of the release.

    **Dropping is private.** Whether a row is dropped depends on that row alone and on public options. So dropping maps
    tables that differ in one group of one user to tables that differ in that group only, and the guarantee is that of
    the table without the rows. A row without a user is no one's, and nothing is promised about it. Refusing tells the
    owner, and no one else, that there is a bad row; but then anyone who can write a bad row can stop a release.
    """

    bad_rows: Choice = "refuse"
    unknown_items: Choice = "refuse"
    tell: Callable[[int], None] = _quiet

    def __post_init__(self) -> None:
        one_of("bad_rows", self.bad_rows, ("refuse", "drop"))
        one_of("unknown_items", self.unknown_items, ("refuse", "drop"))


class BadRows:
    """The bad rows of one table; may be told of them from several threads."""

    def __init__(self, policy: RowPolicy) -> None:
        self.policy = policy
        self.dropped = 0
        self._lock = threading.Lock()

    @property
    def refused(self) -> bool:
        """Whether a bad row stops the release."""
        return self.policy.bad_rows == "refuse"

    def found(self, row: int, words: str, kind: str | None = None, rows: int = 1) -> None:
        """Bad rows, of which ``row`` (counted from 1) is the first and ``words`` say what is wrong with it.

        Words that quote the row need a ``kind`` that does not.
        """
        if self.refused:
            raise at_row(row, words, kind)
        with self._lock:
            self.dropped += rows

    def tell(self) -> None:
        """Tell the owner how many rows were dropped."""
        if self.dropped:
            self.policy.tell(self.dropped)
