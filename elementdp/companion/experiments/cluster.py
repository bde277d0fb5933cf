"""What a table larger than one machine takes: slopes measured on one machine, and drawn out by arithmetic."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.recorded import Recorded
from elementdp.companion.style import INK, PALETTE

SPARK, PEER, HERE = "elementdp on Spark", "PipelineDP on Spark", "elementdp on this machine"


@dataclass(frozen=True)
class Line:
    """A line in the number of events, fitted to all tables but the largest, and what it says of the largest.

    ``each`` is the larger of the fitted slope and the one from the smallest table to the largest: where the two differ,
    the arithmetic has to err towards more.
    """

    each: float
    start: float
    predicted: float
    measured: float

    @classmethod
    def of(cls, sizes: Sequence[float], values: Sequence[float]) -> "Line":
        """The line through at least two points and its check on one more."""
        fitted, start = np.polyfit(sizes[:-1], values[:-1], 1)
        overall = (values[-1] - values[0]) / (sizes[-1] - sizes[0])
        predicted = float(start + fitted * sizes[-1])
        return cls(max(0.0, float(fitted), overall), float(start), predicted, values[-1])

    @property
    def missed(self) -> float:
        """By what share the line missed the largest table: negative if it said too little."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Measured:
    """What a recorded run of ``benchmarks/spark.py`` says of the engine on Spark."""

    seconds: Line
    shuffled: Line
    driver: Line
    workers: Line
    slots: int
    driver_per_item: float
    largest_worker: float

    @classmethod
    def of(cls, recorded: Recorded) -> "Measured":
        """Slopes of time (seconds of one processor), bytes and memory (MiB)."""
        rows = sorted(recorded.rows("runs", engine=SPARK), key=lambda row: row["events"])
        sizes = [float(row["events"]) for row in rows]
        slots = int(recorded.provenance.parameters["slots"])

        def slope(name: str, times: float = 1.0) -> Line:
            return Line.of(sizes, [times * float(row[name]) for row in rows])

        few, many = sorted(recorded.rows("items"), key=lambda row: row["items"])
        per_item = (many["driver"] - few["driver"]) * 2**20 / (many["items"] - few["items"])
        return cls(
            seconds=slope("release", slots),
            shuffled=slope("shuffled"),
            driver=slope("driver"),
            workers=slope("workers"),
            slots=slots,
            driver_per_item=per_item,
            largest_worker=max(float(row["workers"]) for row in rows) / slots,
        )


@dataclass(frozen=True)
class Cluster:
    """A table that fits no machine, and a cluster for it: executors of some processors each."""

    events: int
    users: int
    items: int
    executors: int
    processors: int

    @property
    def slots(self) -> int:
        """Tasks that run at once."""
        return self.executors * self.processors


def arithmetic(measured: Measured, cluster: Cluster) -> list[tuple[str, str, str]]:
    """Rows (what, how much, from what): each number is a measured slope times a size."""
    slots = cluster.slots
    hours = measured.seconds.each * cluster.events / slots / 3600
    moved = measured.shuffled.each * cluster.events
    driver = measured.driver.measured + measured.driver_per_item * cluster.items / 2**20
    worker = measured.largest_worker * cluster.processors
    parts = max(slots, math.ceil(moved / 2**30))
    return [
        ("processor time", f"{measured.seconds.each * 1e6:.2f} µs an event", "slope of time, times the processors"),
        ("time, no network", f"{hours:.2g} hours", f"on {cluster.executors:,} executors of {cluster.processors}"),
        ("shuffle", f"{moved / 1e12:.3g} TB", f"{measured.shuffled.each:.3g} bytes an event"),
        ("shuffle, each executor", f"{moved / cluster.executors / 1e9:.3g} GB written and read", "evenly, by hash"),
        ("partitions", f"{parts:,}", "one a processor, and none above 1 GiB"),
        ("Python memory, each executor", f"{worker / 1024:.2g} GiB", "largest of the runs, times the processors"),
        (
            "driver memory",
            f"{driver / 1024:.2g} GiB",
            f"{measured.driver_per_item:.3g} bytes for each of {cluster.items:,} items",
        ),
        ("events a user", f"{cluster.events / cluster.users:,.0f}", "they change nothing above"),
    ]


