"""Tables of events in batches: CSV, TSV, JSON lines and Parquet files, pandas frames and Arrow tables."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

from elementdp.histogram.errors import TableError, at_row
from elementdp.histogram.text import as_text, whole_number

BATCH_ROWS = 1 << 17
_BLOCK_BYTES = 1 << 23

Batches = Iterator[tuple[pa.RecordBatch, float]]
"""Batches of the columns asked for, each with the share of the table read so far."""


@dataclass(frozen=True)
class Events:
    """A table of events: its column names, and its rows in batches, as often as asked."""

    source: str
    names: tuple[str, ...]
    batches: Callable[[Sequence[str]], Batches]

    def need(self, column: str) -> str:
        """``column``, if the table has it, and once."""
        if (found := self.names.count(column)) != 1:
            problem = f"no column {column!r}" if not found else f"{found} columns {column!r}"
            raise TableError(f"{self.source} has {problem}; its columns are {', '.join(map(repr, self.names))}")
        return column


def open_events(table: Any, batch_rows: int = BATCH_ROWS) -> Events:
    """The events of a file (by its extension) or of a table in memory: anything with ``__arrow_c_stream__``."""
    if isinstance(table, str | Path):
        return _open_file(Path(table), batch_rows)
    if _is_pandas(table):
        columns = tuple(name for name in table.columns if isinstance(name, str))
        return Events("the table", columns, lambda names: _from_pandas(table, names, batch_rows))
    if isinstance(table, pa.dataset.Dataset):
        table = table.scanner(batch_size=batch_rows).to_reader()
    if not hasattr(table, "__arrow_c_stream__"):
        raise TableError(
            "a table is a path, a pandas or polars frame, an Arrow table, reader or dataset, or anything else with "
            f"__arrow_c_stream__, not a {type(table).__name__}"
        )
    rows = table.num_rows if isinstance(table, pa.Table) else 0
    reader = pa.RecordBatchReader.from_stream(table)
    return Events("the table", tuple(reader.schema.names), lambda names: _from_stream(reader, names, batch_rows, rows))


def _open_file(path: Path, batch_rows: int) -> Events:
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise TableError(f"{path}: unknown extension {path.suffix!r}; known are {', '.join(READERS)}")
    if not path.is_file():
        raise TableError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    return reader(path, batch_rows)


def _is_pandas(table: Any) -> bool:
    """Whether this is a pandas frame; without pandas loaded nothing is one."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(table, pandas.DataFrame)


def _from_stream(reader: Any, names: Sequence[str], batch_rows: int, rows: int) -> Batches:
    """The batches of a stream, which can be read once; the share done is known if the number of rows is."""
    done = 0
    try:
        for whole in reader:
            batch = whole.select(list(names))
            for start in range(0, batch.num_rows, batch_rows):
                part = batch.slice(start, batch_rows)
                done += part.num_rows
                yield part, done / rows if rows else 0.0
    except pa.ArrowException as error:
        raise TableError(f"the table cannot be read ({error})") from error


def _from_pandas(table: Any, names: Sequence[str], batch_rows: int) -> Batches:
    """A frame row range by row range: columns of mixed objects and of several chunks come too."""
    chosen = table[list(names)]
    for start in range(0, len(chosen), batch_rows):
        rows = chosen.iloc[start : start + batch_rows]
        try:
            whole = pa.Table.from_pandas(rows, preserve_index=False).combine_chunks()
        except pa.ArrowException as error:
            raise TableError(f"rows {start + 1} to {start + len(rows)}: {error}") from error
        for batch in whole.to_batches():
            yield batch, (start + len(rows)) / len(chosen)


def _parquet(path: Path, batch_rows: int) -> Events:
    try:
        names = tuple(pa.parquet.read_schema(path).names)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{path}: not a Parquet file ({error})") from error

    def batches(columns: Sequence[str]) -> Batches:
        try:
            with pa.parquet.ParquetFile(path) as file:
                done = 0
                for group in range(file.num_row_groups):  # one at a time: asked for all, Arrow keeps what it has read
                    for batch in file.iter_batches(batch_rows, row_groups=[group], columns=list(columns)):
                        done += batch.num_rows
                        yield batch, done / file.metadata.num_rows
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{path}: {error}") from error

    return Events(str(path), names, batches)


