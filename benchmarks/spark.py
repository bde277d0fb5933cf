"""The private histogram on this machine, on Spark, and by PipelineDP on Spark; and what a larger table would take.

All three protect one (user, domain) pair, discover the items privately and count them, on the same Parquet file in the
same run, each in a process of its own; both Sparks are ``local[2]``. Ours also chooses ρ and estimates what clipping
removed. The peer is given its bounds, and domains that are looked up once for each page; it holds rows as Python
objects, so it gets the smaller tables only. A run that fails, or takes longer than ``--limit`` seconds and is ended,
is listed as stopped with the seconds it had; the others go on.

    python benchmarks/spark.py                                  # 0.1, 1, 3, 10 and 30 million events, the peer up to 10
    python benchmarks/spark.py --events 100000 200000 300000 --peer-most 100000
    python benchmarks/spark.py --record                         # and write recorded/spark.json

``seconds`` are those of the whole process, ``release`` those of the release once Spark is up. Memory is the peak of
resident memory: of the driver's Python, of the Java process (driver and executor in one), of the Python workers
together. The last lines are arithmetic: :mod:`elementdp.companion.experiments.cluster` fits lines to all tables but the
largest, checks them on the largest, and draws them out to 10¹² events of 10⁹ users.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import psutil
from histogram_command import BUDGET, make_events, pipeline_dp_counts, version

from elementdp.companion.experiments.cluster import HERE, PEER, SPARK, Cluster, Measured, arithmetic
from elementdp.companion.experiments.recorded import FOLDER, read, recording

SLOTS = 2
ITEMS, ITEM_EVENTS = (100_000, 1_000_000), 100_000  # lists that show what an item costs the driver, and events beside


def local_release(path: Path) -> Iterator[None]:
    """By the engine of this machine."""
    from elementdp.histogram import Budget, private_histogram

    yield
    private_histogram(path, user="user_id", item="url", element="domain", privacy=Budget(**BUDGET))


def spark_release(path: Path, logs: Path) -> Iterator[None]:
    """By elementdp on Spark."""
    from elementdp.histogram import Budget, SparkEngine, private_histogram

    engine = SparkEngine(session=_session(logs))
    yield
    private_histogram(path, user="user_id", item="url", element="domain", privacy=Budget(**BUDGET), engine=engine)
    engine.session.stop()


def items_release(path: Path, logs: Path, items: str) -> Iterator[None]:
    """By elementdp on Spark, with a public list of items."""
    from elementdp.histogram import Budget, RowPolicy, SparkEngine, private_histogram

    engine = SparkEngine(session=_session(logs))
    pages = [f"https://www.site{page % 3000}.org/page/{page}" for page in range(int(items))]
    yield
    private_histogram(
        path,
        user="user_id",
        item="url",
        element="domain",
        privacy=Budget(**BUDGET),
        items=pages,
        policy=RowPolicy(unknown_items="drop"),
        engine=engine,
    )
    engine.session.stop()


def peer_release(path: Path, logs: Path) -> Iterator[None]:
    """By PipelineDP on Spark's resilient data sets."""
    import pipeline_dp

    session = _session(logs)
    yield
    rows = session.read.parquet(str(path)).rdd.mapPartitions(_with_domains)
    backend = pipeline_dp.SparkRDDBackend(session.sparkContext)
    pipeline_dp_counts(rows, backend, itemgetter(2)).count()
    session.stop()


def _with_domains(rows: Any) -> Any:
    """Rows (user, page, domain), with the domain of each page looked up once."""
    from functools import cache

    from elementdp.elements import domain_of

    known = cache(domain_of)
    return ((row["user_id"], row["url"], known(row["url"])) for row in rows)


RELEASES = {"local": local_release, "spark": spark_release, "items": items_release, "peer": peer_release}


def _session(logs: Path) -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{SLOTS}]").appName("benchmark")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.sql.shuffle.partitions": str(2 * SLOTS),
        "spark.driver.memory": "4g",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def child(kind: str, *arguments: str) -> None:
    """One release in this process; the seconds it took once Spark was up are all it prints."""
    release = RELEASES[kind](Path(arguments[0]), *map(Path, arguments[1:2]), *arguments[2:])
    next(release)
    start = time.perf_counter()
    next(release, None)
    print(time.perf_counter() - start)


@dataclass(frozen=True)
class Stopped:
    """A run without a result: the seconds it had, and whether it was ended for them or failed."""

    seconds: float
    failed: bool


def measured(limit: float, kind: str, path: Path, *arguments: str) -> dict[str, float] | Stopped:
    """One release in a process of its own: its times, its processes' peaks of memory (MiB), the bytes it shuffled."""
    with tempfile.TemporaryDirectory() as logs, tempfile.TemporaryDirectory() as spilled:
        command = [sys.executable, __file__, "--child", kind, str(path)]
        command += [] if kind == "local" else [logs, *arguments]
        places = os.environ | {"SPARK_LOCAL_DIRS": spilled}  # Spark leaves its files behind where it is ended
        start = time.perf_counter()
        with tempfile.TemporaryFile() as wrong:  # a pipe that nobody reads would fill up and stop the run
            process = psutil.Popen(command, stdout=subprocess.PIPE, stderr=wrong, env=places)
            found = _watched(process, limit)
            said = process.communicate()[0].decode()
            seconds = round(time.perf_counter() - start, 2)
            wrong.seek(0)
            if process.returncode:
                print(f"{' '.join(command)} failed or took too long:\n{wrong.read().decode()[-2000:]}", flush=True)
                return Stopped(seconds, failed=seconds < limit)
        return {
            "seconds": seconds,
            "release": round(float(said), 2),
            **{name: round(value, 1) for name, value in found.items()},
            "shuffled": _shuffled(Path(logs)),
        }


