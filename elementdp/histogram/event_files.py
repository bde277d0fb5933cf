"""Which files of events a path, a folder, a pattern or standard input means."""

import glob
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from elementdp.errors import ArgumentError
from elementdp.histogram.errors import TableError

_FORMS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


@dataclass(frozen=True)
class EventFile:
    """One file of events: ``-`` is standard input."""

    path: Path
    form: str
    compression: str | None

    @contextmanager
    def opened(self) -> Iterator[tuple[Any, Callable[[], float]]]:
        """The content, decompressed, and a function that tells the share of the file read so far."""
        if str(self.path) == "-":
            yield pa.PythonFile(sys.stdin.buffer, mode="r"), lambda: 0.0
            return
        with self.path.open("rb") as raw:
            size = max(1, self.path.stat().st_size)
            stream = raw if self.compression is None else pa.CompressedInputStream(raw, self.compression)
            try:
                yield stream, lambda: min(1.0, raw.tell() / size)
            except OSError as error:  # such as a compressed file that was cut off
                raise self.words(error) from error

    def words(self, error: BaseException) -> TableError:
        """What is wrong with this file."""
        return TableError(f"{self.path}: {error}")


def form_of(path: Path) -> str | None:
    """The format that a file's name tells, below a compression."""
    stem = path.with_suffix("") if path.suffix.lower() in _COMPRESSIONS else path
    return _FORMS.get(stem.suffix.lower())


def files_of_table(table: str | Path, form: str | None) -> list[EventFile]:
    """The files that a path, a folder, a pattern or ``-`` means, in the order of their names."""
    path = Path(table)
    if str(path) == "-":
        if form is None:
            raise ArgumentError("format", form, "given for standard input: csv, tsv, jsonl or parquet")
        return [EventFile(path, form, None)]
    if path.is_dir():
        inside = sorted(one for one in path.rglob("*") if one.is_file() and (form or form_of(one)))
        paths = [one for one in inside if not one.name.startswith((".", "_"))]
        if not paths:
            raise TableError(f"{path}: a folder without a file of events ({', '.join(_FORMS)})")
    elif path.exists() or not glob.has_magic(str(table)):
        paths = [path]
    else:
        paths = sorted(Path(one) for one in glob.glob(str(table), recursive=True))  # noqa: PTH207 (absolute patterns)
        if not paths:
            raise TableError(f"{table}: no file matches")
    return [_event_file(one, form) for one in paths]


def _event_file(path: Path, form: str | None) -> EventFile:
    found = form or form_of(path)
    if found is None:
        known = ", ".join(_FORMS)
        raise TableError(f"{path}: unknown extension {path.suffix!r}; known are {known}, each also with .gz or .zst")
    if not path.is_file():
        raise TableError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    return EventFile(path, found, _COMPRESSIONS.get(path.suffix.lower()))
