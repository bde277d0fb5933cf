"""How each format of events is read in batches."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from elementdp.histogram.bad_rows import BadRows
from elementdp.histogram.errors import TableError
from elementdp.histogram.event_files import EventFile, files_of_table
from elementdp.histogram.events import Batches, Events
from elementdp.histogram.json_lines import json_lines
from elementdp.histogram.quotes import QuoteWatch
from elementdp.histogram.utf8 import SUBSTITUTE, Utf8Stream

_BLOCK_BYTES = 1 << 23
_FEW_BYTES = 4


def open_files(tables: Sequence[str | Path], batch_rows: int, form: str | None) -> Events:
    """The events of all these files, one after the other; they must have the same columns."""
    files = [file for table in tables for file in files_of_table(table, form)]
    readers = [READERS[file.form](file, batch_rows) for file in files]
    first = readers[0]
    for reader in readers[1:]:
        if set(reader.names) != set(first.names):
            raise TableError(
                f"{reader.source} has other columns than {first.source}: {', '.join(map(repr, reader.names))}"
            )
    if len(readers) == 1:
        return first

    def batches(columns: Sequence[str], bad: BadRows) -> Batches:
        for done, reader in enumerate(readers):
            for batch, share in reader.batches(columns, bad):
                yield batch, (done + share) / len(readers)

    return Events(f"{len(files)} files from {first.source} on", first.names, batches)


def _parquet(file: EventFile, batch_rows: int) -> Events:
    source: Any = str(file.path) if file.copy is None else file.copy
    if file.compression is not None:
        raise TableError(f"{file.source}: Parquet is compressed inside; decompress the file first")
    try:
        parquet = pa.parquet.ParquetFile(source)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{file.source}: not a Parquet file ({error})") from error
    names = tuple(parquet.schema_arrow.names)
    leaves = [parquet.schema.column(place) for place in range(len(parquet.schema))]
    instants = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}

    def batches(columns: Sequence[str], bad: BadRows) -> Batches:
        try:
            with pa.parquet.ParquetFile(
                source, read_dictionary=_repeating(source, columns), coerce_int96_timestamp_unit="us"
            ) as parquet:
                done = 0
                for group in range(parquet.num_row_groups):  # asked for all at once, Arrow keeps what it has read
                    for batch in parquet.iter_batches(batch_rows, row_groups=[group], columns=list(columns)):
                        done += batch.num_rows
                        yield _zoned(batch, instants), done / parquet.metadata.num_rows
        except (pa.ArrowException, OSError) as error:
            raise file.words(error) from error

    return Events(file.source, names, batches)


def _zoned(batch: pa.RecordBatch, instants: set[str]) -> pa.RecordBatch:
    """The batch with a zone in the columns ``instants``: Spark writes instants in UTC in a type that knows no zone."""
    zone = pa.timestamp("us", "UTC")
    columns = zip(batch.schema.names, batch.columns, strict=True)
    zoned = [column.view(zone) if name in instants else column for name, column in columns]
    return pa.record_batch(zoned, names=batch.schema.names)


def _repeating(source: Any, columns: Sequence[str]) -> list[str]:
    """The columns that take few bytes a value, so they are stored by a dictionary; others are read faster plain."""
    metadata = pa.parquet.read_metadata(source)
    if not metadata.num_row_groups:
        return list(columns)
    group = metadata.row_group(0)
    chunks = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    known = [name for name in columns if name in chunks]
    return [name for name in known if chunks[name].total_uncompressed_size <= _FEW_BYTES * chunks[name].num_values]


def _delimited(delimiter: str) -> Callable[[EventFile, int], Events]:
    def events(file: EventFile, batch_rows: int) -> Events:
        parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        read = pa.csv.ReadOptions(block_size=min(_BLOCK_BYTES, 64 * batch_rows))
        try:
            with file.opened() as (stream, _):
                names = _header(stream, read, delimiter)
        except (pa.ArrowException, OSError) as error:
            raise file.words(error) from error

        def batches(columns: Sequence[str], bad: BadRows) -> Batches:
            with file.opened() as (stream, share):
                watch = QuoteWatch(stream if bad.refused else Utf8Stream(stream), delimiter, file.opened)
                yield from _csv_batches(file, watch, read, parse, columns, bad, share)

        return Events(file.source, names, batches)

    return events


def _header(stream: Any, read: Any, delimiter: str) -> tuple[str, ...]:
    """The names of the columns, whatever is wrong with the rows."""
    parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=lambda row: "skip")
    return tuple(pa.csv.open_csv(Utf8Stream(stream), read, parse).schema.names)


def _csv_batches(
    file: EventFile,
    watch: QuoteWatch,
    read: Any,
    parse: Any,
    columns: Sequence[str],
    bad: BadRows,
    share: Callable[[], float],
) -> Batches:
    """The columns as dictionaries of text, numbers in one spelling; a file that ends inside a quote is refused."""

    def wrong_width(row: Any) -> str:
        bad.found(row.number or 0, f"{row.actual_columns} columns where {row.expected_columns} were expected")
        return "skip"

    if not bad.refused:
        parse = pa.csv.ParseOptions(delimiter=parse.delimiter, newlines_in_values=True, invalid_row_handler=wrong_width)
    text = pa.dictionary(pa.int32(), pa.string())
    convert = pa.csv.ConvertOptions(
        include_columns=list(columns),
        column_types=dict.fromkeys(columns, text),
        null_values=[""],
        strings_can_be_null=True,
    )
    last = None
    try:
        for batch in pa.csv.open_csv(watch, read, parse, convert):
            last = batch
            read_columns = batch.columns if bad.refused else map(_without_broken, batch.columns)
            yield pa.record_batch(list(map(_one_spelling, read_columns)), names=batch.schema.names), share()
    except pa.ArrowException as error:
        watch.drain()
        watch.check(file.source, last)
        raise file.words(error) from error
    watch.check(file.source, last)


def _one_spelling(column: Any) -> Any:
    """A whole number as integers are written: ``7.0`` is ``7``, as in every other format."""
    texts = column.dictionary
    if not pa.compute.any(pa.compute.ends_with(texts, "0")).as_py():
        return column
    texts = pa.compute.replace_substring_regex(texts, r"^(-?[0-9]+)\.0+$", r"\1")
    texts = pa.compute.replace_substring_regex(texts, r"^-(0+)$", r"\1")
    return pa.DictionaryArray.from_arrays(column.indices, texts)


def _without_broken(column: Any) -> Any:
    """Cells that were not UTF-8 are missing, so that their rows are dropped."""
    broken = pa.compute.match_substring(column.dictionary, SUBSTITUTE)
    texts = pa.compute.if_else(broken, pa.scalar(None, pa.string()), column.dictionary)
    return pa.DictionaryArray.from_arrays(column.indices, texts)


READERS: dict[str, Callable[[EventFile, int], Events]] = {
    "csv": _delimited(","),
    "tsv": _delimited("\t"),
    "jsonl": json_lines,
    "parquet": _parquet,
}
