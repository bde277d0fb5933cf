"""What is wrong with a table of events, said so that its owner can mend it."""

from elementdp.errors import ElementdpError


class TableError(ElementdpError):
    """A table that cannot be released: unreadable, without a column, or with a bad value in a named row."""


def at_row(row: int, problem: str) -> TableError:
    """The error for data row ``row``, counted from 1 with no header line and no blank line counted."""
    return TableError(f"row {row}: {problem}")
