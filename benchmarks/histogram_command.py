"""``elementdp histogram`` against PipelineDP's local backend, and its memory as the table grows.

Both protect one (user, domain) pair, discover the items privately and count them, on the same Parquet file in the same
run, each in a process of its own so that the peak of memory is its own. PipelineDP holds the table in Python objects,
so it is given a smaller one; ratios are taken on that. ``elementdp`` also chooses ρ privately, which the peer does not.

    python benchmarks/histogram_command.py                      # 2.5, 5 and 10 million events
    python benchmarks/histogram_command.py --events 20000 40000 --peer-events 20000
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MOST_MEMORY = 2048.0  # MiB
MOST_GROWTH = 1.25
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
PEER_BOUNDS = 4  # items a pair may add to, and events it may add to each


@dataclass(frozen=True)
class Run:
    """One process: wall-clock and processor seconds, and peak resident memory in MiB."""

    seconds: float
    cpu: float
    peak: float


def make_events(path: Path, events: int, seed: int, chunk: int = 500_000) -> None:
    """Zipf-like visits to 100,000 pages of 3,000 domains, 50 events a user, written a chunk at a time."""
    rng = np.random.default_rng(seed)
    pages = pa.array([f"https://www.site{page % 3000}.org/page/{page}" for page in range(100_000)])
    schema = pa.schema([("user_id", pa.string()), ("url", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, events, chunk):
            rows = min(chunk, events - start)
            users = pa.array(rng.integers(0, max(1, events // 50), rows)).cast(pa.string())
            visited = np.minimum((rng.pareto(1.0, rows) * 50).astype(np.int64), len(pages) - 1)
            writer.write_table(pa.table([users, pages.take(pa.array(visited))], schema=schema))


def measure(command: list[str]) -> Run:
    """Run a process to its end and ask the system for its own peak of memory."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stderr is not None
    said = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{said}")
    return Run(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def elementdp(path: Path, output: Path) -> Run:
    """The command as a user would type it."""
    main = "from elementdp.cli import main; main()"
    options = ["--user", "user_id", "--item", "url", "--element", "domain", "--output", str(output), "--force"]
    budget = [text for name, value in BUDGET.items() for text in (f"--{name}", str(value))]
    return measure([sys.executable, "-c", main, "histogram", str(path), *options, *budget])


def pipeline_dp_counts(rows: Any, backend: Any, domain: Callable[[Any], str]) -> Any:
    """PipelineDP's counts of rows (user, page, …): the privacy id is (user, domain), the partition is the page."""
    import pipeline_dp

    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=BUDGET["epsilon"], total_delta=BUDGET["delta"])
    engine = pipeline_dp.DPEngine(accountant, backend)
    extractors = pipeline_dp.DataExtractors(
        partition_extractor=lambda row: row[1],
        privacy_id_extractor=lambda row: (row[0], domain(row)),
        value_extractor=lambda row: 1,
    )
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT],
        noise_kind=pipeline_dp.NoiseKind.GAUSSIAN,
        max_partitions_contributed=PEER_BOUNDS,
        max_contributions_per_partition=PEER_BOUNDS,
    )
    result = engine.aggregate(rows, params, extractors)
    accountant.compute_budgets()
    return result


def pipeline_dp_release(path: Path) -> None:
    """The same release by PipelineDP on this machine."""
    import pipeline_dp

    from elementdp.elements import domain_of

    table = pq.read_table(path)
    rows = list(zip(table.column("user_id").to_pylist(), table.column("url").to_pylist(), strict=True))
    known = cache(domain_of)
    print(len(list(pipeline_dp_counts(rows, pipeline_dp.LocalBackend(), lambda row: known(row[1])))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[2_500_000, 5_000_000, 10_000_000])
    parser.add_argument("--peer-events", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peer", type=Path, help=argparse.SUPPRESS)  # the child process of the comparison
    given = parser.parse_args()
    if given.peer is not None:
        return pipeline_dp_release(given.peer)

    with tempfile.TemporaryDirectory() as folder:
        events, output = Path(folder, "events.parquet"), Path(folder, "histogram.csv")
        make_events(events, given.peer_events, given.seed)
        ours, peer = elementdp(events, output), measure([sys.executable, __file__, "--peer", str(events)])
        print(f"{'':24}{'events':>12}{'seconds':>10}{'CPU s':>10}{'peak MiB':>10}")
        row(f"PipelineDP {version('pipeline-dp')}, local", given.peer_events, peer)
        row("elementdp histogram", given.peer_events, ours)
        runs = []
        for count in sorted(given.events):
            make_events(events, count, given.seed)
            runs.append(elementdp(events, output))
            row("elementdp histogram", count, runs[-1])
    growth = runs[-1].peak / runs[0].peak
    print(f"\nto the peer on {given.peer_events:,} events: {peer.seconds / ours.seconds:.2f} times as fast, ", end="")
    print(f"{ours.cpu / peer.cpu:.2f} of its processor time, {ours.peak / peer.peak:.2f} of its memory")
    print(f"peak memory {runs[-1].peak:.0f} MiB, {growth:.2f} times that of the smallest of these tables")
    if runs[-1].peak >= MOST_MEMORY or growth > MOST_GROWTH:
        raise SystemExit(f"memory is not bounded as promised: below {MOST_MEMORY:.0f} MiB, growth below {MOST_GROWTH}")
    return None


def row(name: str, events: int, run: Run) -> None:
    print(f"{name:24}{events:>12,}{run.seconds:>10.1f}{run.cpu:>10.1f}{run.peak:>10.0f}", flush=True)


def version(package: str) -> str:
    from importlib.metadata import version

    return version(package)


if __name__ == "__main__":
    main()
