"""Which element an event belongs to: a public function of its item, or a column of the table."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elementdp.elements import Clusters, Partition, domain_of
from elementdp.errors import ArgumentError
from elementdp.histogram.item_columns import cells_of, item_columns
from elementdp.privacy import Unit

KEYS: dict[str, Callable[[], Partition]] = {
    "item": Partition.identity,
    "domain": lambda: Partition.from_key(domain_of, "domain"),
    "user": Partition.single,
}
"""Elements by name: each item its own; a URL's domain; all a user has (which is user-level privacy)."""


@dataclass(frozen=True)
class ElementRule:
    """Elements by a ``column`` of the table, or by a ``partition`` of the items.

    Where items have several columns (``several``), the partition is one of tuples of their cells.
    """

    words: str
    partition: Partition | None = None
    column: str | None = None
    unit: Unit = Unit.ELEMENT
    alone: bool = False
    several: bool = False

    def shared_by(self, items: Sequence[str]) -> NDArray[np.int64]:
        """For each of ``items``, how many of them may lie in its element, as can be seen without the data."""
        if self.alone or len(items) <= 1 or self.partition is None:
            return np.full(len(items), 1 if self.alone else len(items))
        clusters = Clusters.from_labels([canonical(self.key(item)) for item in items])
        return np.asarray(clusters.sizes[clusters.labels])

    @property
    def constant(self) -> bool:
        """Whether all a user has is one element."""
        return self.unit is Unit.USER

    def check(self, items: Sequence[str]) -> None:
        """Refuse an item without an element now, before a table is read."""
        if self.partition is not None:
            for item in items:
                self.key(item)

    def key(self, item: str) -> Hashable:
        """The element of an item, for elements that are a function of it."""
        assert self.partition is not None
        return self.partition.key(cells_of(item) if self.several else item)


def canonical(key: Hashable) -> str:
    """The text of an element's key: the same for equal keys, another for others.

    One element under two texts would be bounded twice and charged once. So only types whose equality is that of their
    content are taken: 1 and 1.0 are equal and read differently, objects may be equal by any rule or by none.
    """
    value = key.item() if isinstance(key, np.generic) else key
    equality = type(value).__eq__
    if isinstance(value, str) and equality is str.__eq__:
        return "s" + str.__str__(value)
    if isinstance(value, int) and equality is int.__eq__ and not isinstance(value, bool):
        return "i" + int.__format__(value, "x")
    if isinstance(value, bytes) and equality is bytes.__eq__:
        return "b" + value.hex()
    raise ArgumentError(
        "element", key, f"a function that gives each item a str, an int or bytes, not a {type(key).__name__}"
    )


def element_rule(
    element: str | Partition | Callable[[Any], Hashable],
    user: str,
    item: str | Sequence[str],
    names: Sequence[str],
    source: str,
) -> ElementRule:
    """The rule that ``element`` names: the user or item column, another column, else ``item``, ``domain`` or ``user``.

    ``column:NAME`` is the column of that name, whatever it is called. A word that could mean a column or a key is
    refused: with a column ``user`` that is not the one that names the user, ``user`` could mean either, and the column
    would be the weaker promise.
    """
    items = item_columns(item)
    rule = _rule(element, user, items, names, source)
    if len(items) > 1 and rule.partition is not None and rule.partition.key is domain_of:
        raise ArgumentError("element", element, "another rule: an item of several columns has no domain")
    return replace(rule, several=len(items) > 1)


def _rule(
    element: str | Partition | Callable[[Any], Hashable],
    user: str,
    items: tuple[str, ...],
    names: Sequence[str],
    source: str,
) -> ElementRule:
    item = items[0] if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(element, Partition):
        return ElementRule(f"{item} by {element.name}", element)
    if callable(element):
        partition = Partition.from_key(element)
        return ElementRule(f"{item} by {partition.name}", partition)
    named = element.removeprefix("column:")
    keyword = {item: "item", user: "user"}.get(named)
    if keyword is None and (named != element or element in names):
        if named not in names:
            raise ArgumentError("element", element, f"a column of {source}: one of {', '.join(map(repr, names))}")
        if element in KEYS:
            raise _ambiguous(element, user, items)
        if named in items:  # one of several, so a public function of the item
            return ElementRule(f"column {named}", Partition(itemgetter(items.index(named)), named))
        return ElementRule(f"column {named}", column=named)
    element = keyword or element
    if element not in KEYS:
        choices = [*map(repr, names), *KEYS]
        raise ArgumentError("element", element, f"a column of {source} or a key: one of {', '.join(choices)}")
    words = {"item": f"each {item}", "domain": f"the domain of {item}", "user": "all a user has"}[element]
    unit = Unit.USER if element == "user" else Unit.ELEMENT
    return ElementRule(words, KEYS[element](), unit=unit, alone=element == "item")


def _ambiguous(element: str, user: str, items: tuple[str, ...]) -> ArgumentError:
    """A word that is a key and a column: the two promise different things."""
    other = {
        "user": f"{user!r} for all a user has",
        "item": f"{items[0]!r} for each item" if len(items) == 1 else "a table without that column for each item",
        "domain": "a table without that column for the domain of a URL",
    }[element]
    return ArgumentError("element", element, f"'column:{element}' for the column of that name, or {other}")
