"""The private histogram on this machine, on Spark, and by PipelineDP on Spark; and what a larger table would take.

All three protect one (user, domain) pair, discover the items privately and count them, on the same Parquet file in the
same run, each in a process of its own; both Sparks are ``local[2]``. The peer holds rows as Python objects, so it is
given the smallest table only, and ratios are taken on that.

    python benchmarks/spark.py                                  # 1, 3 and 10 million events
    python benchmarks/spark.py --events 100000 200000

The last lines are arithmetic: seconds and shuffled bytes are fitted as a line in the number of events, the line is
compared with the table it has not seen (the largest), and then drawn out to 10¹² events of 10⁹ users.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from histogram_command import BUDGET, Run, make_events, measure, pipeline_dp_counts, row, version

SLOTS = 2
CLUSTER_SLOTS = 2_000  # processors of the cluster that the arithmetic is for
CLUSTER_EVENTS, CLUSTER_USERS = 10**12, 10**9


def spark_release(path: Path, logs: Path) -> None:
    """The release by elementdp on Spark, with Spark's own log of what it shuffled."""
    session = _session(logs)
    from elementdp.histogram import Budget, SparkEngine, private_histogram

    result = private_histogram(
        path,
        user="user_id",
        item="url",
        element="domain",
        privacy=Budget(BUDGET["epsilon"], BUDGET["delta"]),
        engine=SparkEngine(session=session),
    )
    print(result.histogram.num_rows)
    session.stop()


def local_release(path: Path) -> None:
    """The same on this machine's engine."""
    from elementdp.histogram import Budget, private_histogram

    privacy = Budget(BUDGET["epsilon"], BUDGET["delta"])
    print(private_histogram(path, user="user_id", item="url", element="domain", privacy=privacy).histogram.num_rows)


def peer_release(path: Path, logs: Path) -> None:
    """The same by PipelineDP on Spark's resilient data sets."""
    import pipeline_dp

    from elementdp.elements import domain_of

    session = _session(logs)
    rows = session.read.parquet(str(path)).rdd.map(lambda one: (one["user_id"], one["url"]))
    backend = pipeline_dp.SparkRDDBackend(session.sparkContext)
    print(pipeline_dp_counts(rows, backend, domain_of).count())  # a cached function cannot go to a worker
    session.stop()


def _session(logs: Path):  # type: ignore[no-untyped-def]
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{SLOTS}]").appName("benchmark")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.sql.shuffle.partitions": str(4 * SLOTS),
        "spark.driver.memory": "4g",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def shuffled(logs: Path) -> int:
    """The bytes that all tasks wrote for others to read, by Spark's own log."""
    found = 0
    for path in logs.rglob("*"):
        if path.is_file():
            for line in path.read_text().splitlines():
                if '"Shuffle Write Metrics"' in line:
                    metrics = json.loads(line).get("Task Metrics") or {}
                    found += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
    return found


def on_spark(kind: str, path: Path) -> tuple[Run, int]:
    """One process on Spark, and what it shuffled."""
    with tempfile.TemporaryDirectory() as logs:
        run = measure([sys.executable, __file__, kind, str(path), logs])
        return run, shuffled(Path(logs))


def sheet(events: list[int], seconds: list[float], moved: list[float]) -> None:
    """Slopes from all tables but the largest, checked on the largest; then a table that fits no machine."""
    slopes = []
    for name, values in (("seconds", seconds), ("shuffled bytes", moved)):
        slope, start = np.polyfit(events[:-1], values[:-1], 1)
        predicted = start + slope * events[-1]
        print(f"{name}: {slope:.3g} an event; {predicted:.3g} predicted for {events[-1]:,}, {values[-1]:.3g} measured")
        slopes.append(max(slope, (values[-1] - values[0]) / (events[-1] - events[0])))
    hours = slopes[0] * SLOTS * CLUSTER_EVENTS / CLUSTER_SLOTS / 3600
    print(
        f"{CLUSTER_EVENTS:.0e} events of {CLUSTER_USERS:.0e} users, {CLUSTER_SLOTS:,} processors, by the larger slope: "
        f"{hours:.2g} hours, {slopes[1] * CLUSTER_EVENTS / 1e12:.2g} TB shuffled "
        f"({slopes[1] * CLUSTER_EVENTS / CLUSTER_SLOTS / 1e9:.2g} GB a processor); the driver holds the items released "
        "and one bundle of candidates, whatever the number of events"
    )


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] in ("local", "spark", "peer"):
        path = Path(sys.argv[2])
        if sys.argv[1] == "local":
            return local_release(path)
        return (spark_release if sys.argv[1] == "spark" else peer_release)(path, Path(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts, seconds, moved = sorted(given.events), [], []
    started = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    print(f"{started}; Spark {version('pyspark')}, local[{SLOTS}]")
    print(f"{'':24}{'events':>12}{'seconds':>10}{'CPU s':>10}{'peak MiB':>10}")
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "events.parquet")
        for count in counts:
            make_events(events, count, given.seed)
            here = measure([sys.executable, __file__, "local", str(events)])
            row("this machine", count, here)
            there, bytes_moved = on_spark("spark", events)
            row("elementdp on Spark", count, there)
            seconds.append(there.seconds)
            moved.append(float(bytes_moved))
            if count == counts[0]:
                peer, _ = on_spark("peer", events)
                row(f"PipelineDP {version('pipeline-dp')}, Spark", count, peer)
                ratio = f"to the peer on {count:,} events: {peer.seconds / there.seconds:.2f} times as fast on Spark"
    print("\n" + ratio)
    if len(counts) > 2:
        sheet(counts, seconds, moved)
    return None


if __name__ == "__main__":
    main()