def _watched(process: psutil.Popen, limit: float) -> dict[str, float]:
    """Processor seconds and peaks of memory of a process and all that it starts, looked at ten times a second.

    After ``limit`` seconds all of them are ended.
    """
    end = time.perf_counter() + limit
    spent: dict[int, float] = {}
    peaks = {"driver": 0.0, "java": 0.0, "workers": 0.0}
    while process.poll() is None:
        now = dict.fromkeys(peaks, 0.0)
        for one in _family(process):
            try:
                with one.oneshot():
                    times, size = one.cpu_times(), one.memory_info().rss / 2**20
                    kind = "driver" if one.pid == process.pid else "java" if one.name() == "java" else "workers"
            except psutil.Error:
                continue
            spent[one.pid] = times.user + times.system
            now[kind] += size
            if time.perf_counter() > end:
                one.kill()
        peaks = {kind: max(peak, now[kind]) for kind, peak in peaks.items()}
        time.sleep(0.1)
    return {"cpu": sum(spent.values()), **peaks}


def _family(process: psutil.Popen) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def _shuffled(logs: Path) -> int:
    """The bytes that all tasks wrote for others to read, by Spark's own log."""
    found = 0
    for path in logs.rglob("*"):
        if path.is_file() and path.suffix != ".crc":
            for line in path.read_text().splitlines():
                if '"Shuffle Write Metrics"' in line:
                    metrics = json.loads(line).get("Task Metrics") or {}
                    found += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
    return found


def compared(given: argparse.Namespace, tables: dict[str, list[dict[str, Any]]]) -> None:
    """Fill the tables ``runs`` and ``items`` (and ``stopped``, if a run was), and print each run as it ends."""
    head = ("seconds", "release", "cpu", "driver", "java", "workers", "shuffled")
    print(f"{'':28}{'events':>12}" + "".join(f"{name:>12}" for name in head))
    tables["runs"], tables["items"] = [], []

    def tell(table: str, name: str, row: dict[str, Any], *run: Any) -> None:
        found = measured(given.limit, *run)
        if isinstance(found, Stopped):
            tables.setdefault("stopped", []).append(row | asdict(found))
        else:
            tables[table].append(row | found)
            print(f"{name:28}{row['events']:>12,}" + "".join(f"{found[k]:>12,}" for k in head), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events.parquet")
        make_events(path, ITEM_EVENTS, given.seed)
        for items in ITEMS:
            row = {"items": items, "events": ITEM_EVENTS}
            tell("items", f"{items:,} items on Spark", row, "items", path, str(items))
        for count in sorted(given.events):
            make_events(path, count, given.seed)
            for engine, kind in ((HERE, "local"), (SPARK, "spark"), (PEER, "peer")):
                if kind != "peer" or count <= given.peer_most:
                    tell("runs", engine, {"engine": engine, "events": count}, kind, path)


@contextmanager
def _kept(record: bool, parameters: dict[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    """Tables to fill, written to the repository's recorded runs or to a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        place = FOLDER if record else Path(folder)
        with recording("spark", parameters, seed, {}, place) as tables:
            yield tables
        _told(place)


def _told(place: Path) -> None:
    """Ratios to the peer, and the arithmetic with its check."""
    recorded = read("spark", place)
    for peer in recorded.rows("runs", engine=PEER):
        for ours in recorded.rows("runs", engine=SPARK, events=peer["events"]):
            ratios = ", ".join(
                f"{ours[name] / peer[name]:.2f} of its {name}" for name in ("seconds", "release", "shuffled")
            )
            print(f"to the peer on {peer['events']:,} events: {ratios}")
    if len(recorded.rows("runs", engine=SPARK)) > 2 and len(recorded.rows("items")) == len(ITEMS):
        found = Measured.of(recorded)
        for name, slope in (("seconds", found.seconds), ("shuffled", found.shuffled)):
            print(f"{name}: {slope.predicted:,.0f} predicted for the largest, {slope.measured:,.0f} measured")
        for line in arithmetic(found, Cluster(10**12, 10**9, 10**6, executors=250, processors=8)):
            print("; ".join(line))


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        return child(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[10**5, 10**6, 3 * 10**6, 10**7, 3 * 10**7])
    parser.add_argument("--peer-most", type=int, default=10_000_000)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a run is ended")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    parameters = {"slots": SLOTS, "events_a_user": 50, "peer_most": given.peer_most, "limit": given.limit, **BUDGET}
    parameters |= {name: version(name) for name in ("pyspark", "pipeline-dp", "pyarrow", "numpy")}
    with _kept(given.record, parameters, given.seed) as tables:
        compared(given, tables)
    return None


if __name__ == "__main__":
    main()
