"""How Spark reads files of events: the session, the format of a path, and CSV as one machine reads it."""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from elementdp.errors import ArgumentError, ElementdpError
from elementdp.histogram.errors import TableError
from elementdp.histogram.json_lines import json_names

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".orc": "orc",
}
"""What Spark reads a file as, by its extension."""

_COMPRESSED = (".gz", ".bz2", ".zst")
_SEPARATORS = {"csv": ",", "tsv": "\t"}

WRONG_WIDTH = "a row has more or fewer columns than the header, or a quote that does not end"
"""The name of the column that marks such rows, and the words in which they are refused."""


def session_for(master: str | None) -> "SparkSession":
    """The active session as it is, or a new one that tells no one anything."""
    try:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ElementdpError("Spark is not installed: pip install 'elementdp[spark]'") from error
    if (active := SparkSession.getActiveSession()) is not None:
        if master is not None and master != active.conf.get("spark.master"):
            raise ArgumentError("master", master, f"{active.conf.get('spark.master')}, where the active session runs")
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("elementdp").master(master or "local[*]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    }.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise ElementdpError(
            f"Spark did not start ({error.getCondition()}): it needs Java 17 or newer, by JAVA_HOME or in the PATH"
        ) from None


@dataclass(frozen=True)
class Read:
    """What Spark read: the columns of the table, and its rows.

    Rows of CSV have a last column, ``WRONG_WIDTH``, that marks those to be refused. Of JSON lines Spark reads the lines
    only (``lines``), so that tasks take them apart as one machine does.
    """

    names: tuple[str, ...]
    rows: "DataFrame"
    lines: bool = False


def read_files(session: "SparkSession", paths: Sequence[str], kind: str | None) -> Read:
    """The rows of files, folders and globs."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    source = ", ".join(paths)
    try:
        kind = kind or _kind(session, paths)
        if kind in _SEPARATORS:
            return _delimited(session, list(paths), _SEPARATORS[kind], source)
        if kind == "json":
            return _lines(session, list(paths), source)
        rows = session.read.format(kind).load(list(paths))
        return Read(tuple(rows.columns), rows)
    except (PySparkException, Py4JError) as error:
        raise TableError(f"{source}: {kind_of(error)}") from None


def kind_of(error: Exception) -> str:
    """What Spark calls a failure, without its words, which may quote the table."""
    known = getattr(error, "getCondition", lambda: None)()
    told = re.search(r"Exception: \[([A-Z_.]+)\]", str(error))
    return known or (told[1] if told else type(error).__name__)


def _lines(session: "SparkSession", paths: list[str], source: str) -> Read:
    rows = session.read.text(paths, lineSep="\n").where(r"value rlike '\\S'")
    first = rows.head()
    if first is None:
        raise TableError(f"{source} is empty")
    try:
        names = json_names(first["value"].encode())
    except TableError:
        raise TableError(f"{source}: the first line holds no JSON object") from None  # other words would quote it
    return Read(names, rows, lines=True)


def _kind(session: "SparkSession", paths: Sequence[str]) -> str:
    """The one format of all files, by their names; Spark lists those of a folder."""
    named = {path: _by_name(path) for path in paths}
    unnamed = [path for path, kind in named.items() if kind is None]
    listed = session.read.format("binaryFile").load(unnamed).inputFiles() if unnamed else []
    found = {kind for kind in named.values() if kind is not None} | {_by_name(file) for file in listed}
    if len(found) == 1 and (kind := found.pop()) is not None:
        return kind
    raise ArgumentError(
        "format", None, f"given for {', '.join(paths)}, whose names do not tell one: {', '.join(sorted(FORMATS))}"
    )


def _by_name(path: str) -> str | None:
    name = PurePath(path.rstrip("/*"))
    return FORMATS.get(PurePath(name.stem if name.suffix.lower() in _COMPRESSED else name).suffix.lower())


def _delimited(session: "SparkSession", paths: list[str], separator: str, source: str) -> Read:
    """All cells as text; files whose headers differ are refused by Spark, rows of another width are marked with 1.

    A quote that does not end takes the rest of its file, and so the line break at the end of that, into its cell, or
    makes a row of another width that goes over several lines. It is marked with 2: such a row must not be dropped,
    since it holds the rows of others.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructField, StructType

    reader = session.read.options(
        header=True, sep=separator, multiLine=True, quote='"', escape='"', enforceSchema=False, columnPruning=False
    )
    if not (names := reader.csv(paths).columns):
        raise TableError(f"{source} is empty")
    schema = StructType([StructField(name, StringType()) for name in [*names, WRONG_WIDTH]])
    frame = reader.schema(schema).option("columnNameOfCorruptRecord", WRONG_WIDTH).csv(paths)
    if frame.columns != [*names, WRONG_WIDTH]:
        raise TableError(f"{source}: folders that name a column, as day=1 does, are read with Parquet and ORC only")
    read = numbered(frame)
    *cells, wrong = read.columns
    open_quote = f.coalesce(f.endswith(f.col(cells[-1]), f.lit("\n")), f.lit(False))
    several = f.coalesce(f.contains(f.col(wrong), f.lit("\n")), f.lit(False))
    mark = f.when(open_quote | several, 2).when(f.col(wrong).isNotNull(), 1).otherwise(0)
    marked = read.select(*map(_one_spelling, cells), mark.alias(wrong))
    return Read(tuple(names), marked.toDF(*names, WRONG_WIDTH))


def _one_spelling(name: str) -> "Column":
    """A column of text with whole numbers as integers are written: ``7.0`` is ``7``, as in every other format."""
    from pyspark.sql import functions as f

    plain = f.regexp_replace(f.col(name), r"^(-?[0-9]+)\.0+$", "$1")
    return f.regexp_replace(plain, "^-(0+)$", "$1")


def numbered(frame: "DataFrame") -> "DataFrame":
    """The table with columns c0, c1, …: Spark takes dots and backticks in a name for syntax, and may ignore case."""
    return frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
