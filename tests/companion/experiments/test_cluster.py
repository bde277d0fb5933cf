"""The arithmetic for a table that fits no machine, on lines that are known."""

from typing import Any

import pytest

from elementdp.companion.experiments.cluster import HERE, PEER, SPARK, Cluster, Line, Measured, arithmetic, runs
from elementdp.companion.experiments.recorded import Recorded, RunProvenance, read

SIZES = (10**5, 10**6, 3 * 10**6, 10**7)


def made_up(**bend: float) -> Recorded:
    """Runs on lines: 20 s and 3 µs an event, 15 bytes an event, 200 bytes an item; ``bend`` adds to the largest."""
    provenance = RunProvenance("spark", {"slots": 2}, 0, {}, "", "", "", "", "2026-01-01", 0.0, 0.0)
    made: list[dict[str, Any]] = [
        {"engine": SPARK, "events": n, "seconds": 25 + 3e-6 * n, "release": 20 + 3e-6 * n, "shuffled": 15 * n,
         "driver": 300.0, "java": 900.0, "workers": 500.0}
        for n in SIZES
    ]  # fmt: skip
    for name, more in bend.items():
        made[-1][name] += more
    items = [{"items": n, "driver": 250 + 200 * n / 2**20} for n in (10**5, 10**6)]
    return Recorded(provenance, {"runs": [*made, made[0] | {"engine": HERE}], "items": items})


def test_lines_are_found_and_drawn_out() -> None:
    measured = Measured.of(made_up())
    assert measured.seconds.each == pytest.approx(2 * 3e-6)  # seconds of one processor
    assert measured.seconds.missed == pytest.approx(0.0)
    assert measured.driver_per_item == pytest.approx(200)
    sheet = {what: value for what, value, _ in arithmetic(measured, Cluster(10**12, 10**9, 10**7, 250, 8))}
    assert sheet["time, no network"] == f"{6e-6 * 1e12 / 2000 / 3600:.2g} hours"
    assert sheet["shuffle"] == "15 TB"
    assert sheet["shuffle, each executor"] == "60 GB written and read"
    assert sheet["partitions"] == f"{-(-15 * 10**12 // 2**30):,}"
    assert sheet["driver memory"] == f"{(300 + 200 * 1e7 / 2**20) / 1024:.2g} GiB"
    assert sheet["Python memory, each executor"] == f"{250 * 8 / 1024:.2g} GiB"


def test_a_line_that_bends_is_seen_and_the_steeper_slope_taken() -> None:
    slope = Measured.of(made_up(shuffled=3e7)).shuffled
    assert slope.missed == pytest.approx(15e7 / 18e7 - 1)
    assert slope.each == pytest.approx((18e7 - 15e5) / (1e7 - 1e5))
    assert Line.of([1, 2, 3], [5, 4, 3]).each == 0  # what shrinks with the table costs nothing more


@pytest.mark.parametrize(("engine", "failed"), [(PEER, False), (SPARK, False), (HERE, False), (PEER, True)])
def test_a_run_without_a_result_is_in_figure_and_table(engine: str, failed: bool) -> None:
    """Ratios are then those of the largest table that both engines finished."""
    recorded = made_up()
    recorded.provenance.parameters.update({"pyspark": "4", "pipeline-dp": "0"})
    finished = [row | {"engine": one} for row in recorded.rows("runs", engine=SPARK) for one in (PEER, SPARK, HERE)]
    recorded.tables["runs"] = [row for row in finished if (row["engine"], row["events"]) != (engine, SIZES[-1])]
    stopped = {"engine": engine, "events": SIZES[-1], "seconds": 300.0, "failed": failed}
    recorded.tables["stopped"] = [stopped, {"items": 10**6, "seconds": 300.0, "failed": failed}]
    shown = runs(recorded)
    assert shown.rows[-1][:4] == ("10,000,000", engine, "–", f"{'failed' if failed else 'stopped'} after 300")
    assert {len(row) for row in shown.rows} == {len(shown.header)}
    largest = {PEER: SIZES[-2 if engine in (PEER, SPARK) else -1], HERE: SIZES[-2 if engine in (HERE, SPARK) else -1]}
    assert shown.numbers["spark-peer-events"] == f"{largest[PEER]:,}"
    assert shown.numbers["spark-here-events"] == f"{largest[HERE]:,}"
    assert shown.figure is not None and "triangle" in shown.caption
    drawn = {point for line in shown.figure.axes[0].lines for point in zip(*line.get_data(), strict=True)}
    assert drawn == {(row["events"], row["release"]) for row in recorded.tables["runs"]} | {(SIZES[-1], 300.0)}


def test_the_recorded_lines_meet_the_largest_table() -> None:
    """The largest table was not used for the lines; what they say of it is within a quarter."""
    measured = Measured.of(read("spark"))
    assert abs(measured.seconds.missed) < 0.25
    assert abs(measured.shuffled.missed) < 0.05
    shown = runs(read("spark"))
    assert {len(row) for row in shown.rows} == {len(shown.header)}
    assert "PipelineDP" in shown.caption
    assert ("triangle" in shown.caption) == any("events" in row for row in read("spark").tables.get("stopped", ()))
