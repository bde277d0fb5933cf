"""The engine for tables larger than one machine: Spark groups and adds up, and the driver draws the noise.

A task turns its rows into (group, item, units), adds up what is equal, and sends each group to the one task that holds
all of it: one shuffle, by the group's key (:mod:`elementdp.histogram.spark_tasks`). That task projects whole groups
with the code of this machine's engine, and whole numbers by item travel back. A retry, a speculative copy or another
number of partitions cannot change a sum, and the sums are those of :class:`~elementdp.histogram.local.LocalEngine`,
item for item.

No noise is drawn in a task: a lazily noisy table would show another draw to each action that reads it. Discovery, too,
draws its noise on the driver, which sees the candidates one bundle at a time and keeps those above the threshold only.

What is wrong with a row reaches the driver as words that quote nothing, and the driver refuses the table.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elementdp.errors import ArgumentError, at_least, one_of
from elementdp.histogram.bad_rows import RowPolicy
from elementdp.histogram.element_rule import ElementRule
from elementdp.histogram.engine import Columns, Measure
from elementdp.histogram.errors import TableError
from elementdp.histogram.events import one_column
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.items import ItemList
from elementdp.histogram.naming import Naming
from elementdp.histogram.noise import Integers
from elementdp.histogram.projection import GroupCounts
from elementdp.histogram.rows import columns_read
from elementdp.histogram.spark_files import FORMATS, WRONG_WIDTH, Read, kind_of, numbered, read_files, session_for
from elementdp.histogram.spark_tasks import (
    BUNDLE,
    NOTE,
    OVERFLOW,
    PAIRS,
    PIECES,
    REFUSED,
    TEXTS,
    Note,
    ReadingTask,
    grouping,
    in_streams,
    naming_texts,
    quiet,
    summing,
    weighing,
)
from elementdp.histogram.text import Keys, places_among

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHANGED = "the table was not the same each time Spark read it, as with rand() or sample(): write it down first"


def is_spark_frame(table: object) -> bool:
    """Whether a table is a DataFrame of Spark's, without importing Spark to find out."""
    return type(table).__module__.startswith("pyspark.sql") and hasattr(table, "mapInArrow")


@dataclass(frozen=True)
class SparkEngine:
    """Spark: memory holds, in each task, a bundle of rows and the items released; on the driver, these items.

    Args:
        session: a SparkSession of one's own. Without one, the active session is used as it is, or one is made.
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
        """A DataFrame of Spark's, or files, folders and globs that Spark can read."""
        if is_spark_frame(table):
            frame: Any = table
            if frame.isStreaming:
                raise TableError("a stream has no end, so it cannot be counted: write it down first")
            if self.master is not None:
                raise ArgumentError("master", self.master, "left out for a DataFrame, which has a session of its own")
            return SparkSource("the table", Read(tuple(frame.columns), frame), self)
        paths = table if isinstance(table, list | tuple) else [table]
        if not paths or not all(isinstance(path, str | Path) for path in paths):
            raise TableError(f"Spark reads paths or a Spark DataFrame, not a {type(table).__name__}")
        session = self.session or session_for(self.master)
        return SparkSource(", ".join(map(str, paths)), read_files(session, list(map(str, paths)), self.format), self)


@dataclass(frozen=True)
class SparkSource:
    """A table that Spark reads."""

    source: str
    read: Read
    engine: SparkEngine

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table."""
        return self.read.names

    @contextmanager
    def grouped(
        self, columns: Columns, rule: ElementRule, items: ItemList | None, policy: RowPolicy, hashing: ItemHash
    ) -> Iterator["SparkGroups"]:
        """The events by group, kept by Spark for as long as the context lasts."""
        from pyspark import StorageLevel

        names = columns_read(columns, rule)
        for name in names:
            one_column(self.source, self.names, name)
        task = ReadingTask(
            columns, rule, items, replace(policy, tell=_no_one), hashing, self._routes(), lines=self.read.lines
        )
        sent = self._columns(names).mapInArrow(quiet(task), BUNDLE)
        wanted = self.engine.partitions
        parted = sent.repartition(wanted, "route") if wanted else sent.repartition("route")
        with _few_tasks(self.read.rows.sparkSession):
            kept = parted.mapInArrow(quiet(grouping), BUNDLE).persist(StorageLevel.DISK_ONLY)
        try:
            self._check(kept, policy)
            yield SparkGroups(kept, hashing, listed=items is not None)
        finally:
            kept.unpersist()

    def _columns(self, names: list[str]) -> "DataFrame":
        """What a task reads: lines, or the columns named, with the mark of rows that do not fit."""
        if self.read.lines:
            return self.read.rows
        every = self.read.rows.columns
        marks = [name for name in every[len(self.names) :] if name == WRONG_WIDTH]
        return numbered(self.read.rows).select(*(f"c{every.index(name)}" for name in [*names, *marks]))

    def _routes(self) -> NDArray[np.int64]:
        """For each part a number that Spark's hash sends there, so that parts of equal size go to different tasks."""
        session = self.read.rows.sparkSession
        parts = self.engine.partitions or int(session.conf.get("spark.sql.shuffle.partitions") or 1)
        numbers = pa.table({"route": pa.array(np.arange(parts * (16 + parts.bit_length())))})
        sent = session.createDataFrame(numbers).selectExpr("route", f"pmod(hash(route), {parts}) as part").collect()
        found = {row["part"]: row["route"] for row in sent}
        assert len(found) == parts, "a hash that misses a part with so many numbers is no hash"
        return np.array([found[part] for part in range(parts)])

    def _check(self, kept: "DataFrame", policy: RowPolicy) -> None:
        """Raise what the tasks found wrong, and tell the owner what they dropped."""
        with _told_by_kind():
            found = kept.where(f"kind = '{NOTE}'").select("body").collect()
        note = sum((Note.of(bytes(row["body"])) for row in found), Note())
        if note.problems:
            raise TableError(f"{self.source}: {'; '.join(note.problems)}")
        if not note.rows:
            raise TableError(f"{self.source} has no events")
        if note.dropped:
            policy.tell(note.dropped)


