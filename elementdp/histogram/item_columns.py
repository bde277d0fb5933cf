"""Items of several columns: one text for each, by which the release knows it, and the columns again at the end.

The text of an item of several columns is its cells, one after the other, with the character U+001F in between. In a
cell that character is written ``\\u``, and a backslash twice. So no escaped cell holds the character, the text can be
taken apart in one way only, and different items have different texts.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from elementdp.errors import ArgumentError
from elementdp.histogram.text import as_text

NUMBERS = ("count", "noise", "low", "high", "sum", "sum_noise", "sum_low", "sum_high")
"""The columns of a release that are no items."""

_BETWEEN = "\x1f"


def item_columns(item: str | Sequence[str]) -> tuple[str, ...]:
    """The columns that name an item, each once; several keep their names in the release, so they must be free there."""
    columns = (item,) if isinstance(item, str) else tuple(item)
    if not columns or len(set(columns)) < len(columns):
        raise ArgumentError("item", item, "one column, or several different ones")
    if len(columns) > 1 and (taken := [name for name in columns if name in NUMBERS]):
        raise ArgumentError("item", taken[0], "a column with another name: the release has a column of that name")
    return columns


def joined_texts(cells: Sequence[pa.Array]) -> pa.Array:
    """The texts of items, row by row, from the texts of their columns; one column is its own text."""
    if len(cells) == 1:
        return cells[0]
    escaped = [pc.replace_substring(pc.replace_substring(each, "\\", "\\\\"), _BETWEEN, "\\u") for each in cells]
    return pc.binary_join_element_wise(*escaped, _BETWEEN)


def cells_of(text: str) -> tuple[str, ...]:
    """The cells of an item of several columns."""
    return tuple(
        "\\".join(part.replace("\\u", _BETWEEN) for part in cell.split("\\\\")) for cell in text.split(_BETWEEN)
    )


def public_texts(items: Iterable[object], columns: int) -> list[str]:
    """The texts of a public list, read as the table's own items are: 7.0 is written 7.

    An item of several columns is a tuple of its cells.
    """
    values = list(items)
    if not values:
        raise ArgumentError("items", items, "a list of at least one item")
    if columns > 1 and (odd := [one for one in values if not isinstance(one, tuple | list) or len(one) != columns]):
        raise ArgumentError("items", odd[0], f"a list of items of {columns} columns, each a tuple of its cells")
    cells = zip(*values, strict=True) if columns > 1 else [values]
    try:
        texts = joined_texts([as_text(pa.array(list(column), from_pandas=True)) for column in cells]).to_pylist()
    except (pa.ArrowException, UnicodeError, OverflowError) as error:
        raise ArgumentError("items", f"a list that is not ({error})", "a list of items of one kind") from error
    if None in texts:
        raise ArgumentError("items", values[texts.index(None)], "a list of items, none of them missing")
    return list(texts)


def with_item_columns(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """A release with a column for each column of its items, where there are several."""
    if len(names) == 1:
        return table
    cells = [cells_of(text) for text in table.column("item").to_pylist()]
    columns = [pa.array([row[place] for row in cells], pa.string()) for place in range(len(names))]
    numbers = table.drop_columns(["item"])
    return pa.table([*columns, *numbers.columns], names=[*names, *numbers.column_names])
