"""The engine on Spark: the same sums as this machine's engine, item for item, whatever happens to its tasks."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from elementdp.errors import ArgumentError, ElementdpError
from elementdp.histogram import (
    BoundedValue,
    Budget,
    Discovery,
    LocalEngine,
    RowPolicy,
    SparkEngine,
    TableError,
    private_histogram,
)
from elementdp.histogram.discovery import Threshold
from elementdp.histogram.element_rule import element_rule
from elementdp.histogram.engine import Columns
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.spark_tasks import versions

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not (shutil.which("java") or os.environ.get("JAVA_HOME")), reason="Spark needs a Java runtime"),
]

PRIVACY = Budget(1.0, 1e-6, seed=5)
URLS = [f"http://s{a}.org/{b}" for a in range(200) for b in range(4)]


@pytest.fixture(scope="module")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def session(event_log: Path) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2,4]").appName("tests")  # a task may fail three times
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": event_log.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.speculation": "true",  # a slow task is started twice, and either copy may win
    }.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    yield made
    made.stop()


def events(n: int, seed: int) -> pa.Table:
    """Half of the events are one user's."""
    rng = np.random.default_rng(seed)
    user = np.where(rng.random(n) < 0.5, 0, rng.integers(0, n // 20, n))
    site, page = rng.zipf(1.5, n) % 200, rng.integers(0, 4, n)
    urls = np.array(URLS)
    return pa.table({"user": user, "url": urls[4 * site + page], "times": rng.integers(1, 6, n)})


def release(table: object, engine: Any = None, **choices: Any) -> pa.Table:
    rest = {"items": URLS, "count": "times"} | choices
    with pytest.warns(UserWarning, match="seeded"):
        return private_histogram(
            table,
            user="user",
            item=rest.pop("item", "url"),
            element=rest.pop("element", "domain"),
            privacy=PRIVACY,
            engine=engine,
            **rest,
        ).histogram


@pytest.mark.parametrize("element", ["domain", "item", "user"])
def test_sums_are_those_of_one_machine(session: Any, element: str) -> None:
    """Seeded noise is the same on equal sums, so equal releases are equal sums, and the same private choice of ρ."""
    table = events(30_000, 1)
    assert release(session.createDataFrame(table), element=element).equals(release(table, element=element))


@pytest.mark.parametrize("items", [None, [(url, times) for url in URLS for times in range(1, 6)]])
def test_items_of_several_columns_and_sums_of_a_column(
    session: Any, items: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if items is None:  # candidates come in another order, and would meet other noise
        monkeypatch.setattr("elementdp.histogram.release.seeded_noise", lambda seed: lambda values, scale: values)
    table = events(30_000, 7)
    choices = {"item": ("url", "times"), "element": "url", "count": BoundedValue("user", 0, 50), "items": items}
    found = release(table, **choices)
    assert found.column_names[:3] == ["url", "times", "count"]
    assert found.num_rows
    assert release(session.createDataFrame(table), **choices).equals(found)


def test_a_million_events_with_a_user_who_holds_half_of_them(session: Any) -> None:
    table = events(1_000_000, 2)
    assert release(session.createDataFrame(table), rho=8.0).equals(release(table, rho=8.0))


def broken(frame: Any) -> Any:
    """A table each of whose tasks fails twice, at its end."""

    def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield from batches
        if TaskContext.get().attemptNumber() < 2:
            raise OSError("the disk of this worker is gone")

    return frame.mapInArrow(failing, frame.schema)


def test_failed_tasks_and_other_partitions_change_nothing(session: Any) -> None:
    table = events(20_000, 3)
    frame = broken(session.createDataFrame(table).repartition(5))
    assert release(frame, SparkEngine(session=session, partitions=7)).equals(release(table))


def test_a_user_with_more_items_than_a_task_takes_at_once(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One group comes in pieces: 2^18 pairs of 32 bytes fill a part. Without noise both engines discover the same."""
    monkeypatch.setattr("elementdp.histogram.release.seeded_noise", lambda seed: lambda values, scale: values)
    mine, others = 300_000, events(20_000, 13).drop(["times"])
    table = pa.concat_tables([pa.table({"user": np.zeros(mine, int), "url": [f"x{n}" for n in range(mine)]}), others])
    table = table.take(np.random.default_rng(14).permutation(table.num_rows))
    choices: dict[str, Any] = {"items": None, "count": None, "element": "user", "rho": 3.0}
    expected = release(table, **choices)
    assert expected.num_rows > 4
    assert release(broken(session.createDataFrame(table).repartition(2)), **choices).equals(expected)


def test_discovery_sees_each_candidate_once_with_the_same_weight(session: Any) -> None:
    table = events(20_000, 4)
    rule = element_rule("domain", "user", "url", table.column_names, "the table")
    naming = Threshold.of(0.5, 1e-6, 5, one_item=False).naming

    def weights(engine: Any, source: object) -> list[tuple[str, int]]:
        with engine.open(source).grouped(
            Columns("user", ("url",)), rule, None, RowPolicy(), ItemHash.seeded(0)
        ) as groups:
            return [
                pair
                for names, given in groups.item_weights(naming)
                for pair in zip(groups.item_texts(names), given.tolist(), strict=True)
            ]

    here, there = weights(LocalEngine(), table), weights(SparkEngine(session=session), session.createDataFrame(table))
    assert sorted(here) == sorted(there)
    assert len({name for name, _ in there}) == len(there)


def test_noise_is_drawn_once_and_by_the_driver(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No table of Spark's is ever noisy, so none can show two draws; a worker that drew would not know this noise."""
    draws: list[int] = []

    def counted(values: Any, scale: float) -> Any:
        draws.append(len(values))
        return values + len(draws)

    monkeypatch.setattr("elementdp.histogram.release.exact_noise", counted)
    table, listed = events(2_000, 5), ["http://s1.org/0", "http://s1.org/1"]
    found = []
    for source in (table, session.createDataFrame(table)):
        draws.clear()
        result = private_histogram(
            source,
            user="user",
            item="url",
            element="user",
            privacy=Budget(4.0, 1e-3),
            items=listed,
            rho=4.0,
            policy=RowPolicy(unknown_items="drop"),
        )
        assert isinstance(result.histogram, pa.Table)
        found.append((result.histogram, result.clipped, tuple(draws)))
    assert found[0] == found[1]
    assert found[0][2][0] == len(listed)


def test_noise_of_discovery_is_drawn_once_for_each_candidate(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the driver, which has the release as a table of its own: it can be read twice and shows one draw."""
    drawn: list[int] = []

    def counted(values: Any, scale: float) -> Any:
        drawn.append(len(values))
        return values

    monkeypatch.setattr("elementdp.histogram.release.exact_noise", counted)
    table = events(5_000, 17)
    choices: dict[str, Any] = {"item": "url", "element": "user", "privacy": Budget(8.0, 1e-2), "rho": 4.0}
    choices["items"] = Discovery(len(URLS))  # every item that someone has is a candidate
    result = private_histogram(session.createDataFrame(table), user="user", **choices)
    released, levels = result.histogram.num_rows, drawn.pop()
    assert 0 < released < len(set(table["url"].to_pylist()))
    assert sum(drawn) == len(set(table["url"].to_pylist())) + released, "once a candidate, once an item released"
    there, here = (result, private_histogram(table, user="user", **choices))
    assert there.histogram.equals(here.histogram) and levels == drawn[-1]


def test_spark_s_own_log_of_events_holds_nothing_of_the_table(session: Any, event_log: Path, tmp_path: Path) -> None:
    """Names of columns and files are in it, and how many rows and bytes each task moved; no user, item or count is."""
    table = events(2_000, 11).append_column("who", pa.array([f"person{n}" for n in range(2_000)]))
    pa.parquet.write_table(table, tmp_path / "events.parquet")
    engine = SparkEngine(session=session)
    private_histogram(
        tmp_path / "events.parquet", user="who", item="url", element="domain", privacy=Budget(8.0, 0.1), engine=engine
    )
    told = "".join(path.read_text() for path in event_log.rglob("*") if path.is_file() and path.suffix != ".crc")
    assert "mapInArrow" in told or "MapInArrow" in told
    assert not [word for word in ("person", "http://s") if word in told]


def test_a_table_whose_rows_are_all_dropped_has_no_items(session: Any) -> None:
    table = pa.table({"user": ["a", "b"], "url": pa.array([None, None], pa.string())})
    policy, choices = RowPolicy(bad_rows="drop"), {"items": None, "count": None, "rho": 1.0}
    for one in (table, session.createDataFrame(table)):
        assert release(one, policy=policy, **choices).num_rows == 0


def test_rows_that_are_dropped_are_told_as_on_one_machine(session: Any) -> None:
    table = events(400, 12).set_column(2, "times", pa.array([-1 if n % 100 == 7 else 1 for n in range(400)]))
    told: list[int] = []
    policy = RowPolicy(bad_rows="drop", tell=told.append)
    assert release(session.createDataFrame(table), policy=policy).equals(release(table, policy=policy))
    assert told == [4, 4]


@pytest.mark.parametrize(
    ("column", "bad", "message"),
    [
        ("user", None, "'user' is missing"),
        ("times", -1, "'times' must be a finite count"),
        ("url", "http://secret.example/only-mine", "an item is not in the public list"),
    ],
)
def test_a_bad_row_is_refused_without_a_word_of_the_table(
    session: Any, column: str, bad: object, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = events(200, 6).to_pylist()
    rows[17][column] = bad
    with pytest.raises(TableError, match=message) as caught:
        release(session.createDataFrame(pa.Table.from_pylist(rows)))
    told = str(caught.value) + "".join(capfd.readouterr())
    assert "secret" not in told and "-1" not in told


def test_a_failure_nobody_foresaw_says_nothing_of_the_table(session: Any, capfd: pytest.CaptureFixture[str]) -> None:
    def element(item: str) -> str:
        raise RuntimeError(f"secret {item}")

    with pytest.raises(TableError, match="Spark could not read or group") as caught:
        release(session.createDataFrame(events(200, 7)), items=None, element=element)
    assert "secret" not in str(caught.value) + "".join(capfd.readouterr())


def test_workers_with_other_versions_are_refused(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    there = versions()["elementdp"]
    monkeypatch.setattr("elementdp.histogram.spark_tasks.__version__", "99.0")  # the driver's; workers start afresh
    with pytest.raises(TableError, match=rf"a worker has elementdp {there}, .* where the driver has elementdp 99\.0"):
        release(session.createDataFrame(events(200, 8)))


@pytest.mark.parametrize("default_type", [False, True])
def test_unit_and_zone_of_a_file_change_no_name(session: Any, tmp_path: Path, default_type: bool) -> None:
    """Spark keeps neither: one instant has to have one name on both engines, also in Spark's default type, INT96."""
    times = pa.array([0, 1, 2] * 20, pa.timestamp("ms", "Asia/Kolkata"))
    table = pa.table({"user": [row % 9 for row in range(60)], "url": times})
    pa.parquet.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=default_type)
    names = ["1970-01-01 00:00:00Z", "1970-01-01 00:00:00.001Z", "1970-01-01 00:00:00.002Z"]
    choices: dict[str, Any] = {"items": names, "count": None, "element": "url", "rho": 2.0}
    engine = SparkEngine(session=session)
    assert release(tmp_path / "t.parquet", engine, **choices).equals(release(tmp_path / "t.parquet", **choices))


@pytest.mark.parametrize("name", ["a.b", "a`b", "``", "two words", "USER", "ünï", "kind"])
def test_columns_may_have_any_name(session: Any, name: str) -> None:
    table = events(300, 15)
    choices: dict[str, Any] = {"items": URLS, "rho": 2.0, "element": "url", "item": "url", "privacy": PRIVACY}
    odd = table.append_column(name, table["user"])
    with pytest.warns(UserWarning, match="seeded"):
        here, there = (private_histogram(one, user=name, **choices) for one in (odd, session.createDataFrame(odd)))
    assert there.histogram.equals(here.histogram)


def test_the_zone_in_which_a_session_shows_instants_changes_no_name(session: Any) -> None:
    hours = pa.array([hour * 3_600_000_000 for hour in range(24)] * 10, pa.timestamp("us", tz="UTC"))
    table = pa.table({"user": [row % 9 for row in range(240)], "url": hours})
    names = [f"1970-01-01 {hour:02}:00:00Z" for hour in range(24)]
    choices: dict[str, Any] = {"items": names, "count": None, "element": "url"}
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        assert release(session.createDataFrame(table), rho=2.0, **choices).equals(release(table, rho=2.0, **choices))
    finally:
        session.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("user", [[1]] * 40, "column 'user' holds list<.*>, which cannot be read as text"),
        ("times", [b"3"] * 39 + [b"x"], "column 'times' holds binary, not numbers"),
        ("times", [float("nan")] * 40, "'times' must be a finite count"),
        ("times", [2.0**31 + 1] * 40, "'times' must be a finite count"),
        ("url", [None] * 40, "'url' is missing"),
        ("url", None, "has no column 'url'; its columns are 'user', 'times'"),
    ],
)
def test_both_engines_refuse_the_same_tables(session: Any, column: str, values: Any, message: str) -> None:
    table = events(40, 16).drop([column])
    table = table if values is None else table.append_column(column, pa.array(values))
    for one in (table, session.createDataFrame(table)):
        with pytest.raises(TableError, match=message):
            release(one)


def test_settings_of_a_session_change_no_sum(session: Any, tmp_path: Path) -> None:
    table = events(500, 20)
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in table.to_pylist()))
    settings = {
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    }
    before = {name: session.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        for source in (session.createDataFrame(table), tmp_path / "a.jsonl"):
            assert release(source, SparkEngine(session=session)).equals(release(table))
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


def test_a_stream_is_refused(session: Any) -> None:
    with pytest.raises(TableError, match="a stream has no end"):
        release(session.readStream.format("rate").load())


def test_counts_of_any_size_add_up_as_on_one_machine(session: Any) -> None:
    size = np.random.default_rng(0).choice([1e-7, 0.3, 1.0, 2.0**31], 3000)
    table = events(3000, 10).set_column(2, "times", pa.array(size))
    assert release(session.createDataFrame(table)).equals(release(table))


def test_files_are_read_as_on_one_machine(session: Any, tmp_path: Path) -> None:
    table = events(2_000, 9)
    (tmp_path / "many.parquet").mkdir()
    pa.parquet.write_table(table.slice(0, 900), tmp_path / "many.parquet" / "a.parquet")
    pa.parquet.write_table(table.slice(900), tmp_path / "many.parquet" / "b.parquet")
    pa.csv.write_csv(table, tmp_path / "one.csv")
    expected = release(table)
    (tmp_path / "one.csv.gz").write_bytes(gzip.compress((tmp_path / "one.csv").read_bytes()))
    shutil.copytree(tmp_path / "many.parquet", tmp_path / "folder")
    lines = [json.dumps(row) for row in table.to_pylist()]
    lines = ["\ufeff" + lines[0], "", *(line.replace('"user": 7,', '"user": 7.0,') for line in lines[1:])]
    lines[9] = "\ufeff" + lines[9]  # as in files that were put together
    (tmp_path / "lines.jsonl").write_text("\r\n".join([*lines, '{"user": "x", "url": "http://s1.org/0", "times": 2}']))
    files = [tmp_path / "folder" / "a.parquet", tmp_path / "folder" / "b.parquet"]
    for path in (tmp_path / "many.parquet", tmp_path / "one.csv", str(tmp_path / "many.parquet" / "*.parquet"),
                 tmp_path / "one.csv.gz", tmp_path / "folder", files):  # fmt: skip
        assert release(path, SparkEngine(session=session)).equals(expected), path
    path = tmp_path / "lines.jsonl"
    assert release(path, SparkEngine(session=session)).equals(release(path))
    with pytest.raises(TableError, match="PATH_NOT_FOUND"):
        release(tmp_path / "none.parquet", SparkEngine(session=session))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "nobody,x,more\n", "a row has more or fewer columns"),
        ("a.csv", "nobody\n", "a row has more or fewer columns"),
        ("a.csv", 'nobody,"x\nsomeone,x\n', "a quote that does not end"),
        ("b.csv", "url,user\nx,nobody\n", "the files have other columns, or have them in another order"),
        ("b.tsv", "user\turl\n", "format must be given for"),
    ],
)
def test_csv_that_one_machine_refuses_is_refused(
    session: Any, tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / "a.csv").write_text("user,url\nu0,x\nu9,x\n")
    with (tmp_path / name).open("a") as file:
        file.write(text)
    choices: dict[str, Any] = {"items": ["x"], "count": None, "rho": 1.0, "element": "item"}
    engine = SparkEngine(session=session)
    with pytest.raises(ElementdpError, match=message) as caught:
        release(tmp_path, engine, **choices)
    assert "nobody" not in str(caught.value)
    if name == "a.csv":
        with pytest.raises(TableError):
            release(tmp_path, **choices)


