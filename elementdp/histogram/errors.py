"""What is wrong with a table of events, said so that its owner can mend it."""

from elementdp.errors import ElementdpError


class TableError(ElementdpError):
    """A table that cannot be released: unreadable, without a column, or with a bad value in a named row.

    The message may quote the table. ``kind`` says the same without a word of the table's.
    """

    def __init__(self, message: str, kind: str = "the table cannot be read") -> None:
        super().__init__(message)
        self.kind = kind


def at_row(row: int, problem: str, kind: str | None = None) -> TableError:
    """The error for data row ``row``, counted from 1 with no header line and no blank line counted.

    A ``problem`` that quotes the row needs a ``kind`` that does not.
    """
    return TableError(f"row {row}: {problem}", kind or problem)
