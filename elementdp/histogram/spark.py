"""The engine for tables larger than one machine: Spark groups and adds up, and the driver draws the noise.

A task turns its rows into (group, item, units), adds up what is equal, and sends each group to the one task that holds
all of it: one shuffle, by the group's key. That task projects whole groups with the code of this machine's engine, and
whole numbers by item travel back. A retry, a speculative copy or another number of partitions cannot change a sum, and
the sums are those of :class:`~elementdp.histogram.local.LocalEngine`, item for item.

No noise is drawn in a task: a lazily noisy table would show another draw to each action that reads it. Discovery, too,
draws its noise on the driver, which sees the candidates one bundle at a time and keeps those above the threshold only.

Tasks say nothing of the data. What is wrong with a row reaches the driver as words that quote nothing, and the driver
refuses the table; any other failure of a task is told by the name of its kind alone.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elementdp import __version__
from elementdp.errors import ArgumentError, ElementdpError, at_least, one_of
from elementdp.histogram.bad_rows import BadRows, RowPolicy
from elementdp.histogram.element_rule import ElementRule
from elementdp.histogram.engine import Columns, Measure
from elementdp.histogram.errors import TableError
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.items import ItemList
from elementdp.histogram.naming import Naming
from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import GroupCounts, pair_sums
from elementdp.histogram.rows import ReadRows, RowReader, columns_read, measured

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Batches]

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".orc": "orc",
}
"""What Spark reads a path as, by its extension."""

_HELD_ROWS = 1 << 17
"""Rows a task puts together before it works on them."""

_OVERFLOW = "the counts of one user and item add up to more than 64 bits hold"


class TaskError(Exception):
    """A task failed; what it saw stays with it."""


def is_spark_frame(table: object) -> bool:
    """Whether a table is a DataFrame of Spark's, without importing Spark to find out."""
    return type(table).__module__.startswith("pyspark.sql") and hasattr(table, "mapInArrow")


@dataclass(frozen=True)
class SparkEngine:
    """Spark: memory holds, in each task, a bundle of rows and the largest group; on the driver, the items.

    Args:
        session: a SparkSession of one's own. Without one, a session is made (or the active one is used).
        master: where a new session runs: ``local[*]``, this machine's processors, unless another is named.
        format: what paths are read as (one of csv, tsv, json, parquet, orc); by their extension if not given.
        partitions: into how many parts the groups go; Spark's own setting if not given.
    """

    session: "SparkSession | None" = None
    master: str | None = None
    format: str | None = None
    partitions: int | None = None

    def __post_init__(self) -> None:
        if self.session is not None and self.master is not None:
            raise ArgumentError("master", self.master, "left to the session that was given")
        if self.format is not None:
            one_of("format", self.format, sorted(set(FORMATS.values())))
        if self.partitions is not None:
            at_least("partitions", self.partitions, 1)

    def open(self, table: object) -> "SparkSource":
        """A DataFrame of Spark's, or a file, folder or glob that Spark can read."""
        if is_spark_frame(table):
            frame: Any = table
            return SparkSource("the table", frame, self)
        if not isinstance(table, str | Path):
            raise TableError(f"Spark reads a path or a Spark DataFrame, not a {type(table).__name__}")
        return SparkSource(str(table), self._read(str(table)), self)

    def _read(self, path: str) -> "DataFrame":
        kind = self.format or FORMATS.get(Path(path.rstrip("/*")).suffix.lower())
        if kind is None:
            raise ArgumentError(
                "format", self.format, f"given for {path}: one of {', '.join(sorted(FORMATS.values()))}"
            )
        reader = _session(self).read
        from pyspark.errors import PySparkException

        try:
            if kind in ("csv", "tsv"):
                separator = "," if kind == "csv" else "\t"
                frame = reader.csv(path, header=True, sep=separator, multiLine=True, quote='"', escape='"')
                return frame.select(*(_one_spelling(name) for name in frame.columns))
            return reader.format(kind).load(path)
        except PySparkException as error:
            raise TableError(f"{path}: {error.getCondition() or type(error).__name__}") from None


def _one_spelling(name: str) -> "Column":
    """A column of text with whole numbers as integers are written: ``7.0`` is ``7``, as in every other format."""
    from pyspark.sql import functions as f

    plain = f.regexp_replace(f.col(f"`{name}`"), r"^(-?[0-9]+)\.0+$", "$1")
    return f.regexp_replace(plain, "^-(0+)$", "$1").alias(name)


