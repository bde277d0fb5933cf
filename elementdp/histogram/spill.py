"""Numbers on disk, parted by key, so that a group-by needs memory for one part and not for the table.

All parts share one file without a name (it is unlinked as it is made), so the operating system removes it whatever
happens, and a release needs few open files however many parts there are.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elementdp.errors import ElementdpError

_BITS = (8, 4, 4, 4)
"""Bits of the key that choose a part, level by level. What is larger than a part after all is one key's own."""

PART_BYTES = 1 << 23

Rows = tuple[NDArray[Any], ...]
"""Columns of the same length; the first is the key."""


def temporary_folder() -> str:
    """The folder that TMPDIR names, full or not; if it names none, that is said, and no other is taken instead."""
    chosen = os.environ.get("TMPDIR")
    if chosen and not os.path.isdir(chosen):  # noqa: PTH112 (tempfile would silently take another folder)
        raise ElementdpError(f"TMPDIR is {chosen!r}, which is not a folder: temporary files would go elsewhere")
    return chosen or tempfile.gettempdir()


def temporary_file() -> Any:
    """A file without a name in the folder for temporary files."""
    return tempfile.TemporaryFile(dir=temporary_folder())


class Spill:
    """Rows of numbers by their key; a part holds all the rows of its keys.

    ``squeeze`` adds up rows that belong together (its result may have other columns, but the same key).
    """

    def __init__(
        self, types: Sequence[str], squeeze: Callable[[Rows], Rows], *, part_bytes: int = PART_BYTES, level: int = 0
    ) -> None:
        self.types = tuple(np.dtype(name) for name in types)
        self.squeeze, self.part_bytes, self.level, self.rows = squeeze, part_bytes, level, 0
        self._file = temporary_file()
        self._end = 0
        self._written: list[tuple[list[int], NDArray[np.int64]]] = []  # where each column begins, and each part in it

    def __enter__(self) -> "Spill":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def row_bytes(self) -> int:
        """The size of a row."""
        return sum(kind.itemsize for kind in self.types)

    def sorted(self, rows: Rows) -> tuple[Rows, NDArray[np.int64]]:
        """Rows in the order of their parts, and where each part begins: all of the work that is not writing."""
        fanout = 1 << _BITS[self.level]
        shift = np.uint64(64 - sum(_BITS[: self.level + 1]))
        part = ((rows[0] >> shift) & np.uint64(fanout - 1)).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        bounds = np.r_[0, np.cumsum(np.bincount(part, minlength=fanout))]
        return tuple(np.ascontiguousarray(column[order]) for column in rows), bounds

    def write(self, rows: Rows, bounds: NDArray[np.int64]) -> None:
        """Append rows that :meth:`sorted` has put in order."""
        begins = []
        for column, kind in zip(rows, self.types, strict=True):
            content = column.astype(kind, copy=False).tobytes()
            begins.append(self._end)
            _write_all(self._file.fileno(), content, self._end)
            self._end += len(content)
        self._written.append((begins, bounds))
        self.rows += len(rows[0])

    def add(self, *rows: NDArray[Any]) -> None:
        """Append rows, each to the part of its key."""
        self.write(*self.sorted(rows))

    def parts(self, aside: Callable[[Rows], None] | None = None) -> Iterator[Rows]:
        """Every part in turn; small ones are handed over together.

        What is larger than a part after all goes to ``aside``, if given, some rows at a time, and is left out here.
        """
        held: list[Rows] = []
        room = self.part_bytes
        sizes = sum((np.diff(bounds) for _, bounds in self._written), np.zeros(1 << _BITS[self.level], np.int64))
        for part in np.flatnonzero(sizes).tolist():
            size = int(sizes[part]) * self.row_bytes
            if size > self.part_bytes and self.level < len(_BITS) - 1:
                yield from self._finer(part, aside)
                continue
            if size > self.part_bytes and aside is not None:
                for rows in self._runs(part):
                    aside(rows)
                continue
            if size > room and held:
                yield _joined(held)
                held, room = [], self.part_bytes
            held.append(_joined(list(self._runs(part))))
            room -= size
        if held:
            yield _joined(held)

    def _finer(self, part: int, aside: Callable[[Rows], None] | None) -> Iterator[Rows]:
        """A part too large for memory, parted again; what a key has many times is added up on the way."""
        types = [column.dtype.str for column in self.squeeze(tuple(np.empty(0, kind) for kind in self.types))]
        with Spill(types, self.squeeze, part_bytes=self.part_bytes, level=self.level + 1) as finer:
            for rows in self._runs(part):
                finer.add(*self.squeeze(rows))
            yield from finer.parts(aside)

    def _runs(self, part: int) -> Iterator[Rows]:
        for begins, bounds in self._written:
            first, last = int(bounds[part]), int(bounds[part + 1])
            if last > first:
                yield tuple(
                    np.frombuffer(
                        os.pread(self._file.fileno(), (last - first) * kind.itemsize, begin + first * kind.itemsize),
                        kind,
                    )
                    for begin, kind in zip(begins, self.types, strict=True)
                )


class Sequential:
    """Rows of numbers on disk, read back in the pieces in which they were written."""

    def __init__(self, types: Sequence[str]) -> None:
        self.types = tuple(np.dtype(name) for name in types)
        self.rows = 0
        self._file = temporary_file()
        self._end = 0
        self._pieces: list[tuple[int, int]] = []

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()

    def add(self, *rows: NDArray[Any]) -> None:
        """Append a piece."""
        content = b"".join(column.astype(kind).tobytes() for column, kind in zip(rows, self.types, strict=True))
        _write_all(self._file.fileno(), content, self._end)
        self._pieces.append((self._end, len(rows[0])))
        self._end += len(content)
        self.rows += len(rows[0])

    def __len__(self) -> int:
        return len(self._pieces)

    def piece(self, number: int) -> Rows:
        """One piece; pieces may be read from several threads at once."""
        begin, rows = self._pieces[number]
        content = os.pread(self._file.fileno(), rows * sum(kind.itemsize for kind in self.types), begin)
        columns, place = [], 0
        for kind in self.types:
            columns.append(np.frombuffer(content, kind, rows, place))
            place += rows * kind.itemsize
        return tuple(columns)


def _joined(pieces: list[Rows]) -> Rows:
    return pieces[0] if len(pieces) == 1 else tuple(map(np.concatenate, zip(*pieces, strict=True)))


def _write_all(handle: int, content: bytes, place: int) -> None:
    """Write at a place of a file; a full disk is an error and not half a write."""
    left = memoryview(content)
    while left:
        written = os.pwrite(handle, left, place)
        left, place = left[written:], place + written