def runs(recorded: Recorded) -> Exhibit:
    """Time against events for the three engines, the numbers behind it, and the ratios that the page's prose cites."""
    peer = max(_both(recorded, PEER, SPARK), key=lambda pair: pair[0]["events"])
    here = max(_both(recorded, HERE, SPARK), key=lambda pair: pair[0]["events"])
    spark, pipeline = (recorded.provenance.parameters[name] for name in ("pyspark", "pipeline-dp"))
    rows = _rows(recorded)
    stopped = any("events" in row for row in recorded.tables.get("stopped", ()))
    gone = " A triangle is a run without a result, at the seconds it had in all." if stopped else ""
    return Exhibit(
        name="fig-spark-runs",
        caption=f"On {peer[0]['events']:,} events PipelineDP takes {peer[0]['release'] / peer[1]['release']:.2g} times "
        f"as long as elementdp on Spark. Two processors, Spark {spark}, PipelineDP {pipeline}; the time to start "
        f"Python and Spark is not in it.{gone} ({recorded.label})",
        figure=_drawn(recorded),
        alt="Seconds of a release against events: " + "; ".join(f"{row[1]}, {row[0]}: {row[3]}" for row in rows),
        header=(
            "events",
            "engine",
            "start-up, s",
            "release, s",
            "driver, MiB",
            "Java, MiB",
            "workers, MiB",
            "bytes shuffled an event",
        ),
        rows=rows,
        numbers={
            "spark-peer-events": f"{peer[0]['events']:,}",
            "spark-peer-ratio": f"{peer[0]['release'] / peer[1]['release']:.2g}",
            "spark-here-events": f"{here[0]['events']:,}",
            "spark-here-ratio": f"{here[0]['release'] / here[1]['release']:.2g}",
        },
    )


def _both(recorded: Recorded, *engines: str) -> list[tuple[dict[str, Any], ...]]:
    """The runs of two engines on one table, for each table that both finished."""
    first, second = ({row["events"]: row for row in recorded.rows("runs", engine=one)} for one in engines)
    return [(first[events], second[events]) for events in sorted(first.keys() & second.keys())]


def _stopped(recorded: Recorded) -> list[Mapping[str, Any]]:
    return [row for row in recorded.tables.get("stopped", []) if "engine" in row]


def _end(row: Mapping[str, Any]) -> str:
    return f"{'failed' if row['failed'] else 'stopped'} after {row['seconds']:.0f}"


def _rows(recorded: Recorded) -> list[tuple[str, ...]]:
    done = [
        (
            f"{row['events']:,}",
            row["engine"],
            f"{row['seconds'] - row['release']:.1f}",
            f"{row['release']:.1f}",
            *(f"{row[name]:,.0f}" if row[name] else "–" for name in ("driver", "java", "workers")),
            f"{row['shuffled'] / row['events']:.1f}" if row["shuffled"] else "–",
        )
        for row in recorded.tables["runs"]
    ]
    return done + [(f"{row['events']:,}", row["engine"], "–", _end(row), *["–"] * 4) for row in _stopped(recorded)]


def _drawn(recorded: Recorded) -> Figure:
    figure, axes = plt.subplots()
    # Greys: in this book colours say what is promised, and all three promise the same.
    looks = {HERE: (INK, "-", "o"), SPARK: (INK, "--", "s"), PEER: (PALETTE["grey"], ":", "D")}
    for engine, (colour, dash, marker) in looks.items():
        done = sorted(recorded.rows("runs", engine=engine), key=itemgetter("events"))
        cut = [row for row in _stopped(recorded) if row["engine"] == engine]
        points = [(row["events"], row["release"]) for row in done]
        axes.plot(*zip(*points, strict=True), ls=dash, marker=marker, color=colour, label=engine)
        axes.plot([row["events"] for row in cut], [row["seconds"] for row in cut], "^", color=colour)
    axes.set(xscale="log", yscale="log", xlabel="events", ylabel="seconds of a release")
    figure.legend(loc="outside lower center", ncols=2)
    return figure
