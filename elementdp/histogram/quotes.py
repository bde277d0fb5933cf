"""CSV that ends inside a quote: Arrow takes the rest of the file for one cell and says nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from elementdp.histogram.errors import TableError

_TAIL = 1 << 16


class QuoteWatch:
    """A stream that counts the quotes it passes on; ``again`` opens it anew (a compressed one cannot go back)."""

    def __init__(self, stream: Any, delimiter: str, again: Callable[[], AbstractContextManager[Any]]) -> None:
        self._stream, self._again = stream, again
        self._delimiter = delimiter.encode()
        self._quotes = 0
        self._tail = b""
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Pass on some bytes."""
        data = bytes(self._stream.read(size))
        self._quotes += data.count(b'"')
        self._tail = (self._tail + data[-_TAIL:])[-_TAIL:]
        return data

    def drain(self) -> None:
        """Pass over what is left."""
        while self.read(1 << 20):
            pass

    def readable(self) -> bool:
        """Arrow asks."""
        return True

    def check(self, source: str, last: pa.RecordBatch | None) -> None:
        """Refuse a file that ended inside a quote.

        With an even number of quotes, no line break in the last row and no quote in the last line it did not end so.
        Else it is read again, slowly, for the line where the quote began.
        """
        if self._quotes and (self._quotes % 2 or _breaks_lines(last) or b'"' in self._tail.rpartition(b"\n")[2]):
            with self._again() as (stream, _):
                line = unterminated(stream, self._delimiter)
            if line is not None:
                raise TableError(f"{source}: the quote that begins in line {line} does not end")


def _breaks_lines(last: pa.RecordBatch | None) -> bool:
    if last is None or not last.num_rows:
        return False
    cells = [column[last.num_rows - 1].as_py() for column in last.columns]
    return any(isinstance(cell, str) and "\n" in cell for cell in cells)


def unterminated(stream: Any, delimiter: bytes) -> int | None:
    """The line in which a quoted cell begins that never ends, if there is one.

    A quote opens a cell only at its beginning; inside, two quotes are one; anywhere else a quote is a character.
    """
    line, opened, inside = 1, 1, False
    before, closed, done = b"\n", -2, 0
    while data := bytes(stream.read(1 << 20)):
        place = 0
        while (found := data.find(b'"', place)) >= 0:
            line += data.count(b"\n", place, found)
            previous = data[found - 1 : found] if found else before
            if inside:
                inside, closed = False, done + found
            elif closed == done + found - 1:  # the second of two quotes inside a cell
                inside = True
            elif previous in (delimiter, b"\n", b"\r"):
                inside, opened = True, line
            place = found + 1
        line += data.count(b"\n", place)
        before, done = data[-1:], done + len(data)
    return opened if inside else None