@pytest.mark.parametrize("row", ['nobody,"x\n', '"nobody,x\n'])
def test_a_quote_that_does_not_end_is_not_dropped_with_the_rows_behind_it(
    session: Any, tmp_path: Path, row: str
) -> None:
    path, policy = tmp_path / "a.csv", RowPolicy(bad_rows="drop")
    choices: dict[str, Any] = {"items": ["x"], "count": None, "rho": 1.0, "element": "item", "policy": policy}
    path.write_text("user,url\nu0,x\n" + row + "u1,x\nu2,x\n")
    for engine in (None, SparkEngine(session=session)):
        with pytest.raises(TableError, match="quote"):
            release(path, engine, **choices)
    path.write_text("user,url\nu0,x\nu1,x,more\nu2,x\n")
    assert release(path, SparkEngine(session=session), **choices).num_rows == 1


def test_csv_in_folders_that_name_a_column_is_refused(session: Any, tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "a.csv").write_text("user,url\nu0,x\n")
    engine = SparkEngine(session=session, format="csv")
    with pytest.raises(TableError, match="Parquet and ORC only"):
        release(tmp_path, engine, items=["x"], count=None, rho=1.0, element="item")


def test_a_file_that_is_cut_off_is_refused_by_its_kind(session: Any, tmp_path: Path) -> None:
    packed = gzip.compress("".join(f"u{row},secret{row}\n" for row in range(3000)).encode())
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "empty.csv").write_text("")
    for name, message in (("cut.csv.gz", "FAILED_READ_FILE"), ("empty.csv", "is empty")):
        with pytest.raises(TableError, match=message) as caught:
            release(tmp_path / name, SparkEngine(session=session))
        assert "secret" not in str(caught.value)


