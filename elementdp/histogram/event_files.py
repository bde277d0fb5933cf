"""Which files of events a path, a folder, a pattern or standard input means."""

import glob
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from elementdp.errors import ArgumentError
from elementdp.histogram.errors import TableError
from elementdp.histogram.spill import temporary_file

_FORMS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_BEGINNINGS = {"gzip": rb"\x1f\x8b", "zstd": rb"\x28\xb5\x2f\xfd", "bz2": rb"BZh[1-9]1AY&SY"}
"""How compressed content begins: standard input has no name that would tell."""


@dataclass(frozen=True)
class EventFile:
    """One file of events. Standard input can be read once, so its content is in ``copy``, a file without a name."""

    path: Path
    form: str
    compression: str | None
    copy: Any = None

    @property
    def source(self) -> str:
        """What messages call it."""
        return str(self.path) if self.copy is None else "standard input"

    @contextmanager
    def opened(self) -> Iterator[tuple[Any, Callable[[], float]]]:
        """The content, decompressed, and a function that tells the share of the file read so far."""
        with self.path.open("rb") if self.copy is None else os.fdopen(os.dup(self.copy.fileno()), "rb") as raw:
            raw.seek(0)
            size = max(1, os.fstat(raw.fileno()).st_size)
            stream = raw if self.compression is None else pa.CompressedInputStream(raw, self.compression)
            try:
                yield stream, lambda: min(1.0, raw.tell() / size)
            except OSError as error:  # such as a compressed file that was cut off
                raise self.words(error) from error

    def words(self, error: BaseException) -> TableError:
        """What is wrong with this file."""
        return TableError(f"{self.source}: {error}")


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
        return [_standard_input(form)]
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


def _standard_input(form: str) -> EventFile:
    copy = temporary_file()
    shutil.copyfileobj(sys.stdin.buffer, copy)
    if copy.tell() == 0:
        raise TableError("standard input is empty")
    copy.seek(0)
    start = copy.read(10)
    copy.seek(0)
    packed = next((name for name, begins in _BEGINNINGS.items() if re.match(begins, start)), None)
    return EventFile(Path("-"), form, packed, copy)
