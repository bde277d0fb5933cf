"""What Spark's tasks do: read rows, group them, and measure whole groups; Spark itself moves bundles of bytes only.

A bundle is a row ``(route, kind, body)`` of about a thousand pairs (group, item), so that Spark neither turns each pair
into a row of its own nor sorts them. Its route decides which task it goes to: the lower half of a group's key falls
into one of as many ranges as there are tasks (the upper half parts groups on a task's disk). The texts of items travel
once a task, beside the pairs, which know items by their hashes. Where a pair or a text goes depends on itself alone and
not on what is read with it, since a task that is tried again may get its rows in another order.

A group with more items than memory should hold stays in pieces, parted by item. Discovery asks for its first few items
and a sum for those that are released, so each piece is narrowed to these before the group is put together.

A task says nothing of the data. What is wrong with a row travels on as words that quote nothing; any other failure is
told by the name of its kind alone.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elementdp import __version__
from elementdp.errors import ElementdpError
from elementdp.histogram.bad_rows import BadRows, RowPolicy
from elementdp.histogram.element_rule import ElementRule
from elementdp.histogram.engine import Columns, Measure
from elementdp.histogram.errors import TableError
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.items import ItemList
from elementdp.histogram.json_lines import json_batch
from elementdp.histogram.naming import Naming, item_sums
from elementdp.histogram.projection import GroupCounts, pair_sums, run_sums
from elementdp.histogram.rows import RowReader, measured
from elementdp.histogram.spark_files import WRONG_WIDTH
from elementdp.histogram.spill import PART_BYTES, Rows, Spill
from elementdp.histogram.text import Keys, mix, places_among

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Batches]

BUNDLE = "route long, kind string, body binary"
_SCHEMA = pa.schema([("route", pa.int64()), ("kind", pa.string()), ("body", pa.binary())])
PAIRS, PIECES, TEXTS, NOTE = "pairs", "pieces", "texts", "note"

_BODY_ROWS = 1 << 10
"""Pairs of a bundle: Spark hands a task up to 10,000 bundles at once, which then stay within 300 MB."""

_READ_ROWS = 1 << 17
"""Rows that are read together."""

_HELD_ROWS = 1 << 20
"""Rows, or sums by item, that a task holds before it sends them on."""

_HELD_TEXT = 1 << 26
"""Bytes of texts that a task holds before it sends them on."""

_REMEMBERED = 1 << 20
"""Texts that a task remembers to have sent."""

_PART_BYTES = PART_BYTES
"""What a task takes from its disk at a time; a group that is larger is parted by item."""

_HIGH, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


OVERFLOW = "the table has more groups than 64-bit sums can hold"
REFUSED = "refused: "
"""What words for the driver begin with."""


class TaskError(Exception):
    """A task failed; what it saw stays with it."""


class RefusedError(Exception):
    """What the driver is told in these words, which quote nothing of the data."""


@dataclass(frozen=True)
class Note:
    """What tasks found: how many rows there were, how many of them were dropped, and what is wrong with some."""

    rows: int = 0
    dropped: int = 0
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, body: bytes) -> "Note":
        """Read back what :meth:`bundle` wrote."""
        rows, dropped, problems = json.loads(body)
        return cls(rows, dropped, tuple(problems))

    def bundle(self) -> pa.RecordBatch:
        """The note as a bundle."""
        return _bundle([0], NOTE, [json.dumps([self.rows, self.dropped, self.problems]).encode()])

    def __add__(self, other: "Note") -> "Note":
        problems = tuple(sorted({*self.problems, *other.problems}))
        return Note(self.rows + other.rows, self.dropped + other.dropped, problems)


def versions() -> dict[str, str]:
    """What driver and workers must share, or the same row could be two elements."""
    return {"elementdp": __version__, "pyarrow": pa.__version__, "publicsuffixlist": version("publicsuffixlist")}


def quiet(task: Task) -> Task:
    """A task that refuses other versions than the driver's, and whose failures say not a word of the data.

    It travels packed, since a worker with another version may not be able to unpack it.
    """
    from pyspark import cloudpickle

    expected, packed = versions(), cloudpickle.dumps(task)

    def run(batches: Batches) -> Batches:
        try:
            if (here := versions()) != expected:
                raise RefusedError(f"a worker has {_listed(here)} where the driver has {_listed(expected)}")
            yield from cloudpickle.loads(packed)(batches)
        except RefusedError as error:
            raise TaskError(f"{REFUSED}{error}") from None
        except Exception as error:
            raise TaskError(f"{type(error).__name__} in a task of elementdp") from None

    return run


def _listed(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in found.items())


# ------------------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class ReadingTask:
    """Reads rows and sends pairs to the tasks that group them, each by its key's range and that range's route."""

    columns: Columns
    rule: ElementRule
    items: ItemList | None
    policy: RowPolicy
    hashing: ItemHash
    routes: NDArray[np.int64]
    lines: bool = False

    def __call__(self, batches: Batches) -> Batches:
        """Pairs, texts, and a note of what was dropped or is wrong."""
        reader = RowReader(self.columns, self.rule, self.items, BadRows(self.policy), self.hashing)
        try:
            yield from self._read(batches, reader)
        except ElementdpError as error:
            words = getattr(error, "kind", "an item has no element that is a str, an int or bytes")
            yield Note(problems=(words,)).bundle()

    def _read(self, batches: Batches, reader: RowReader) -> Batches:
        sent = np.empty(0, np.uint64)
        held: list[Rows] = []
        texts: list[pa.RecordBatch] = []
        read = 0
        for table in _joined_batches(batches):
            read += table.num_rows
            rows = reader.rows(_json(table, reader) if self.lines else _fitting(table, reader))
            if self.items is None:
                hashes, places = np.unique(rows.hashes, return_index=True)
                fresh = places_among(sent, hashes) < 0
                columns = [pa.array(hashes[fresh].view(np.int64)), rows.texts.take(pa.array(places[fresh]))]
                texts += [pa.record_batch(columns, names=["item", "text"])] if fresh.any() else []
                sent = np.union1d(sent, hashes[fresh]) if len(sent) < _REMEMBERED else sent
            if sum(part.nbytes for part in texts) >= _HELD_TEXT:
                yield self._routed_texts(texts)
                texts = []
            held.append((rows.keys, rows.items, *rows.counts))
            if sum(len(part[0]) for part in held) >= _HELD_ROWS:
                yield self._routed(held)
                held = []
        if texts:
            yield self._routed_texts(texts)
        if held:
            yield self._routed(held)
        yield Note(read, reader.bad.dropped).bundle()

    def _routed_texts(self, held: list[pa.RecordBatch]) -> pa.RecordBatch:
        """Texts of items with their hashes, parted by the ranges of these."""
        texts = _joined(held)
        hashes = texts.column("item").to_numpy().view(np.uint64)
        order = np.argsort(hashes & _LOW)
        routes, slices = self._pieces(hashes[order])
        texts = texts.take(pa.array(order))
        return _bundle(routes, TEXTS, [_ipc(texts.slice(one.start, one.stop - one.start)) for one in slices])

    def _routed(self, held: list[Rows]) -> pa.RecordBatch:
        """Rows added up by pair, so that a busy group sends few, and parted by the ranges of their keys."""
        rows = _roughly_added_up(_concatenated(held))
        routes, slices = self._pieces(rows[0])
        return _bundle(routes, PAIRS, [_packed(*(column[one] for column in rows)) for one in slices])

    def _pieces(self, keys: Keys) -> tuple[NDArray[np.int64], list[slice]]:
        """The route of each bundle, and which of the keys, in order of their lower halves, go into it."""
        ranges = (keys & _LOW) * np.uint64(len(self.routes)) >> _HIGH
        bounds = np.searchsorted(ranges, np.arange(len(self.routes) + 1, dtype=np.uint64))
        pieces = [
            (place, slice(start, min(start + _BODY_ROWS, last)))
            for place, (first, last) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
            for start in range(first, last, _BODY_ROWS)
        ]
        return self.routes[[place for place, _ in pieces]], [one for _, one in pieces]


def _fitting(table: pa.RecordBatch, reader: RowReader) -> pa.RecordBatch:
    """The columns that are read, without the rows that a last column marks as wider or narrower than the header.

    What may be a quote that does not end is refused whatever is done with bad rows: it holds the rows of others.
    """
    if table.num_columns > len(reader.names):
        mark = table.column(table.num_columns - 1)
        if pc.any(pc.equal(mark, 2)).as_py():
            raise TableError(WRONG_WIDTH, WRONG_WIDTH)
        if rows := pc.sum(mark).as_py():
            reader.bad.found(0, WRONG_WIDTH, rows=rows)
            table = table.filter(pc.equal(mark, 0))
    return table.select(list(range(len(reader.names)))).rename_columns(reader.names)


def _json(table: pa.RecordBatch, reader: RowReader) -> pa.RecordBatch:
    """The columns that are read, from lines of JSON."""
    return json_batch(table.column(0).cast(pa.binary()).to_pylist(), reader.names, reader.bad)


def _roughly_added_up(rows: Rows) -> Rows:
    """Rows (key, item[, whole, fraction[, value]]) in order of the lower half of their keys, most pairs added up.

    One sort of single numbers is ten times as fast as an exact one of pairs, which the task that groups them does.
    """
    keys, items, *counts = rows
    order = np.argsort(keys << _HIGH | mix(keys, items) >> _HIGH)
    keys, items = keys[order], items[order]
    if not len(keys):
        return keys, items, *(np.empty(0, np.int64) for _ in range(max(2, len(counts))))
    first = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]) | (items[1:] != items[:-1])])
    return keys[first], items[first], *run_sums(tuple(column[order] for column in counts), first, len(keys))


# ------------------------------------------------------------------------------------------------------------ grouping


def grouping(bundles: Batches) -> Batches:
    """Groups in order of their keys, exactly added up on the task's disk; the texts; and one note.

    Bundles of ``PAIRS`` hold whole groups one after the other, those of ``PIECES`` each pair once in any order.
    """
    note = Note()
    spill: Spill | None = None
    with ExitStack() as stack:
        for bundle in bundles:
            kind = bundle.column("kind")
            for body in bundle.column("body").filter(pc.equal(kind, NOTE)).to_pylist():
                note += Note.of(body)
            if (texts := bundle.filter(pc.equal(kind, TEXTS))).num_rows:
                yield texts
            for keys, items, *numbers in _unpacked(bundle, PAIRS):
                if spill is None:
                    types = ("u8", "u8", *["i8"] * len(numbers))
                    spill = stack.enter_context(Spill(types, pair_sums, part_bytes=_PART_BYTES))
                    pieces = stack.enter_context(Spill(("u8", *types), _piece_sums, part_bytes=_PART_BYTES))
                spill.add(keys, items, *(column.view(np.int64) for column in numbers))
        try:
            if spill is not None:
                yield from _added_up(spill.parts(lambda rows: pieces.add(mix(rows[0], rows[1]), *rows)), PAIRS)
                yield from _added_up((rows[1:] for rows in pieces.parts()), PIECES)
        except TableError as error:
            note += Note(problems=(error.kind,))
    yield note.bundle()


def _piece_sums(rows: Rows) -> Rows:
    """Rows (mix of group and item, group, item, …) added up by pair."""
    sums = pair_sums(rows[1:])
    return mix(sums[0], sums[1].view(np.uint64)), *sums


def _added_up(parts: Iterable[Rows], kind: str) -> Batches:
    """Bundles of (group, item, count[, value]), each pair once."""
    for part in parts:
        columns = _columns(GroupCounts.of(*part))
        starts = range(0, len(columns[0]), _BODY_ROWS)
        bodies = [_packed(*(column[start : start + _BODY_ROWS] for column in columns)) for start in starts]
        yield _bundle(np.zeros(len(bodies), np.int64), kind, bodies)


def whole_groups(bundles: Batches, narrowed: Callable[[GroupCounts], GroupCounts]) -> Iterator[GroupCounts]:
    """The groups of a task, many at a time; a group that goes on in the next bundle is put together first.

    Groups that come in pieces are put together last, of what ``narrowed`` leaves of each piece.
    """
    rest: Rows | None = None
    pieces: list[GroupCounts] = []
    for bundle in bundles:
        pieces += (narrowed(_groups(_by_key(rows))) for rows in _unpacked(bundle, PIECES))
        for rows in _unpacked(bundle, PAIRS):
            rows = rows if rest is None else _concatenated([rest, rows])
            cut = int(np.searchsorted(rows[0], rows[0][-1]))
            if cut:
                yield _groups(tuple(column[:cut] for column in rows))
            rest = tuple(column[cut:] for column in rows)
    if rest is not None:
        yield _groups(rest)
    if pieces:
        yield _groups(_by_key(_concatenated([_columns(piece) for piece in pieces])))


def _by_key(rows: Rows) -> Rows:
    order = np.argsort(rows[0])
    return tuple(column[order] for column in rows)


def _columns(groups: GroupCounts) -> Rows:
    values = () if groups.values is None else (groups.values,)
    return groups.keys, groups.items, groups.counts, *values


def _groups(rows: Rows) -> GroupCounts:
    keys, items, counts, *values = rows
    every = np.ones(len(keys), dtype=bool)
    signed = (column.view(np.int64) for column in values)
    return GroupCounts.sorted(keys, items.view(np.int64), counts.view(np.float64), every, *signed)


# ----------------------------------------------------------------------------------------------------------- measuring


def weighing(naming: Naming) -> Task:
    """Rows (item, units): the items that groups name, most of them added up."""

    def weigh(bundles: Batches) -> Batches:
        held: list[Rows] = []
        for groups in whole_groups(bundles, naming.named):
            held.append(naming.weights(groups))
            if sum(len(part[0]) for part in held) >= _HELD_ROWS:
                held = [item_sums(_concatenated(held))]
                if len(held[0][0]) >= _HELD_ROWS // 2:
                    yield _units("item", *held.pop())
        if held:
            yield _units("item", *item_sums(_concatenated(held)))

    return weigh


def summing(measure: Measure, items: ItemList, alone: NDArray[np.bool_], hashing: ItemHash, *, listed: bool) -> Task:
    """Rows (place, units): the sum of ``measure`` over the task's groups."""

    def places(groups: GroupCounts) -> NDArray[np.int64]:
        return groups.items if listed else items.places_of_hashes(groups.items.view(np.uint64), hashing)

    def add_up(bundles: Batches) -> Batches:
        total = measure(GroupCounts.none())
        for groups in whole_groups(bundles, lambda piece: piece.keep(places(piece) >= 0)):
            total = total + measured(groups, measure, places(groups), alone)
            if np.abs(total).max(initial=0) >= 1 << 62:
                raise RefusedError(OVERFLOW)
        some = np.flatnonzero(total)
        yield _units("place", some, total[some])

    return add_up


