"""What Spark's tasks do, without Spark: however rows are cut, ordered and sent, the groups are those of one machine."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from elementdp.histogram import BoundedValue, LocalEngine, RowPolicy
from elementdp.histogram import spark_tasks as tasks
from elementdp.histogram.discovery import Threshold
from elementdp.histogram.element_rule import element_rule
from elementdp.histogram.engine import Columns
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.items import ItemList
from elementdp.histogram.projection import GridBall, GroupCounts
from elementdp.histogram.rows import columns_read
from elementdp.histogram.text import as_text

HASHING = ItemHash.seeded(0)
URLS = [f"http://s{a}.org/{b}" for a in range(40) for b in range(4)]
NAMING = Threshold.of(0.5, 1e-6, 5, one_item=False).naming


@pytest.fixture(autouse=True)
def small_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that groups straddle bundles and tasks send rows more than once."""
    for name, size in {"_BODY_ROWS": 7, "_READ_ROWS": 50, "_HELD_ROWS": 120, "_HELD_TEXT": 2000}.items():
        monkeypatch.setattr(tasks, name, size)


def events(n: int, seed: int, **more: Any) -> pa.Table:
    """Half of the events are one user's."""
    rng = np.random.default_rng(seed)
    user = np.where(rng.random(n) < 0.5, 0, rng.integers(0, 1 + n // 20, n))
    return pa.table({"user": user, "url": np.array(URLS)[rng.integers(0, len(URLS), n)]} | more)


def grouped(
    table: pa.Table, columns: Columns, items: ItemList | None, parts: int, seed: int, **policy: Any
) -> tuple[list[list[pa.RecordBatch]], tasks.Note]:
    """The table through tasks in a random order, cut anywhere: what each task keeps, and the sum of all notes."""
    rng = np.random.default_rng(seed)
    rule = element_rule("domain", "user", "url", table.column_names, "the table")
    reading = tasks.ReadingTask(columns, rule, items, RowPolicy(**policy), HASHING, 10 * np.arange(parts))
    table = table.select(columns_read(columns, rule))
    cuts = np.unique(rng.integers(0, table.num_rows + 1, 4))
    pieces = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
    sent = [row for piece in pieces for batch in reading(piece.to_batches(max_chunksize=13)) for row in rowwise(batch)]
    kept: list[list[pa.RecordBatch]] = []
    note = tasks.Note()
    for route in reading.routes:
        arrived = [row for row in sent if row.column("route")[0].as_py() == route]
        found = list(tasks.grouping(arrived[place] for place in rng.permutation(len(arrived))))
        kept.append([rows for batch in found for rows in rowwise(batch) if kind(rows) != tasks.NOTE])
        note += sum(
            (
                tasks.Note.of(rows.column("body")[0].as_py())
                for b in found
                for rows in rowwise(b)
                if kind(rows) == tasks.NOTE
            ),
            tasks.Note(),
        )
    return kept, note


def rowwise(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    return (batch.slice(place, 1) for place in range(batch.num_rows))


def kind(row: pa.RecordBatch) -> str:
    return str(row.column("kind")[0].as_py())


def counted(bundles: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (bundle for bundle in bundles if kind(bundle) in (tasks.PAIRS, tasks.PIECES))


def sums(kept: list[list[pa.RecordBatch]], measure: Any, items: ItemList, *, listed: bool) -> Any:
    task = tasks.summing(measure, items, np.zeros(len(items), bool), HASHING, listed=listed)
    total = measure(GroupCounts.none())
    for bundles in kept:
        for batch in task(counted(bundles)):
            total[batch.column("place").to_numpy()] += batch.column("units").to_numpy()
    return total


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("columns", [Columns("user", ("url",)), Columns("user", ("url",), "times"),
                                     Columns("user", ("url",), None, BoundedValue("times", 0, 5))])  # fmt: skip
def test_sums_do_not_depend_on_how_rows_travel(columns: Columns, listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    n, items, ball = 900, ItemList(URLS), GridBall.of(3.0)
    table = events(n, 1, times=np.random.default_rng(2).choice([0.0, 0.3, 1.0, 2.0**31], n))

    def measure(groups: GroupCounts) -> Any:
        total = np.zeros(2 * len(items), dtype=np.int64)
        np.add.at(total, groups.items, groups.project(ball))
        if groups.values is not None:
            np.add.at(total, len(items) + groups.items, groups.project_both(ball)[1])
        return total

    rule = element_rule("domain", "user", "url", table.column_names, "the table")
    alone = np.zeros(len(items), bool)
    given = items if listed else None
    with LocalEngine().open(table).grouped(columns, rule, given, RowPolicy(), HASHING) as groups:
        expected = groups.add_up(measure, items, alone, "")
        weights = None if listed else dict(zip(*map(np.ndarray.tolist, next(groups.item_weights(NAMING))), strict=True))
    assert expected.any()
    for parts, seed, part_bytes in ((1, 3, 1 << 20), (5, 4, 1 << 20), (3, 5, 200)):
        monkeypatch.setattr(tasks, "_PART_BYTES", part_bytes)
        kept, note = grouped(table, columns, given, parts, seed)
        assert note == tasks.Note(rows=n)
        in_pieces = {kind(bundle) for bundles in kept for bundle in bundles} >= {tasks.PIECES}
        assert in_pieces == (part_bytes < 1000)
        assert np.array_equal(sums(kept, measure, items, listed=listed), expected)
        if weights is not None:
            found: dict[int, int] = {}
            for bundles in kept:
                for batch in tasks.weighing(NAMING)(counted(bundles)):
                    for item, units in zip(batch["item"].to_numpy().view(np.uint64).tolist(),
                                           batch["units"].to_pylist(), strict=True):  # fmt: skip
                        found[item] = found.get(item, 0) + units
            assert found == weights


def test_where_rows_go_does_not_depend_on_their_order() -> None:
    """A task that is tried again may read its rows in another order, while others keep what the first try sent them."""
    table = events(900, 9)
    rule = element_rule("domain", "user", "url", table.column_names, "the table")
    reading = tasks.ReadingTask(Columns("user", ("url",)), rule, None, RowPolicy(), HASHING, 10 * np.arange(5))

    def received(rows: pa.Table) -> dict[int, tuple[Any, ...]]:
        sent = [row for batch in reading(rows.to_batches(max_chunksize=13)) for row in rowwise(batch)]
        found = {}
        for route in reading.routes.tolist():
            arrived = [row for row in sent if row.column("route")[0].as_py() == route and kind(row) != tasks.NOTE]
            texts = [row for row in arrived if kind(row) == tasks.TEXTS]
            names = tasks.naming_texts(np.sort(HASHING.of(pa.array(URLS))))(texts)
            kept = [row for batch in tasks.grouping(arrived) for row in rowwise(batch)]
            weights = [row for batch in tasks.weighing(NAMING)(counted(kept)) for row in batch.to_pylist()]
            found[route] = ({row["text"] for batch in names for row in batch.to_pylist()}, weights)
        return found

    first = received(table)
    assert sum(len(names) for names, _ in first.values()) == len(URLS)
    assert received(table.take(np.random.default_rng(10).permutation(table.num_rows))) == first


def test_a_group_that_does_not_fit_memory_is_never_held_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """One group of 3,000 items, of which 5 are released: no more than a part and what is asked for comes together."""
    monkeypatch.setattr(tasks, "_PART_BYTES", 4000)  # 125 pairs of 32 bytes
    table = pa.table({"user": np.zeros(3000, np.int64), "url": [f"a{n}" for n in range(3000)]})
    rule = element_rule("user", "user", "url", table.column_names, "the table")
    reading = tasks.ReadingTask(Columns("user", ("url",)), rule, None, RowPolicy(), HASHING, np.arange(1))
    held: list[int] = []
    made = GroupCounts.sorted

    def watched(keys: Any, *rest: Any) -> GroupCounts:
        held.append(len(keys))
        return made(keys, *rest)

    monkeypatch.setattr(GroupCounts, "sorted", staticmethod(watched))
    kept = list(tasks.grouping(reading(table.to_batches())))
    items = ItemList([f"a{n}" for n in range(0, 3000, 600)])
    ball = GridBall.of(1.0)

    def measure(groups: GroupCounts) -> Any:
        return np.bincount(groups.items, groups.project(ball), len(items)).astype(np.int64)

    each = int(ball.radius // np.sqrt(5))  # five items of one group share its radius
    assert np.abs(sums([kept], measure, items, listed=False) - each).max() <= 1
    named = [row["item"] for batch in tasks.weighing(NAMING)(counted(kept)) for row in batch.to_pylist()]
    assert len(set(named)) == len(named) == NAMING.most_items
    assert max(held) < 500


def test_the_texts_of_items_are_found_by_their_hashes() -> None:
    kept, _ = grouped(events(400, 5), Columns("user", ("url",)), None, 3, 6)
    wanted = np.sort(HASHING.of(pa.array(URLS[:20])))
    texts = [bundle for bundles in kept for bundle in bundles if kind(bundle) == tasks.TEXTS]
    found = [row for batch in tasks.naming_texts(wanted)(texts) for row in batch.to_pylist()]
    assert {row["text"] for row in found} == set(URLS[:20])
    assert all(HASHING.of(pa.array([row["text"]])).view(np.int64)[0] == row["item"] for row in found)


def test_rows_that_are_dropped_are_counted_and_others_named_without_a_quote() -> None:
    table = events(200, 7, times=np.where(np.arange(200) % 50 == 3, -17, 1))
    columns = Columns("user", ("url",), "times")
    assert grouped(table, columns, None, 3, 8, bad_rows="drop")[1] == tasks.Note(rows=200, dropped=4)
    problems = grouped(table, columns, None, 3, 8)[1].problems
    assert problems == ("'times' must be a finite count from 0 to 2^31",)


def test_a_sum_that_overflows_is_refused_in_a_task() -> None:
    """2³² counts of 2³¹ cannot be put into a test, but what tasks send on after adding up can."""
    keys, items = np.ones(4, np.uint64), np.ones(4, np.int64)
    whole, fraction = np.full(4, 1 << 61), np.zeros(4, np.int64)
    columns = (keys, items.view(np.uint64), whole, fraction)
    sent = tasks._bundle([0], tasks.PAIRS, [tasks._packed(*columns)])
    notes = [batch for batch in tasks.grouping([sent]) if kind(batch) == tasks.NOTE]
    assert tasks.Note.of(notes[0].column("body")[0].as_py()).problems == (
        "the counts of one user and item add up to more than 64 bits hold",
    )
    assert GroupCounts.of(keys, items, whole // 4, fraction).counts.tolist() == [2.0**61]


def test_sums_over_groups_that_overflow_are_refused_in_words() -> None:
    """Each group adds 2⁶¹ here; two of them are more than a task may hold."""
    kept, _ = grouped(events(50, 11), Columns("user", ("url",)), None, 1, 12)

    def measure(groups: GroupCounts) -> Any:
        return np.array([len(groups.keys) << 61]) if len(groups.keys) < 3 else np.array([1 << 62])

    task = tasks.quiet(tasks.summing(measure, ItemList(URLS), np.zeros(len(URLS), bool), HASHING, listed=False))
    with pytest.raises(tasks.TaskError, match=f"^{tasks.REFUSED}{tasks.OVERFLOW}$"):
        list(task(list(counted(kept[0]))))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", None])
def test_an_instant_has_one_name(unit: str, zone: str | None) -> None:
    """Spark knows microseconds only, and shows instants in the zone of its session."""
    given = pa.array([10, 20, None], pa.timestamp("s", zone)).cast(pa.timestamp(unit, zone))
    end = "Z" if zone else ""
    assert as_text(given).to_pylist() == [f"1970-01-01 00:00:10{end}", f"1970-01-01 00:00:20{end}", None]


def test_a_task_refuses_other_versions_and_quotes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(batches: Any) -> Any:
        yield from batches
        raise RuntimeError("secret")

    task = tasks.quiet(failing)
    with pytest.raises(tasks.TaskError, match=r"^RuntimeError in a task of elementdp$") as caught:
        list(task([]))
    assert caught.value.__suppress_context__
    monkeypatch.setattr(tasks, "__version__", "99.0")
    with pytest.raises(tasks.TaskError, match=r"a worker has elementdp 99\.0.* where the driver has elementdp"):
        list(task([]))