@dataclass(frozen=True)
class SparkGroups:
    """Counts by (group, item), whole groups in each partition, sorted by group; and the texts of items, if unlisted."""

    kept: "DataFrame"
    hashing: ItemHash
    listed: bool

    def item_weights(self, naming: Naming) -> Iterator[tuple[Keys, Integers]]:
        """The items that groups name and their weights, a bundle at a time."""
        from pyspark.sql import functions as f

        weights = self._pairs().mapInArrow(quiet(weighing(naming)), "item long, units long")
        sums = weights.groupBy("item").agg(f.try_sum("units").alias("units"))
        with _told_by_kind():
            for row in sums.mapInArrow(quiet(in_streams), "body binary").toLocalIterator():
                bundle = pa.ipc.open_stream(row["body"]).read_all()
                yield bundle.column("item").to_numpy().view(np.uint64), _without_overflow(bundle.column("units"))

    def item_texts(self, items: Keys) -> list[str]:
        """The texts of items by their hashes."""
        from pyspark.sql import functions as f

        with _told_by_kind():
            texts = self.kept.where(f"kind = '{TEXTS}'").select("body")
            named = texts.mapInArrow(quiet(naming_texts(np.sort(items))), "item long, text string")
            found = named.groupBy("item").agg(f.min("text").alias("text")).toArrow()
        hashes = found.column("item").to_numpy().view(np.uint64)
        order = np.argsort(hashes)
        places = places_among(hashes[order], items)
        if (places < 0).any():
            raise TableError(_CHANGED)
        return [str(text) for text in found.column("text").take(pa.array(order[places])).to_pylist()]

    def add_up(self, measure: Measure, items: ItemList, alone: NDArray[np.bool_], stage: str) -> Integers:
        """The sum of ``measure`` over all groups: each task adds up its own, Spark adds up the tasks'."""
        from pyspark.sql import functions as f

        task = summing(measure, items, alone, self.hashing, listed=self.listed)
        with _told_by_kind():
            tasks = self._pairs().mapInArrow(quiet(task), "place long, units long")
            sums = tasks.groupBy("place").agg(f.try_sum("units").alias("units")).toArrow()
        total = measure(GroupCounts.none())
        total[sums.column("place").to_numpy()] = _without_overflow(sums.column("units"))
        return total

    def _pairs(self) -> "DataFrame":
        return self.kept.where(f"kind in ('{PAIRS}', '{PIECES}')").select("kind", "body")


@contextmanager
def _few_tasks(session: "SparkSession") -> Iterator[None]:
    """Let Spark put small parts together also in what it keeps: each task costs a tenth of a second for nothing."""
    name = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
    before = session.conf.getAll.get(name)
    session.conf.set(name, "true")
    try:
        yield
    finally:
        session.conf.unset(name) if before is None else session.conf.set(name, before)


def _no_one(rows: int) -> None:
    """A task has no one to tell how many rows it dropped; its note says so."""


def _without_overflow(sums: pa.ChunkedArray) -> Integers:
    """Sums as numbers; Spark gives null for one that 64 bits do not hold."""
    if sums.null_count:
        raise TableError(OVERFLOW)
    return np.asarray(sums.to_numpy(), dtype=np.int64)


@contextmanager
def _told_by_kind() -> Iterator[None]:
    """A failure of Spark's as a refusal that names its kind and quotes nothing."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        if refused := re.search(rf"TaskError: {REFUSED}(.*)", str(error)):
            raise TableError(refused[1]) from None
        if "CSV header does not conform to the schema" in str(error):
            raise TableError("the files have other columns, or have them in another order") from None
        raise TableError(
            f"Spark could not read or group the table ({kind_of(error)}); its own log says where. Workers need "
            "elementdp, too: PYSPARK_PYTHON names their Python"
        ) from None