def test_the_caller_s_session_is_left_as_it_was(session: Any, tmp_path: Path) -> None:
    """Also where it is found and not given: the settings of a session of our own must not be written into it."""
    pa.parquet.write_table(events(300, 18), tmp_path / "events.parquet")
    before, kept = session.conf.getAll, session.sparkContext._jsc.getPersistentRDDs().size()
    release(tmp_path / "events.parquet", SparkEngine())
    release(session.read.parquet(str(tmp_path / "events.parquet")))
    assert session.conf.getAll == before
    assert session.sparkContext._jsc.getPersistentRDDs().size() == kept
    assert session.range(3).count() == 3
    with pytest.raises(ArgumentError, match=r"master must be local\[2,4\], where the active session runs"):
        SparkEngine(master="local[1]").open(tmp_path / "events.parquet")
    with pytest.raises(ArgumentError, match="master must be left out for a DataFrame"):
        SparkEngine(master="local[1]").open(session.range(3))


def test_rows_that_spark_wrote_become_the_data_of_a_training(session: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as f

    from elementdp.learning import mapped_data, unpack_parquet

    rows = session.range(100).select(
        (f.col("id") % 7).alias("user"),
        (f.col("id") % 3).alias("element"),
        f.array(f.col("id").cast("float"), f.lit(1.0).cast("float")).alias("features"),
        (f.col("id") % 2).alias("label"),
    )
    rows.orderBy("user", "element").write.parquet(str(tmp_path / "rows"))
    names = {"user": "user", "element": "element", "inputs": "features", "targets": "label"}
    unpack_parquet(tmp_path / "rows", tmp_path / "arrays", **names)
    data = mapped_data(tmp_path / "arrays", n_users=7)
    inputs, targets = data.fetch(torch.arange(100))
    numbers = inputs[:, 0].long().numpy()
    assert sorted(numbers) == list(range(100))
    assert np.array_equal(data.users, numbers % 7) and np.array_equal(data.elements, numbers % 3)
    assert np.array_equal(targets.numpy(), numbers % 2)
    assert (np.diff(data.users) >= 0).all()


def test_choices_that_contradict_each_other_are_refused(session: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="master"):
        SparkEngine(session=session, master="local[1]")
    with pytest.raises(ArgumentError, match="format"):
        SparkEngine(format="xlsx")
    with pytest.raises(ArgumentError, match="format"):
        (tmp_path / "events.xlsx").write_text("user,url")
        SparkEngine(session=session).open(tmp_path / "events.xlsx")


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("import sys; sys.modules['pyspark'] = None", "pip install 'elementdp[spark]'"),
        ("import os; del os.environ['PATH']; os.environ['JAVA_HOME'] = '/none'", "it needs Java 17 or newer"),
    ],
)
def test_what_is_not_installed_is_named(first: str, message: str) -> None:
    code = f"{first}\nfrom elementdp.histogram import SparkEngine\nSparkEngine().open('events.parquet')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert message in done.stderr.splitlines()[-1]