def naming_texts(wanted: Keys) -> Task:
    """Rows (item, text) of the items wanted, in order of their hashes."""

    def name(bundles: Batches) -> Batches:
        for bundle in bundles:
            for body in bundle.column("body"):
                texts = pa.ipc.open_stream(body.as_buffer()).read_all()
                some = places_among(wanted, texts.column("item").to_numpy().view(np.uint64)) >= 0
                if some.any():
                    yield from texts.filter(pa.array(some)).to_batches()

    return name


def in_streams(batches: Batches) -> Batches:
    """Rows in bodies of Arrow's own format: the driver reads them a thousand times faster than rows."""
    for rows in _joined_batches(batches):
        yield pa.record_batch([pa.array([_ipc(rows)], pa.binary())], names=["body"])


def _units(name: str, numbers: NDArray[np.int64] | Keys, units: NDArray[np.int64]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers.view(np.int64)), pa.array(units)], names=[name, "units"])


# ------------------------------------------------------------------------------------------------------------- bundles


def _bundle(routes: "NDArray[np.int64] | list[int]", kind: str, bodies: list[bytes]) -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array(routes), pa.array([kind] * len(bodies)), pa.array(bodies, pa.binary())], schema=_SCHEMA
    )


def _packed(*columns: NDArray[np.generic]) -> bytes:
    """Columns of 64-bit numbers as bytes: the lowest bytes of all, then the next ones, which compresses well."""
    digits = np.stack([np.ascontiguousarray(column).view(np.uint8).reshape(-1, 8).T for column in columns])
    return bytes([len(columns)]) + digits.tobytes()


