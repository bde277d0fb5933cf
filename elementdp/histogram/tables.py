"""Tables of events in batches: files, folders and standard input, data frames and Arrow tables."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from elementdp.histogram.bad_rows import BadRows, RowPolicy
from elementdp.histogram.errors import TableError, at_row
from elementdp.histogram.event_files import form_of
from elementdp.histogram.events import BATCH_ROWS, Batches, Events
from elementdp.histogram.readers import open_files
from elementdp.histogram.text import as_text


def open_events(table: Any, batch_rows: int = BATCH_ROWS, form: str | None = None) -> Events:
    """The events of files (a path, a folder, a pattern, ``-``, or a list of these) or of a table in memory.

    A table in memory is anything with ``__arrow_c_stream__``: pandas, polars, duckdb, Arrow tables, readers, datasets.
    """
    if isinstance(table, str | Path):
        return open_files([table], batch_rows, form)
    if isinstance(table, list | tuple) and table and all(isinstance(one, str | Path) for one in table):
        return open_files(table, batch_rows, form)
    if _is_pandas(table):
        columns = tuple(name for name in table.columns if isinstance(name, str))
        return Events("the table", columns, lambda names, _: _from_pandas(table, names, batch_rows))
    if isinstance(table, pa.dataset.Dataset):
        table = table.scanner(batch_size=batch_rows).to_reader()
    if not hasattr(table, "__arrow_c_stream__"):
        raise TableError(
            "a table is a path, a pandas or polars frame, an Arrow table, reader or dataset, or anything else with "
            f"__arrow_c_stream__, not a {type(table).__name__}"
        )
    rows = table.num_rows if isinstance(table, pa.Table) else 0
    try:
        reader = pa.RecordBatchReader.from_stream(table)
    except pa.ArrowException as error:  # such as a single column, which streams, too
        raise TableError(f"the {type(table).__name__} given is no table with named columns ({error})") from error
    names = tuple(reader.schema.names)
    return Events("the table", names, lambda names, _: _from_stream(reader, names, batch_rows, rows))


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


def read_domain(path: Path, columns: Sequence[str]) -> list[Any]:
    """A public list of items: the lines of a text file, or the columns of a table; tuples if there are several."""
    if form_of(path) is None:
        if len(columns) > 1:
            raise TableError(f"{path}: items of several columns need a table with these columns, such as a .csv")
        try:
            lines = path.read_text(encoding="utf-8-sig").split("\n")  # an item may hold other separators
        except (UnicodeDecodeError, OSError) as error:
            raise TableError(f"{path}: not a text file with one item a line ({error})") from error
        items = [line for line in lines if line.strip()]
    else:
        events = open_events(path)
        batches = list(events.batches([events.need(column) for column in columns], BadRows(RowPolicy())))
        cells = []
        for column in columns:
            cells.append([value or "" for batch, _ in batches for value in as_text(batch.column(column)).to_pylist()])
            if "" in cells[-1]:
                raise at_row(cells[-1].index("") + 1, f"{column!r} is missing in the public list {path}")
        items = cells[0] if len(columns) == 1 else list(zip(*cells, strict=True))
    if not items:
        raise TableError(f"{path} lists no items")
    return items