def test_the_command_groups_on_spark(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside this process the command finds the active session; its sums are those of the command without Spark."""
    from click.testing import CliRunner

    from elementdp.cli import cli

    monkeypatch.chdir(tmp_path)
    (tmp_path / "many").mkdir()
    pa.parquet.write_table(events(500, 10), tmp_path / "many" / "a.parquet")
    Path("items.txt").write_text("http://s1.org/0\nhttp://s1.org/1\n")
    options = "--user user --item url --element domain --epsilon 1 --delta 1e-6 --domain items.txt --rho 2 --seed 1"
    for name, more in (("spark", f"{tmp_path}/many/*.parquet --engine spark"), ("local", "many/a.parquet")):
        words = f"histogram {more} {options} --ignore-unknown-items --output {name}.csv".split()
        done = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
    assert Path("spark.csv").read_bytes() == Path("local.csv").read_bytes()


def test_releases_on_spark_share_a_budget(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from elementdp.cli import cli

    monkeypatch.chdir(tmp_path)
    files = [f"{tmp_path}/a.parquet", f"{tmp_path}/b.parquet"]  # Spark runs in the folder in which it was started
    for file in files:
        pa.parquet.write_table(events(300, 19), file)
    Path("budget").write_text('{"epsilon": 1, "delta": 1e-5}\n')
    options = ["--item", "url", "--element", "domain", "--epsilon", "1", "--delta", "1e-6", "--budget", "budget"]
    codes = []
    for output, column in (("0.csv", "nobody"), ("1.csv", "user"), ("2.csv", "user")):
        words = ["histogram", *files, *options, "--engine", "spark", "--output", output, "--user", column]
        done = CliRunner().invoke(cli, words)
        codes.append(str(done.exception) if done.exception else done.exit_code)
    assert "has no column 'nobody'" in codes[0]
    assert codes[1] == 0
    assert "the budget budget allows epsilon 1 in all" in codes[2]
    assert len(Path("budget").read_text().splitlines()) == 2, "only the release that was made is charged"
    assert not Path("2.csv").exists()


def test_the_events_are_no_public_list_on_spark_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from elementdp.cli import cli

    monkeypatch.chdir(tmp_path)
    Path("many").mkdir()
    Path("many/a.csv").write_text("user,url\n1,x\n")
    names = ["--user", "user", "--item", "url", "--element", "item"]
    options = [*names, "--epsilon", "1", "--delta", "1e-6", "--engine", "spark"]
    for given in ("many", "many/*.csv", "many/a.csv"):
        done = CliRunner().invoke(cli, ["histogram", given, *options, "--domain", "many/a.csv"])
        assert "domain must be a public list, not the events" in str(done.exception)


def test_a_master_needs_spark() -> None:
    from click.testing import CliRunner

    from elementdp.cli import cli

    names = ["--user", "u", "--item", "i", "--element", "item"]
    budget = ["--epsilon", "1", "--delta", "1e-6"]
    done = CliRunner().invoke(cli, ["histogram", "x.csv", *names, *budget, "--master", "yarn"])
    assert isinstance(done.exception, ArgumentError)
    assert "--master must be given with --engine spark only" in str(done.exception)