def _delimited(delimiter: str) -> Callable[[Path, int], Events]:
    def events(path: Path, batch_rows: int) -> Events:
        def reader(file: Any, columns: Sequence[str] | None) -> Any:
            return pa.csv.open_csv(
                file,
                pa.csv.ReadOptions(use_threads=False, block_size=min(_BLOCK_BYTES, 64 * batch_rows)),
                pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                pa.csv.ConvertOptions(
                    include_columns=columns,
                    column_types={name: pa.string() for name in columns or ()},
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )

        try:
            with path.open("rb") as file:
                names = tuple(reader(file, None).schema.names)
        except pa.ArrowException as error:
            raise TableError(f"{path}: {error}") from error

        def batches(columns: Sequence[str]) -> Batches:
            try:
                with path.open("rb") as file:
                    for batch in reader(file, columns):
                        yield batch, file.tell() / path.stat().st_size
            except pa.ArrowException as error:
                raise TableError(f"{path}: {error}") from error

        return Events(str(path), names, batches)

    return events


def _json_lines(path: Path, batch_rows: int) -> Events:
    def rows() -> Iterator[tuple[dict[str, Any], int]]:
        row = position = 0
        with path.open("rb") as file:
            for line in file:
                position += len(line)
                if not line.strip():
                    continue
                row += 1
                try:
                    value = json.loads(line.decode("utf-8-sig" if row == 1 else "utf-8"))
                except ValueError as error:
                    raise at_row(row, f"not a line of JSON ({error})", "not a line of JSON") from error
                if not isinstance(value, dict):
                    raise at_row(row, f"a JSON object was expected, not {line[:40]!r}", "not a JSON object")
                yield value, position

    def batches(columns: Sequence[str]) -> Batches:
        held: list[list[Any]] = []
        size = path.stat().st_size
        position = 0

        def batch() -> pa.RecordBatch:
            try:
                return pa.record_batch([list(column) for column in zip(*held, strict=True)], names=list(columns))
            except UnicodeEncodeError as error:  # JSON can spell half a character
                raise TableError(f"rows {row - len(held) + 1} to {row}: not text ({error})") from error

        row = 0
        for row, (value, position) in enumerate(rows(), start=1):
            cells = [value.get(name) for name in columns]
            for name, cell in zip(columns, cells, strict=True):
                if isinstance(cell, bool | list | dict):
                    kind = f"{name!r} must be a string or a number"
                    raise at_row(row, f"{kind}, got {cell!r}", kind)
            held.append([None if cell is None or cell != cell else whole_number(cell) or str(cell) for cell in cells])
            if len(held) == batch_rows:
                yield batch(), position / size
                held = []
        if held:
            yield batch(), position / size

    first = next(rows(), None)
    if first is None:
        raise TableError(f"{path} is empty")
    return Events(str(path), tuple(first[0]), batches)


READERS: dict[str, Callable[[Path, int], Events]] = {
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".parquet": _parquet,
}


def read_domain(path: Path, column: str) -> list[str]:
    """A public list of items: the lines of a text file, or one column of a table."""
    if path.suffix.lower() not in READERS:
        try:
            lines = path.read_text(encoding="utf-8-sig").split("\n")  # an item may hold other separators
        except (UnicodeDecodeError, OSError) as error:
            raise TableError(f"{path}: not a text file with one item a line ({error})") from error
        items = [line for line in lines if line.strip()]
    else:
        events = open_events(path)
        names = [events.need(column)]
        items = [value or "" for batch, _ in events.batches(names) for value in as_text(batch.column(0)).to_pylist()]
        if "" in items:
            raise at_row(items.index("") + 1, f"{column!r} is missing in the public list {path}")
    if not items:
        raise TableError(f"{path} lists no items")
    return items