def _unpacked(bundle: pa.RecordBatch, kind: str) -> Iterator[Rows]:
    """The pairs of some bundles of a kind, many bodies at a time, as unsigned 64-bit columns."""
    held: list[Rows] = []
    bodies = bundle.column("body")
    for place in pc.indices_nonzero(pc.equal(bundle.column("kind"), kind)).to_pylist():
        digits = np.frombuffer(bodies[place].as_buffer(), np.uint8)
        digits = digits[1:].reshape(digits[0], 8, -1).swapaxes(1, 2)
        held.append(tuple(np.ascontiguousarray(digits).view(np.uint64)[:, :, 0]))
        if len(held) * _BODY_ROWS >= _READ_ROWS:
            yield _concatenated(held)
            held = []
    if held:
        yield _concatenated(held)


def _concatenated(rows: list[Rows]) -> Rows:
    return tuple(map(np.concatenate, zip(*rows, strict=True)))


def _joined_batches(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The batches of a task, put together up to a size."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= _READ_ROWS:
            yield _joined(held)
            held = []
    if any(part.num_rows for part in held):
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()
    if len(whole) > 1:  # Arrow leaves texts apart that its 32-bit offsets cannot reach
        raise TableError("the texts of some rows that are put together take more than 2 GiB")
    return whole[0]


def _ipc(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return bytes(sink.getvalue().to_pybytes())