def _session(engine: SparkEngine) -> "SparkSession":
    """The session given, the active one, or a new one that tells no one anything."""
    if engine.session is not None:
        return engine.session
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ElementdpError("Spark is not installed: pip install 'elementdp[spark]'") from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("elementdp").master(engine.master or "local[*]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@dataclass(frozen=True)
class SparkSource:
    """A table that Spark reads."""

    source: str
    frame: "DataFrame"
    engine: SparkEngine

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table."""
        return tuple(self.frame.columns)

    @contextmanager
    def grouped(
        self, columns: Columns, rule: ElementRule, items: ItemList | None, policy: RowPolicy, hashing: ItemHash
    ) -> Iterator["SparkGroups"]:
        """The events by group, kept by Spark for as long as the context lasts."""
        from pyspark import StorageLevel
        from pyspark.sql import functions as f

        names = columns_read(columns, rule)
        for name in names:
            if self.names.count(name) != 1:
                raise TableError(f"{self.source} has no column {name!r}, or more than one; it has {self.names}")
        item = "string" if items is None else "long"
        numbers = ", ".join(f"{name} long" for name in _numbers(columns))
        schema = f"key long, item {item}, {numbers}, problem string"
        task = _reading(columns, rule, items, replace(policy, tell=_no_one), hashing)
        read = self.frame.select(*(f.col(f"`{name}`") for name in names)).mapInArrow(task, schema)
        parted = read.repartition(self.engine.partitions, "key") if self.engine.partitions else read.repartition("key")
        kept = parted.sortWithinPartitions("key", "item").persist(StorageLevel.DISK_ONLY)
        try:
            self._refuse_problems(kept)
            yield SparkGroups(kept.drop("problem"), hashing)
        finally:
            kept.unpersist()

    def _refuse_problems(self, kept: "DataFrame") -> None:
        """Raise what the tasks found wrong, and what only whole groups can show."""
        from pyspark.sql import functions as f

        with _told_by_kind():
            found = kept.where("problem is not null").select("problem").distinct().collect()
            if found:
                raise TableError(f"{self.source}: {'; '.join(sorted(row['problem'] for row in found))}")
            # The rows of a group are together and sorted already, so this shuffles nothing.
            pairs = kept.groupBy("key", "item").agg(f.try_sum("whole").alias("whole"))
            counts = pairs.agg(f.count("*").alias("pairs"), f.count("whole").alias("fitting")).collect()[0]
        if not counts["pairs"]:
            raise TableError(f"{self.source} has no events")
        if counts["fitting"] < counts["pairs"]:
            raise TableError(f"{self.source}: {_OVERFLOW}")


@dataclass(frozen=True)
class SparkGroups:
    """Counts by (group, item), whole groups in each partition, sorted by group."""

    frame: "DataFrame"
    hashing: ItemHash

    def item_texts(self, items: NDArray[Any]) -> list[str]:
        """Items are known by their texts."""
        return list(items.tolist())

    def item_weights(self, naming: Naming) -> Iterator[tuple[NDArray[Any], Integers]]:
        """The items that groups name and their weights, a bundle at a time."""
        from pyspark.sql import functions as f

        hashing = self.hashing

        def named(batches: Batches) -> Batches:
            for part in _whole_groups(batches):
                words = part.column("item").unique()
                order = np.argsort(hashes := hashing.of(words))
                named, given = naming.weights(_groups(part, hashing))
                texts = words.take(pa.array(order[np.searchsorted(hashes[order], named)]))
                yield pa.record_batch([texts, pa.array(given)], names=["item", "units"])

        weights = self.frame.mapInArrow(_quiet(named), "item string, units long")
        sums = weights.groupBy("item").agg(f.try_sum("units").alias("units"))
        with _told_by_kind():
            for row in sums.mapInArrow(_quiet(_bundled), "bundle binary").toLocalIterator():
                bundle = pa.ipc.open_stream(row["bundle"]).read_all()
                texts = bundle.column("item").to_numpy()
                yield texts.astype(object), _without_overflow(bundle.column("units"))

    def add_up(self, measure: Measure, items: ItemList, alone: NDArray[np.bool_], stage: str) -> Integers:
        """The sum of ``measure`` over all groups: each task adds up its own, Spark adds up the tasks'."""
        from pyspark.sql import functions as f

        hashing = self.hashing

        def summed(batches: Batches) -> Batches:
            total = measure(GroupCounts.none())
            for part in _whole_groups(batches):
                groups = _groups(part, hashing)
                listed = pa.types.is_integer(part.column("item").type)
                places = groups.items if listed else items.places_of_hashes(groups.items.view(np.uint64), hashing)
                total = total + measured(groups, measure, places, alone)
            places = np.flatnonzero(total)
            yield pa.record_batch([pa.array(places), pa.array(total[places])], names=["place", "units"])

        with _told_by_kind():
            tasks = self.frame.mapInArrow(_quiet(summed), "place long, units long")
            sums = tasks.groupBy("place").agg(f.try_sum("units").alias("units")).toArrow()
        total = measure(GroupCounts.none())
        total[sums.column("place").to_numpy()] = _without_overflow(sums.column("units"))
        return total


def _numbers(columns: Columns) -> tuple[str, ...]:
    """The numbers of a row beside its group and item."""
    return ("whole", "fraction") if columns.value is None else ("whole", "fraction", "value")


def _no_one(rows: int) -> None:
    """A task has no one to tell how many rows it dropped."""


def _reading(columns: Columns, rule: ElementRule, items: ItemList | None, policy: RowPolicy, hashing: ItemHash) -> Task:
    """The task that reads rows; what is wrong with one is a row of its own, with nothing but the problem."""
    expected = versions()
    item_type = pa.string() if items is None else pa.int64()
    numbers = [(name, pa.int64()) for name in _numbers(columns)]
    schema = pa.schema([("key", pa.int64()), ("item", item_type), *numbers, ("problem", pa.string())])

    def refused(problem: str) -> pa.RecordBatch:
        return pa.record_batch([[0], pa.nulls(1, item_type), *([0] for _ in numbers), [problem]], schema=schema)

    def read(batches: Batches) -> Batches:
        here = versions()
        if here != expected:
            yield refused(f"a worker has {_listed(here)} where the driver has {_listed(expected)}")
            return
        reader = RowReader(columns, rule, items, BadRows(policy), hashing)
        for table in _bundles(batches):
            try:
                rows = reader.rows(table)
            except ElementdpError as error:
                yield refused(getattr(error, "kind", "an item has no element that is a str, an int or bytes"))
                return
            yield _added_up(rows, schema, as_text=items is None)

    return _quiet(read)


def _added_up(rows: ReadRows, schema: pa.Schema, *, as_text: bool) -> pa.RecordBatch:
    """Rows of the same (key, item) as one, so that a busy group sends few rows."""
    keys, hashes, *sums = pair_sums((rows.keys, rows.items, *rows.counts))
    items = pa.array(hashes.view(np.int64))
    if as_text:
        order = np.argsort(rows.hashes)
        items = rows.texts.take(pa.array(order[np.searchsorted(rows.hashes[order], hashes)]))
    columns = [pa.array(keys.view(np.int64)), items, *map(pa.array, sums)]
    return pa.record_batch([*columns, pa.nulls(len(keys), pa.string())], schema=schema)


def _groups(part: pa.Table, hashing: ItemHash) -> GroupCounts:
    """The counts of a part with whole groups; items by their places, or by the hashes of their texts."""
    item = part.column("item").combine_chunks()
    if pa.types.is_integer(item.type):
        items = item.to_numpy()
    else:
        encoded = item.dictionary_encode()
        items = hashing.of(encoded.dictionary)[encoded.indices.to_numpy()].view(np.int64)
    keys, *numbers = (part.column(name).to_numpy() for name in part.column_names if name != "item")
    return GroupCounts.of(keys, items, *numbers)


def _bundles(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The batches of a task, put together up to a size."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _HELD_ROWS:
            yield _joined(held)
            held, rows = [], 0
    if rows:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()
    if len(whole) > 1:  # Arrow leaves texts apart that its 32-bit offsets cannot reach
        raise TableError("the texts of some rows that are put together take more than 2 GiB")
    return whole[0]


def _whole_groups(batches: Batches) -> Iterator[pa.Table]:
    """The rows of a partition sorted by key, in parts that no group straddles; keys are unsigned again."""
    rest: pa.RecordBatch | None = None
    for batch in _bundles(batches):
        rows = batch if rest is None else _joined([rest, batch])
        keys = rows.column("key").to_numpy()
        cut = int(np.searchsorted(keys, keys[-1]))  # the last group may go on in the next batch
        if cut:
            yield _unsigned(rows.slice(0, cut))
        rest = rows.slice(cut)
    if rest is not None and rest.num_rows:
        yield _unsigned(rest)


def _unsigned(rows: pa.RecordBatch) -> pa.Table:
    table = pa.Table.from_batches([rows])
    keys = pa.array(rows.column("key").to_numpy().view(np.uint64))
    return table.set_column(0, "key", keys)


def _bundled(batches: Batches) -> Batches:
    """Rows in bundles of Arrow's own format: the driver reads them a thousand times faster than rows."""
    for rows in _bundles(batches):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_batch(rows)
        yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["bundle"])


def _without_overflow(sums: pa.ChunkedArray) -> Integers:
    """Sums as numbers; Spark gives null for one that 64 bits do not hold."""
    if sums.null_count:
        raise TableError("the table has more groups than 64-bit sums can hold")
    return np.asarray(sums.to_numpy(), dtype=np.int64)


def versions() -> dict[str, str]:
    """What driver and workers must share, or the same row could be two elements."""
    return {"elementdp": __version__, "pyarrow": pa.__version__, "publicsuffixlist": version("publicsuffixlist")}


def _listed(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in found.items())


def _quiet(task: Task) -> Task:
    """A task whose failures reach Spark's logs without a word of the data."""

    def run(batches: Batches) -> Batches:
        try:
            yield from task(batches)
        except Exception as error:
            raise TaskError(f"{type(error).__name__} in a task of elementdp") from None

    return run


@contextmanager
def _told_by_kind() -> Iterator[None]:
    """A failure of Spark's as a refusal that names its kind and quotes nothing."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        kind = getattr(error, "getCondition", lambda: None)() or type(error).__name__
        raise TableError(
            f"Spark could not read or group the table ({kind}); its own log says where. Workers need elementdp, too: "
            "PYSPARK_PYTHON names their Python"
        ) from None
